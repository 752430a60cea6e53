"""`lsp-complete editor NAME [--install]`: what an editor needs, with this machine's paths; printed, or put into place.

Rules: a file that is there already is never overwritten or merged, unless this command wrote it; then it says what to add by hand.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import LspCompleteError
from . import editor_files
from .editor_files import MARK, NAMES, Setup, Snippet
from .editor_paths import editors_dir

if TYPE_CHECKING:
    from ..cli import Sub

STAMP = "written by `lsp-complete editor`"
CODES = ("code", "codium", "code-oss", "code-server", "cursor")


def add_parser(sub: Sub) -> None:
    """`editor NAME [--install] [--command PATH]`."""
    parser = sub.add_parser(
        "editor",
        help="print or install what an editor needs",
        description="Print what an editor needs, with this machine's paths in it; --install puts it into place.",
    )
    parser.add_argument("name", choices=NAMES, metavar="NAME", help=", ".join(NAMES))
    parser.add_argument("--install", action="store_true", help="write the files where the editor looks for them")
    parser.add_argument("--command", metavar="PATH", help="the server's command (default: this installation's)")
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    command = args.command or own_command()
    if args.name == "vscode":
        return _vscode(args.install)
    helix = next((path for name in ("hx", "helix") if (path := shutil.which(name))), None)
    setup = editor_files.setup_for(args.name, command, editors_dir(), editor_files.places(), helix)
    return install(setup) if args.install else show(setup)


def own_command(which: Sequence[Path] | None = None) -> str:
    """Absolute path of `lsp-complete`: beside this Python, else on the PATH. Raises LspCompleteError if it is in neither."""
    beside = which if which is not None else [Path(sys.executable).with_name(n) for n in (MARK, MARK + ".exe")]
    for path in beside:
        if path.is_file():
            return str(path.absolute())
    found = shutil.which(MARK)
    if found:
        return str(Path(found).absolute())
    raise LspCompleteError("the command lsp-complete is not to be found; name it: lsp-complete editor NAME --command /path/to/lsp-complete")


def show(setup: Setup) -> int:
    """Print the snippets; what they are and where they go is said on standard error."""
    for snippet in setup.snippets:
        where = f", for {snippet.target}" if snippet.target else ""
        print(f"{setup.title}{where}:\n", file=sys.stderr)
        sys.stdout.write(snippet.text)
    for source, target in setup.folders:
        print(f"\nand copy the folder {source}\n  to {target} (--install does both)", file=sys.stderr)
    if setup.after:
        print(f"\n{setup.after}", file=sys.stderr)
    return 0


def install(setup: Setup) -> int:
    """Write the files. Exit status 1 if one of them needs a person."""
    by_hand = 0
    for source, target in setup.folders:
        if not source.is_dir():
            raise LspCompleteError(f"{source} is missing; install lsp-complete again, or run this from a checkout")
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(source, target)
        print(f"copied to {target}")
    for snippet in setup.snippets:
        by_hand += not _write(snippet)
    if setup.after:
        print(setup.after)
    return 1 if by_hand else 0


def _write(snippet: Snippet) -> bool:
    target = snippet.target
    if target is None:
        sys.stdout.write(snippet.text)
        return False
    stamp = f"{snippet.comment} {STAMP}\n" if snippet.comment else ""
    if target.exists() and not ours(target, snippet):
        print(f"{target} is there already and stays as it is. Add this to it by hand:\n", file=sys.stderr)
        sys.stdout.write(snippet.text)
        return False
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(stamp + snippet.text, "utf-8")
    print(f"wrote {target}")
    return True


def ours(target: Path, snippet: Snippet) -> bool:
    """This command wrote the file: it says so, or (where it can have no comment) it holds exactly the same."""
    text = target.read_text("utf-8", "replace")
    return STAMP in text.split("\n", 1)[0] or text == snippet.text


def _vscode(wanted: bool) -> int:
    """The extension is a .vsix file, made from a checkout by scripts/package-vscode."""
    made = sorted((editors_dir() / "vscode").glob("*.vsix"))
    code = next((path for name in CODES if (path := shutil.which(name))), "code")
    if not made:
        print("VS Code needs the extension. In a checkout: scripts/package-vscode makes editors/vscode/lsp-complete.vsix, then:", file=sys.stderr)
        print(f"{Path(code).name} --install-extension editors/vscode/lsp-complete.vsix")
        return 1 if wanted else 0
    words = [code, "--install-extension", str(made[-1]), "--force"]
    if not wanted:
        print(" ".join(words))
        return 0
    try:
        return subprocess.run(words, check=False).returncode
    except OSError:
        raise LspCompleteError("none of " + ", ".join(CODES) + " is on the PATH; install the .vsix file from VS Code's Extensions view") from None
