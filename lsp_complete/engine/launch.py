"""Starting the engine process, and hearing how the start went.

Strategy: a plain `subprocess.Popen` in a session of its own, watched by one daemon thread that reads the start
line and later reaps the process. (asyncio's own subprocesses kill their child when the loop closes; this child must outlive us.)

Rules:
- Settings go through a pipe. Arguments hold only the socket's directory and name.
- The child's working directory is the private one and its module path begins with this very package, so neither a
  repository that happens to be the current directory nor a relative PYTHONPATH entry decides what is run.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from lsp_complete.engine.paths import Endpoint
from lsp_complete.errors import EngineUnavailable


@dataclass(frozen=True, slots=True)
class ServeRules:
    """Limits of the engine process, in seconds and counts.

    idle_s: life after the last client left. grace_s: how far a request may outlive its own time limit.
    stall_s: how long the engine thread may have work without a step (a full batch of a large model on a slow CPU
    takes most of a minute). load_s: for the model to load.
    loop_s: how long the event loop may stand still. handshake_s: for a new connection to say hello.
    close_s: for an orderly end. tick_s: how often these are looked at.
    """

    idle_s: float = 60.0
    grace_s: float = 30.0
    stall_s: float = 180.0
    load_s: float = 900.0
    loop_s: float = 30.0
    handshake_s: float = 10.0
    close_s: float = 15.0
    tick_s: float = 1.0
    max_clients: int = 128

    def __post_init__(self) -> None:
        if self.idle_s < 0 or min(self.loop_s, self.close_s, self.tick_s) <= 0 or self.max_clients < 1:
            raise ValueError("times of the engine process must be positive")


@dataclass(frozen=True, slots=True)
class EngineLaunch:
    """What to start. options: `EngineOptions.as_dict()`. log_directory: "" is the user's own.

    factory: `module:function` that makes the engine in its process, see `serve`; "" loads exactly what the options say.
    """

    model_path: str
    options: Mapping[str, object] = field(default_factory=dict)
    rules: ServeRules = field(default_factory=ServeRules)
    log_directory: str = ""
    factory: str = ""

    def settings(self) -> dict[str, object]:
        """The engine options with the model's path."""
        return {**self.options, "model_path": self.model_path}

    def setup(self) -> bytes:
        """What the process reads from its standard input."""
        setup = {"options": self.settings(), "rules": asdict(self.rules), "log_directory": self.log_directory}
        return json.dumps(setup).encode()


Spawn = Callable[[EngineLaunch, Endpoint], Awaitable[str]]
"""Start an engine; gives "ok" or "busy" (another one holds the lock). Raises EngineUnavailable."""


def command(launch: EngineLaunch, endpoint: Endpoint) -> list[str]:
    """The command line of the engine process."""
    words = [sys.executable, "-m", "lsp_complete.engine.serve"]
    words += ["--directory", str(endpoint.directory), "--name", endpoint.name]
    if endpoint.tcp:
        words.append("--tcp")
    if launch.factory:
        words += ["--factory", launch.factory]
    return words


def child_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment with a module path that does not depend on the working directory."""
    import lsp_complete

    root = str(Path(lsp_complete.__file__).resolve().parent.parent)
    old = [os.path.abspath(p) for p in environ.get("PYTHONPATH", "").split(os.pathsep) if p]
    # llama.cpp's threads wait for each other at every operation. GNU OpenMP spins there for some milliseconds, which is
    # ruinous while another process wants a core (2 cores, one busy: 1,920 ms a token); waiting without spinning is slow
    # on a quiet machine (45 ms against 25). A short spin is as quick when quiet (26 ms) and bounded when busy (300 ms, until
    # the thread count follows: 40 ms with one).
    chosen = "OMP_WAIT_POLICY" in environ or "GOMP_SPINCOUNT" in environ
    waiting = {} if chosen else {"GOMP_SPINCOUNT": "10000"}
    return {**environ, **waiting, "PYTHONPATH": os.pathsep.join([root, *(p for p in old if p != root)])}


def _popen(launch: EngineLaunch, endpoint: Endpoint) -> subprocess.Popen[bytes]:
    flags = 0
    if sys.platform == "win32":
        flags = subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.DETACHED_PROCESS
    return subprocess.Popen(
        command(launch, endpoint),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=endpoint.directory,
        env=child_environment(os.environ),
        start_new_session=True,
        creationflags=flags,
    )


def _start(launch: EngineLaunch, endpoint: Endpoint, tell: Callable[[str], None]) -> None:
    """Thread: start, hand over the settings, tell the start line ("" if there was none), then reap."""
    try:
        process = _popen(launch, endpoint)
    except OSError as error:
        tell(f"error the engine process cannot be started ({error.strerror})")
        return
    assert process.stdin is not None and process.stdout is not None
    with contextlib.suppress(OSError):
        process.stdin.write(launch.setup())
        process.stdin.close()
    line = process.stdout.readline().decode("utf-8", "replace").strip()
    process.stdout.close()
    tell(line)
    process.wait()


async def spawn(launch: EngineLaunch, endpoint: Endpoint) -> str:
    """Start an engine process and wait until it listens, or says why not. See `Spawn`."""
    loop = asyncio.get_running_loop()
    started: asyncio.Future[str] = loop.create_future()

    def arrive(line: str) -> None:
        if not started.done():
            started.set_result(line)

    def tell(line: str) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(arrive, line)

    threading.Thread(target=_start, args=(launch, endpoint, tell), name="engine-start", daemon=True).start()
    line = await started
    if line in ("ok", "busy"):
        return line
    if line.startswith("error "):
        raise EngineUnavailable(line[len("error ") :])
    raise EngineUnavailable("the engine process ended before it listened; see `lsp-complete engine logs`")
