"""`lsp-complete engine start|stop|status|logs`: plain functions that the command line and the doctor call.

Strategy: engines are found by the files in the private directory, asked as observers (which keeps none alive),
and answered with values; `status_text` and the others turn values into words.

Rules:
- Each function runs an event loop of its own: not to be called from within one (use the `_…` coroutines there).
- An engine that does not answer is shown as such; only `stop` ends one by force, and only one of this user that
  the kernel (or, over TCP, the secret) vouches for.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from pathlib import Path

from lsp_complete.engine.api import ModelInfo
from lsp_complete.engine.client import EngineClient
from lsp_complete.engine.connection import Connection, Dialer, VersionMismatch, connect
from lsp_complete.engine.launch import EngineLaunch, Spawn, spawn
from lsp_complete.engine.logs import tail
from lsp_complete.engine.paths import WINDOWS, Endpoint, endpoint_names, log_directory, private_directories
from lsp_complete.engine.retry import Sleep, kill
from lsp_complete.engine.transport import wait_until_free
from lsp_complete.engine.wire import from_json
from lsp_complete.errors import EngineUnavailable, LspCompleteError

ANSWER_S = 5.0
"""Seconds that an engine has for an answer to status or stop."""

END_S = 20.0
"""Seconds that an engine has for its end once it has said goodbye (it saves prompts): a little more than it gives itself."""


@dataclass(frozen=True, slots=True)
class EngineStatus:
    """One engine process. state: "ready" | "loading" | "failed" | "other version" | "no answer".

    info: the model, if loaded. stats: the engine's figures with those of the process under "process".
    """

    name: str
    state: str
    pid: int = 0
    message: str = ""
    info: ModelInfo | None = None
    stats: dict[str, object] | None = None


def start(
    launch: EngineLaunch, *, directory: Path | None = None, tcp: bool = WINDOWS, spawn: Spawn = spawn
) -> ModelInfo:
    """Start the engine, or find it, and wait for its model. Raises ModelError, MemoryPlanError, EngineUnavailable.

    It ends by itself after its idle time without a client, as always.
    """

    async def run() -> ModelInfo:
        client = EngineClient(launch, directory=directory, tcp=tcp, spawn=spawn)
        try:
            return await client.info()
        finally:
            await client.close()

    return asyncio.run(run())


def status(*, directory: Path | None = None, tcp: bool = WINDOWS) -> list[EngineStatus]:
    """All engines of this user that run now."""
    return asyncio.run(find_all(directory, tcp))


def stop(*, directory: Path | None = None, tcp: bool = WINDOWS) -> list[EngineStatus]:
    """End all engines of this user and wait for their end; gives what was ended. Their editors do not start them again unasked."""
    return asyncio.run(stop_all(directory, tcp))


def logs(lines: int = 200, directory: Path | None = None) -> str:
    """The last lines of the engine log that was written to last; "" if there is none."""
    return tail(directory or log_directory(), lines)


async def find_all(directory: Path | None, tcp: bool, sleep: Sleep = asyncio.sleep) -> list[EngineStatus]:
    """As `status`, inside an event loop."""
    found = await asyncio.gather(*(_ask(e, sleep) for e in _endpoints(directory, tcp)))
    return [s for s in found if s is not None]


async def stop_all(directory: Path | None, tcp: bool, sleep: Sleep = asyncio.sleep) -> list[EngineStatus]:
    """As `stop`, inside an event loop."""
    ended = await asyncio.gather(*(_stop(e, sleep) for e in _endpoints(directory, tcp)))
    return [s for s in ended if s is not None]


def _endpoints(directory: Path | None, tcp: bool) -> list[Endpoint]:
    places = private_directories() if directory is None else [directory]
    return [Endpoint(place, name, tcp) for place in places for name in endpoint_names(place)]


async def _limited(connection: Connection, sleep: Sleep, by_force: bool) -> None:
    """Cut the connection (and end the process, by_force) once ANSWER_S are over."""
    await sleep(ANSWER_S)
    if not connection.lost.is_set():
        if by_force:
            with contextlib.suppress(OSError):
                kill(connection.pid)
        connection.cut("no answer")


async def _ask(endpoint: Endpoint, sleep: Sleep) -> EngineStatus | None:
    try:
        connection = await connect(endpoint, Dialer(observer=True))
    except EngineUnavailable:
        return None
    limit = asyncio.get_running_loop().create_task(_limited(connection, sleep, by_force=False))
    try:
        await connection.handshake(Dialer(observer=True))
        stats = await connection.call("stats")
        return await _describe(endpoint, connection, stats if isinstance(stats, dict) else {})
    except VersionMismatch as error:
        return EngineStatus(endpoint.name, "other version", connection.pid, str(error))
    except LspCompleteError as error:
        return EngineStatus(endpoint.name, "no answer", connection.pid, str(error))
    finally:
        limit.cancel()
        await connection.close()


async def _describe(endpoint: Endpoint, connection: Connection, stats: dict[str, object]) -> EngineStatus:
    process = stats.get("process")
    state = str(process.get("state", "ready")) if isinstance(process, dict) else "ready"
    info, message = None, ""
    if state != "loading":
        try:
            info = from_json(ModelInfo, await connection.call("info"))
        except LspCompleteError as error:
            message = str(error)
    return EngineStatus(endpoint.name, state, connection.pid, message, info, stats)


async def _stop(endpoint: Endpoint, sleep: Sleep) -> EngineStatus | None:
    dialer = Dialer(observer=True)
    try:
        connection = await connect(endpoint, dialer)
    except EngineUnavailable:
        return None
    limit = asyncio.get_running_loop().create_task(_limited(connection, sleep, by_force=True))
    try:
        await connection.handshake(dialer)
        connection.ask_stop()
        await connection.lost.wait()
        return EngineStatus(endpoint.name, "ended", connection.pid, connection.reason)
    except VersionMismatch:
        kill(connection.pid)  # it does not understand us; the kernel says whose it is
        return EngineStatus(endpoint.name, "ended", connection.pid, "an engine of another version")
    except LspCompleteError as error:
        return EngineStatus(endpoint.name, "ended", connection.pid, str(error))
    finally:
        limit.cancel()
        await connection.close()
        await asyncio.to_thread(wait_until_free, endpoint, END_S, pid=connection.pid)  # until then it may write


def status_text(found: list[EngineStatus]) -> str:
    """A few lines for a person."""
    if not found:
        return "no engine is running"
    return "\n".join(_lines(s) for s in found)


def _lines(status: EngineStatus) -> str:
    head = f"engine {status.name}: {status.state}, process {status.pid}"
    if status.message:
        head += f" ({status.message})"
    lines = [head]
    if status.info is not None:
        info = status.info
        lines.append(f"  model    {info.description} ({info.path})")
        lines.append(f"  context  {info.context} tokens, {info.slots} slots")
    process = (status.stats or {}).get("process")
    if isinstance(process, dict):
        lines.append(f"  clients  {process.get('clients')}, requests running {process.get('in_flight')}")
        lines.append(
            f"  requests {process.get('served')} answered, {process.get('cancelled')} cancelled, "
            f"{process.get('failed')} failed"
        )
        rss = process.get("rss_bytes")
        if isinstance(rss, int):
            lines.append(f"  memory   {rss / 2**20:.0f} MB, up {process.get('uptime_s') or 0:.0f} s")
    return "\n".join(lines)
