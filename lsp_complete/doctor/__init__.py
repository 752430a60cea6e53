"""`lsp-complete doctor`: what is installed, how fast this machine is, what is wrong and how to mend it.

Strategy: each check is a function from what was found to findings, so that checks need no machine in tests. What may
end a process (loading llama.cpp, running a model) runs in a child.

Rules: nothing here connects anywhere or changes a setting. Exit status 1 if something keeps suggestions from working.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lsp_complete.cli import Sub


def add_parser(sub: Sub) -> None:
    """`doctor [--memory [MODEL]] [--no-measure] [--json]`."""
    parser = sub.add_parser(
        "doctor",
        help="check this installation and measure this machine",
        description="Check what is installed, measure the machine with a model that is here, and say what to mend.",
    )
    parser.add_argument(
        "--memory",
        nargs="?",
        const="",
        metavar="MODEL",
        help="memory of a model by context and KV type, against what is free",
    )
    parser.add_argument("--no-measure", action="store_true", help="do not run a model (a few seconds)")
    parser.add_argument("--json", action="store_true", help="everything as JSON")
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    if args.memory is not None:
        from lsp_complete.doctor.memory import run_memory

        return run_memory(args.memory, args.json)
    from lsp_complete.doctor.report import run_report

    return run_report(measure=not args.no_measure, as_json=args.json)
