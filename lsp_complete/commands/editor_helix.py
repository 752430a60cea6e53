"""Helix's `languages.toml`: one fragment per supported language, with the servers that Helix has for it anyway.

Strategy: a `language-servers` line replaces Helix's own list, so each fragment repeats that list and adds this server at its end.
Which servers those are depends on the version of Helix: the installed one is asked; without one, `editors/helix/servers.toml` answers, which
was made from Helix 25.07 by `scripts/gen-helix`.

Rules: a server that the asked Helix does not name is never written: Helix would complain of it at every file.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ..errors import LspCompleteError
from ..syntax.languages import all_languages

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Servers = Mapping[str, Sequence[str]]
"""Helix's language name to the names of its servers, in order."""

OTHER_NAMES = {
    "csharp": "c-sharp",
    "shellscript": "bash",
    "javascriptreact": "jsx",
    "typescriptreact": "tsx",
    "dockercompose": "docker-compose",
    "jinja-html": "jinja",
}
"""LSP language ids that Helix calls otherwise. (A name that Helix does not know is left out.)"""

HEAD = "Configured language server"
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_SERVER = re.compile(r"^  . ([^:]+):")


def names() -> list[str]:
    """What Helix may call the supported languages, sorted."""
    return sorted({OTHER_NAMES.get(i, i) for facts in all_languages().values() for i in facts.ids})


def shipped(folder: Path) -> dict[str, list[str]]:
    """The table of `servers.toml` in `editors/helix`. Raises LspCompleteError if it is missing or damaged."""
    try:
        table = tomllib.loads((folder / "servers.toml").read_text("utf-8"))["servers"]
    except (OSError, ValueError, KeyError) as error:
        raise LspCompleteError(f"{folder / 'servers.toml'} cannot be read ({type(error).__name__}); install again") from None
    return {str(name): [str(server) for server in servers] for name, servers in table.items()}


def asked(helix: str, run: Callable[[list[str]], str] | None = None) -> dict[str, list[str]]:
    """What the installed Helix says of each supported language. A few milliseconds per language; blocks."""
    reports = {name: (run or _run)([helix, "--health", name]) for name in names()}
    return {name: servers_in(report) for name, report in reports.items() if HEAD in report}


def servers_in(report: str) -> list[str]:
    """The names in a report of `hx --health LANGUAGE`, this server left out (a second run must not add it twice)."""
    found: list[str] = []
    inside = False
    for line in _COLOUR.sub("", report).splitlines():
        if line.startswith(HEAD):
            inside = True
        elif inside and (match := _SERVER.match(line)):
            found.append(match.group(1))
        elif inside:
            break
    return [name for name in found if name != "lsp-complete"]


def fragment(command: str, servers: Servers) -> str:
    """The file's text. command: what Helix starts."""
    parts = [f"[language-server.lsp-complete]\ncommand = {_quoted(command)}\n"]
    for name in sorted(servers):
        listed = ", ".join(_quoted(server) for server in (*servers[name], "lsp-complete"))
        parts.append(f"[[language]]\nname = {_quoted(name)}\nlanguage-servers = [{listed}]\n")
    return "\n".join(parts)


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _run(words: list[str]) -> str:
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, timeout=20, check=False, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise LspCompleteError(f"{words[0]} cannot be asked for its languages ({type(error).__name__})") from None
    return done.stdout
