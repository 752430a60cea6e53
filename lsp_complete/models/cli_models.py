"""`lsp-complete models list|pull|path|verify|remove`: prints, and returns exit codes.

Rules: results go to standard output, progress and errors to standard error. On a terminal there is a progress bar,
elsewhere one plain line for each step and each tenth. Exit codes: 0 done, 1 failed, 130 interrupted.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from lsp_complete.config import gather, load
from lsp_complete.errors import LspCompleteError
from lsp_complete.models import download, installed
from lsp_complete.models.catalogue import CatalogueModel, load_catalogue
from lsp_complete.models.memory import least_need, megabytes
from lsp_complete.models.paths import Progress, models_dir, part_path

OK, FAILED, INTERRUPTED = 0, 1, 130


def add_parser(subparsers: Any) -> None:
    """Add the command `models` to an argparse sub-parser collection. Each command sets `run(args) -> int`."""
    parser = subparsers.add_parser("models", help="list, fetch, check and remove models")
    commands = parser.add_subparsers(dest="models_command", required=True, metavar="COMMAND")

    def command(name: str, text: str, run: Callable[[argparse.Namespace], int]) -> argparse.ArgumentParser:
        added: argparse.ArgumentParser = commands.add_parser(name, help=text, description=text)
        added.add_argument("--folder", default=None, help="models folder (default: the setting model_dir)")
        added.set_defaults(run=lambda args: _guarded(run, args))
        return added

    listing = command("list", "show the catalogue and what is here", run_list)
    listing.add_argument("--json", action="store_true", help="print JSON")
    getting = command("pull", "fetch a model and check it", run_pull)
    getting.add_argument(
        "name", metavar="NAME", nargs="?", default=load_catalogue().default, help="default: the smallest one"
    )
    getting.add_argument(
        "--source", choices=download.SOURCES, default="auto", help="where from (default: auto)"
    )
    command("path", "print the file of a model that is here", run_path).add_argument("name", metavar="NAME")
    checking = command("verify", "compute the digest of stored models anew", run_verify)
    checking.add_argument(
        "names", metavar="NAME", nargs="*", help="models to check (default: all that are here)"
    )
    command("remove", "delete a stored model", run_remove).add_argument("name", metavar="NAME")


def _guarded(run: Callable[[argparse.Namespace], int], args: argparse.Namespace) -> int:
    try:
        if args.folder is None:
            args.folder = load(gather()).settings.model_dir or None
        return run(args)
    except LspCompleteError as error:
        print(f"lsp-complete: {error}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        print("\nStopped. Run the same command again to go on.", file=sys.stderr)
        return INTERRUPTED


def run_list(args: argparse.Namespace) -> int:
    """Print every catalogue model and every file of the user's own in the models folder."""
    here = {item.name: item for item in installed.list_installed(args.folder)}
    models = load_catalogue().models
    if args.json:
        rows = [_row(model, here.get(model.name)) for model in models]
        rows += [
            {"name": item.name, "state": item.state, "size": item.size, "path": str(item.path)}
            for item in here.values()
            if item.model is None
        ]
        print(json.dumps(rows, indent=2, ensure_ascii=False))
        return OK
    width = max(len(model.short_name) for model in models)
    print(f"Models folder: {models_dir(args.folder)}\n")
    print(f"{'name':<{width}}  {'size':>8}  {'memory':>8}  {'here':<15}  licence")
    for model in models:
        item = here.get(model.name)
        partly = part_path(installed.stored_path(model, args.folder)).exists()
        state = item.state if item else "fetched in part" if partly else "-"
        size = megabytes(model.file.size) if model.file.size_exact else f"~{megabytes(model.file.size)}"
        remark = f"  {model.licence.note}" if not model.licence.commercial else ""
        memory = megabytes(least_need(model.shape, model.file.size))
        print(
            f"{model.short_name:<{width}}  {size:>8}  {memory:>8}  {state:<15}  {model.licence.title}{remark}"
        )
    for item in here.values():
        if item.model is None:
            print(
                f"{item.name:<{width}}  {megabytes(item.size):>8}  {'':>8}  {item.state:<15}  (not in the catalogue)"
            )
    print("\nFetch one: lsp-complete models pull NAME. Any GGUF file of yours works by its path.")
    return OK


def _row(model: CatalogueModel, item: installed.Installed | None) -> dict[str, object]:
    return {
        "name": model.name,
        "aliases": list(model.aliases),
        "title": model.title,
        "family": model.family,
        "kind": model.kind,
        "roles": list(model.roles),
        "licence": model.licence.id,
        "commercial": model.licence.commercial,
        "parameters": model.parameters,
        "size": item.size if item else model.file.size,
        "size_exact": model.file.size_exact,
        "memory": least_need(model.shape, model.file.size),
        "sha256": model.file.sha256,
        "verified_by_project": model.verified,
        "sources": [name for name, source in (("hub", model.hub), ("registry", model.registry)) if source],
        "state": item.state if item else "absent",
        "path": str(item.path) if item else None,
    }


def run_pull(args: argparse.Namespace) -> int:
    """Fetch a model, saying what its licence asks for first."""
    model = installed.find_model(args.name)
    if model.licence.note:
        print(
            f"{model.title}: {model.licence.title}. {model.licence.note} {model.licence.url}", file=sys.stderr
        )
    with shown_progress(model.short_name) as progress:
        path = download.pull(model, progress, source=args.source, folder=args.folder)
    print(path)
    return OK


def run_path(args: argparse.Namespace) -> int:
    """Print the path of a usable file; fails if there is none."""
    print(installed.resolve(args.name, folder=args.folder))
    return OK


def run_verify(args: argparse.Namespace) -> int:
    """Check the named models, or all that are here; fails if one is damaged."""
    names = args.names or [
        item.name for item in installed.list_installed(args.folder) if item.model is not None
    ]
    if not names:
        print("No catalogue model is here.")
        return OK
    code = OK
    for name in names:
        model = installed.find_model(name)
        with shown_progress(model.short_name) as progress:
            good = installed.verify(model, progress, folder=args.folder)
        print(
            f"{model.short_name}: "
            + ("good" if good else f"damaged. Fetch it again: lsp-complete models pull {model.short_name}")
        )
        code = code if good else FAILED
    return code


def run_remove(args: argparse.Namespace) -> int:
    """Delete a stored model."""
    freed = installed.remove(args.name, folder=args.folder)
    print(f"Removed {args.name}: {megabytes(freed)} freed.")
    return OK


@contextmanager
def shown_progress(title: str) -> Iterator[Progress]:
    """A progress callback that draws a bar on a terminal and prints plain lines elsewhere (standard error)."""
    if not sys.stderr.isatty():
        yield plain_progress(title, lambda line: print(line, file=sys.stderr, flush=True))
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn, TransferSpeedColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=None)

        def show(done: int, total: int, text: str) -> None:
            bar.update(task, description=f"{title}: {text}", completed=done, total=total)

        yield show


def plain_progress(title: str, write: Callable[[str], None]) -> Progress:
    """A progress callback that writes a line when the step changes and at each tenth of the whole."""
    last: list[object] = ["", -1]

    def show(done: int, total: int, text: str) -> None:
        tenth = 10 * done // total if total > 0 else 0
        if [text, tenth] != last:
            last[:] = [text, tenth]
            write(f"{title}: {text}: {megabytes(done)} of {megabytes(total)}")

    return show
