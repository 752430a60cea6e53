"""`lsp-complete version`: what a report should name."""

from __future__ import annotations

import argparse
import json
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from .. import __version__

if TYPE_CHECKING:
    from ..cli import Sub

_NAMED = ("llama-cpp-python", "pygls", "lsprotocol", "tree-sitter", "numpy")


def add_parser(sub: Sub) -> None:
    """`version [--json]`."""
    parser = sub.add_parser("version", help="print the versions that matter in a report")
    parser.add_argument("--json", action="store_true", help="as JSON")
    parser.set_defaults(run=_run)


def versions() -> dict[str, str]:
    """Our version and those of what it stands on; `missing` for what is not installed."""
    found = {"lsp-complete": __version__, "python": platform.python_version(), "system": platform.platform()}
    for name in _NAMED:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "missing"
    return found


def _run(args: argparse.Namespace) -> int:
    found = versions()
    if args.json:
        print(json.dumps(found))
    else:
        print(f"lsp-complete {__version__}")
        rest = {name: value for name, value in found.items() if name != "lsp-complete"}
        print("\n".join(f"  {name} {value}" for name, value in rest.items()))
    return 0 if sys.version_info >= (3, 10) else 1
