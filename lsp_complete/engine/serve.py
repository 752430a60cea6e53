"""The engine process: `python -m lsp_complete.engine.serve`, started by `launch.spawn`, never by hand.

Strategy: settings come as JSON on standard input (arguments and environment can be read by other programs), one
line on standard output says how the start went (`ok`, `busy`, `error …`), then both are closed and the log is the only way out.

Rules:
- Of two processes started at once for one endpoint the one that gets the lock serves; the other says `busy` and ends. A lock
  whose holder does not listen (it is ending, or has not begun) is waited for.
- A hung event loop ends the process by faulthandler's own thread, which needs no interpreter lock.
- The memory killer should take this process rather than an editor: it raises its own score.
- `--factory module:function` makes the engine: the product's joins the memory plan with the loading, tests have their own. No
  setting gives it.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import faulthandler
import importlib
import json
import logging
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from lsp_complete import __version__
from lsp_complete.engine.launch import ServeRules
from lsp_complete.engine.logs import PrivateLog, remove_stale
from lsp_complete.engine.paths import Endpoint, check_private, log_directory
from lsp_complete.engine.server import EngineServer, SharedEngine
from lsp_complete.engine.transport import Lock, acquire_or_join
from lsp_complete.errors import EngineUnavailable, LspCompleteError

log = logging.getLogger(__name__)

EXIT_MODEL = 3
EXIT_HUNG = 70
_SETUP_LIMIT = 1 << 20

Factory = Callable[[dict[str, Any]], SharedEngine]


def local_engine(options: dict[str, Any]) -> SharedEngine:
    """The real engine. Imported late: only this process may load llama.cpp."""
    from lsp_complete.engine.local import LocalEngine
    from lsp_complete.engine.options import EngineOptions

    return LocalEngine(EngineOptions.from_dict(options))


def load_factory(name: str) -> Factory:
    """The engine factory `module:function`; "" is the real one. Raises EngineUnavailable."""
    if not name:
        return local_engine
    module, _, function = name.partition(":")
    try:
        factory: Factory = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        raise EngineUnavailable(f"engine factory {name!r} cannot be loaded ({type(error).__name__})") from None
    return factory


def read_setup(data: bytes) -> tuple[dict[str, Any], ServeRules, Path]:
    """Engine options, rules and log directory from standard input. Raises EngineUnavailable."""
    try:
        setup = json.loads(data)
        options, rules = setup["options"], ServeRules(**setup["rules"])
        directory = Path(setup["log_directory"]) if setup["log_directory"] else log_directory()
        if not isinstance(options, dict):
            raise ValueError("out of range")
    except (ValueError, KeyError, TypeError):
        raise EngineUnavailable("the engine's settings cannot be read; start it with `lsp-complete engine start`") from None
    return options, rules, directory


def _say(word: str) -> None:
    """Tell the starter how it went. It may be gone already."""
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.write(" ".join(word.split()) + "\n")
        sys.stdout.flush()


def _detach() -> None:
    """Let go of the starter's pipes."""
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1):
        with contextlib.suppress(OSError):
            os.dup2(null, fd)
    os.close(null)


def _offer_to_memory_killer() -> None:
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("500", encoding="ascii")


def start_log(directory: Path, name: str) -> PrivateLog:
    """Send the program's log, warnings of libraries and standard error to the engine's log file."""
    remove_stale(directory)
    handler = PrivateLog(directory / f"{name}.log")
    handler.take_stderr()
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("lsp_complete").setLevel(logging.INFO)
    logging.raiseExceptions = False
    return handler


async def _keep_alive_watch(rules: ServeRules) -> None:
    """Re-arm the dead man's switch as long as the event loop turns."""
    while True:
        faulthandler.dump_traceback_later(rules.loop_s, exit=True, file=2)
        await asyncio.sleep(min(rules.tick_s, rules.loop_s / 4))


def _end_hung(reason: str) -> None:
    """End without waiting for a thread that hangs. The traces go to the log."""
    faulthandler.dump_traceback(file=2, all_threads=True)
    os._exit(EXIT_HUNG)


async def _serve(factory: Factory, options: dict[str, Any], endpoint: Endpoint, lock: Lock, rules: ServeRules) -> int:
    try:
        engine = factory(options)
    except (ValueError, TypeError) as error:
        raise EngineUnavailable(f"an engine setting cannot be used: {error}") from None
    server = EngineServer(engine, endpoint, lock, rules, on_hang=_end_hung)
    loop = asyncio.get_running_loop()
    for name in ("SIGTERM", "SIGINT"):
        if hasattr(signal, name):
            with contextlib.suppress(NotImplementedError):
                loop.add_signal_handler(getattr(signal, name), server.ask_stop, f"it got {name}")
    watch = asyncio.create_task(_keep_alive_watch(rules))
    await server.start()
    _say("ok")
    _detach()
    log.info("engine %s started as %s", __version__, endpoint.name)
    await server.run()
    watch.cancel()
    faulthandler.dump_traceback_later(rules.close_s, exit=True, file=2)
    await server.close()
    faulthandler.cancel_dump_traceback_later()
    return EXIT_MODEL if server.failure else 0


def _run(args: argparse.Namespace) -> int:
    endpoint = Endpoint(Path(args.directory), args.name, args.tcp)
    check_private(endpoint.directory)
    options, rules, logs = read_setup(sys.stdin.buffer.read(_SETUP_LIMIT))
    factory = load_factory(args.factory)
    lock = acquire_or_join(endpoint, rules.close_s)
    if lock is None:
        _say("busy")
        return 0
    start_log(logs, endpoint.name)
    faulthandler.enable(file=2)
    _offer_to_memory_killer()
    try:
        return asyncio.run(_serve(factory, options, endpoint, lock, rules))
    finally:
        lock.release()


def main(argv: Sequence[str] | None = None) -> int:
    """Run the engine process until nobody needs it. Gives the exit status."""
    parser = argparse.ArgumentParser(prog="lsp-complete engine serve")
    parser.add_argument("--directory", required=True)
    parser.add_argument("--name", required=True)
    parser.add_argument("--tcp", action="store_true")
    parser.add_argument("--factory", default="")
    args = parser.parse_args(argv)
    os.umask(0o077)
    if hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        return _run(args)
    except LspCompleteError as error:
        log.error("the engine cannot start: %s", error)
        _say(f"error {error}")
        return 1


if __name__ == "__main__":
    sys.exit(main())
