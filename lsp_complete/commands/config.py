"""`lsp-complete config`: the settings in force here, and where each comes from."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..cli import Sub


def add_parser(sub: Sub) -> None:
    """`config [--json | --schema | --path]`."""
    parser = sub.add_parser(
        "config",
        help="print the settings in force and where each comes from",
        description="Print the settings in force in a folder and where each comes from. An editor may change "
        "those it is allowed to; that is not known here.",
    )
    parser.add_argument(
        "folder", nargs="?", type=Path, default=Path(), help="workspace folder (default: this one)"
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="values, origins and problems as JSON")
    form.add_argument("--schema", action="store_true", help="JSON schema of lsp-complete.toml")
    form.add_argument("--path", action="store_true", help="the path of your own settings file, there or not")
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    from .. import config

    if args.schema:
        print(json.dumps(config.schema(), indent=2, ensure_ascii=False))
        return 0
    if args.path:
        print(config.user_file())
        return 0
    loaded = config.load(config.gather([args.folder]))
    if args.json:
        print(json.dumps(config.as_json(loaded), indent=2, ensure_ascii=False))
    else:
        print(config.as_text(loaded))
        for problem in loaded.problems:
            print(f"lsp-complete: {problem}", file=sys.stderr)
    return 1 if loaded.problems else 0
