"""The command line. No arguments: the language server on standard input and output.

Strategy: the first word decides which command's module is imported, so that the server starts without loading what
only `bench` or `models` need. A command's module adds its own parser.

Rules:
- Standard output belongs to the protocol, or to what the command was asked for; everything else goes to standard error.
- An error is one line that says what happened and what to do. Exit status: 0 done, 1 failed, 2 wrong usage, 130
  interrupted. LSP_COMPLETE_DEBUG=1 shows the traceback instead.
"""

from __future__ import annotations

import argparse
import codecs
import contextlib
import importlib
import io
import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NoReturn

from . import __version__
from .errors import LspCompleteError

if TYPE_CHECKING:
    Sub = argparse._SubParsersAction[argparse.ArgumentParser]

COMMANDS: dict[str, tuple[str, str]] = {
    "serve": ("lsp_complete.commands.serve", "run the language server (what no command does, too)"),
    "complete": ("lsp_complete.commands.complete", "suggest once at a place in a file"),
    "models": ("lsp_complete.models.cli_models", "list, get, check and remove models"),
    "quantize": ("lsp_complete.commands.quantize", "make a smaller file of a model, to try what a precision costs"),
    "engine": ("lsp_complete.commands.engine", "start, stop and look at the engine process"),
    "editor": ("lsp_complete.commands.editor", "print or install what an editor needs"),
    "serve-http": ("lsp_complete.commands.serve_http", "answer OpenAI-style requests on loopback, for Zed and others"),
    "config": ("lsp_complete.commands.config", "print the settings in force and where each comes from"),
    "doctor": ("lsp_complete.doctor", "check this installation and measure this machine"),
    "stats": ("lsp_complete.commands.stats", "show latency, hit rates and engines of this user's servers"),
    "dashboard": ("lsp_complete.commands.dashboard", "show the figures as a local page, until Ctrl-C"),
    "replay": ("lsp_complete.measure.replay", "replay recorded sessions and compare runs"),
    "bench": ("lsp_complete.measure.bench", "measure speed and quality"),
    "version": ("lsp_complete.commands.version", "print the versions that matter in a report"),
}
"""Each command: the module with its `add_parser(sub)`, and one line of help."""

EXIT_FAILED, EXIT_USAGE, EXIT_INTERRUPTED = 1, 2, 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; gives the exit status. Raises SystemExit only for `--help` and wrong usage."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    _tolerant_output()
    try:
        return _run(arguments)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        _close_output()
        return EXIT_FAILED
    except Exception as error:
        if os.environ.get("LSP_COMPLETE_DEBUG"):
            raise
        print(f"lsp-complete: {_describe(error)}", file=sys.stderr)
        return EXIT_FAILED


def _run(arguments: list[str]) -> int:
    command = command_of(arguments)
    if command is None and arguments and not arguments[0].startswith("-"):
        print(
            f"lsp-complete: there is no command `{arguments[0]}`; there are {', '.join(COMMANDS)}",
            file=sys.stderr,
        )
        return EXIT_USAGE
    if command is None and (not arguments or arguments[0] not in ("-h", "--help", "-V", "--version")):
        arguments = ["serve", *arguments]
        command = "serve"
    parser = build_parser(command)
    if command is not None and arguments == [command] and (lacking := _needs_subcommand(parser, command)):
        lacking.print_help(sys.stderr)
        return EXIT_USAGE
    parsed = parser.parse_args(arguments)
    run: Callable[[argparse.Namespace], int | None] = parsed.run
    return run(parsed) or 0


def _needs_subcommand(parser: argparse.ArgumentParser, command: str) -> argparse.ArgumentParser | None:
    """The parser of `command` if it has commands of its own, else None."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            own: argparse.ArgumentParser = action.choices[command]
            return own if any(isinstance(inner, argparse._SubParsersAction) for inner in own._actions) else None
    return None


def command_of(arguments: Sequence[str]) -> str | None:
    """The command if the first word is one, else None."""
    return arguments[0] if arguments and arguments[0] in COMMANDS else None


def build_parser(command: str | None) -> argparse.ArgumentParser:
    """The parser in which only `command` knows its own arguments (None: no command does)."""
    parser = argparse.ArgumentParser(
        prog="lsp-complete",
        description="Local code completion as a language server. Without a command it serves an editor\n"
        "on standard input and output; `lsp-complete --tcp PORT` serves on loopback TCP.",
        epilog="`lsp-complete COMMAND --help` tells more. The first thing to run:\n  lsp-complete models pull",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("-V", "--version", action="version", version=f"lsp-complete {__version__}")
    sub = parser.add_subparsers(metavar="COMMAND", required=True)
    for name, (module, summary) in COMMANDS.items():
        if name == command:
            importlib.import_module(module).add_parser(sub)
        else:
            sub.add_parser(name, help=summary, add_help=False)
    return parser


def _describe(error: Exception) -> str:
    if isinstance(error, LspCompleteError):
        return str(error)
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    detail = " ".join(str(error).split())[:200]
    return (
        f"internal error, {type(error).__name__}{': ' + detail if detail else ''}; "
        "run it again with LSP_COMPLETE_DEBUG=1 for the traceback to put into a report"
    )


def _tolerant_output() -> None:
    """A character that the terminal's encoding lacks is shown as an escape instead of ending the command; a file name of odd bytes
    goes out as it is."""
    output = sys.stdout
    if isinstance(output, io.TextIOWrapper):
        utf8 = codecs.lookup(output.encoding).name == "utf-8"
        output.reconfigure(errors="surrogateescape" if utf8 else "backslashreplace")


def _close_output() -> None:
    """The reader of our output has gone; keep Python from complaining about it at exit."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def script() -> NoReturn:
    """`python -m lsp_complete`."""
    sys.exit(main())
