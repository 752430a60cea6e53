"""`lsp-complete engine start|stop|status|logs|purge|serve`: the engine process that all editor windows share."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..cli import Sub


def add_parser(sub: Sub) -> None:
    """`engine` with its subcommands. Editors start the engine by themselves; this is for looking and mending."""
    parser = sub.add_parser("engine", help="start, stop and look at the engine process")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    start = commands.add_parser("start", help="start the engine, or find it running, and wait for its model")
    start.add_argument("--json", action="store_true", help="what was loaded, as JSON")
    start.set_defaults(run=_start)

    stop = commands.add_parser("stop", help="end all engines of this user")
    stop.set_defaults(run=_stop)

    status = commands.add_parser("status", help="show the engines of this user that run now")
    status.add_argument("--json", action="store_true", help="with all figures, as JSON")
    status.set_defaults(run=_status)

    logs = commands.add_parser("logs", help="print the end of the engine's log; it never holds source code")
    logs.add_argument(
        "--lines", type=_count, default=200, metavar="N", help="lines to print (default: %(default)s)"
    )
    logs.set_defaults(run=_logs)

    purge = commands.add_parser("purge", help="remove the prompts that are kept on disk, of all models")
    purge.set_defaults(run=_purge)

    # What starts the engine process itself; its arguments are the starter's business.
    serve = commands.add_parser("serve", add_help=False, prefix_chars="\0")
    serve.add_argument("arguments", nargs="*", help=argparse.SUPPRESS)
    serve.set_defaults(run=_serve)


def _count(text: str) -> int:
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError("the number of lines must be at least 1")
    return number


def _start(args: argparse.Namespace) -> int:
    from ..config import gather, load
    from ..engine import control
    from ..service.startup import engine_launch, model_path

    settings = load(gather()).settings
    info = control.start(engine_launch(settings, model_path(settings)))
    if args.json:
        print(json.dumps(asdict(info)))
    else:
        print(f"ready: {info.description} ({info.path}), {info.context} tokens, {info.slots} slots")
        if sys.stdout.isatty() and settings.engine.idle_exit_s:
            print(f"It ends by itself {settings.engine.idle_exit_s} s after its last client has left.")
    return 0


def _stop(_args: argparse.Namespace) -> int:
    from ..engine import control

    ended = control.stop()
    for status in ended:
        print(f"ended engine {status.name}, process {status.pid}")
    if not ended:
        print("no engine is running")
    return 0


def _status(args: argparse.Namespace) -> int:
    from ..engine import control

    found = control.status()
    print(json.dumps([asdict(status) for status in found]) if args.json else control.status_text(found))
    return 0


def _logs(args: argparse.Namespace) -> int:
    from ..engine import control

    text = control.logs(args.lines)
    if text:
        print(text.rstrip("\n"))
    else:
        print(
            "lsp-complete: there is no engine log yet; it is made when the engine first starts",
            file=sys.stderr,
        )
    return 0


def _purge(_args: argparse.Namespace) -> int:
    from ..engine import control
    from ..engine.promptfile import purge
    from ..service.startup import prompts_folder

    files, freed = purge(str(prompts_folder()))
    print(f"removed {files} files, {freed / 1e6:.1f} MB" if files else "no prompts are kept on disk")
    if control.status():
        print("An engine runs and may keep what it holds in memory again; `lsp-complete engine stop` before `purge` leaves nothing.")
    return 0


def _serve(args: argparse.Namespace) -> int:
    from ..engine import serve

    return serve.main(args.arguments)
