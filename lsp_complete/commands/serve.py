"""`lsp-complete serve`: the language server on standard input and output or on loopback TCP."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..cli import Sub


def add_parser(sub: Sub) -> None:
    """`serve`; its arguments are also those of `lsp-complete` without a command."""
    parser = sub.add_parser("serve", help="run the language server", prog="lsp-complete")
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--stdio", action="store_true", help="serve on standard input and output (the default)"
    )
    where.add_argument(
        "--tcp", type=_port, metavar="PORT", help="serve one client on loopback TCP; 0 picks a port"
    )
    # Some clients add their process id to the command line; the protocol's own field is what is watched.
    parser.add_argument("--clientProcessId", help=argparse.SUPPRESS)
    parser.set_defaults(run=_run)


def _port(text: str) -> int:
    port = int(text) if text.isdecimal() else -1
    if not 0 <= port <= 65535:
        raise argparse.ArgumentTypeError("a port is a number from 0 to 65535")
    return port


def _run(args: argparse.Namespace) -> int:
    from ..lsp import server

    if args.tcp is not None:
        return server.run_tcp(args.tcp)
    if sys.stdin.isatty():
        print(
            "lsp-complete: waiting for an editor on standard input (a language server is started by an editor); "
            "Ctrl-C ends it, `lsp-complete --help` lists the commands",
            file=sys.stderr,
        )
    return server.run_stdio()
