"""Stand-ins for time, processes and state reports. No test here sleeps: what waits, waits for an event."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from lsp_complete.engine.api import CompletionRequest
from lsp_complete.engine.client import EngineClient
from lsp_complete.engine.connection import Connection, Dialer, dial
from lsp_complete.engine.fake import ScriptedEngine
from lsp_complete.engine.launch import EngineLaunch, ServeRules
from lsp_complete.engine.paths import Endpoint
from lsp_complete.engine.retry import ClientRules
from lsp_complete.engine.server import EngineServer
from lsp_complete.engine.transport import Peer, acquire, peer_of

REQUEST = CompletionRequest(prompt=(1, 2, 3), key="file:///a.py", time_limit_ms=1000.0)


class Clock:
    """Monotonic seconds that move only when told."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Sleeper:
    """A `sleep` that ends only by `wake`. `asked` waits until someone sleeps for so long."""

    def __init__(self) -> None:
        self.history: list[float] = []
        self._sleeping: list[tuple[float, asyncio.Future[None]]] = []
        self._waiters: list[tuple[float, asyncio.Future[None]]] = []

    async def __call__(self, seconds: float) -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.history.append(seconds)
        self._sleeping.append((seconds, future))
        for wanted, waiter in self._waiters:
            if wanted == pytest.approx(seconds) and not waiter.done():
                waiter.set_result(None)
        await future

    async def asked(self, seconds: float) -> None:
        if any(s == pytest.approx(seconds) and not f.done() for s, f in self._sleeping):
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append((seconds, waiter))
        await waiter

    async def wake(self, seconds: float) -> None:
        await self.asked(seconds)
        for s, future in self._sleeping:
            if s == pytest.approx(seconds) and not future.done():
                future.set_result(None)
                return


class States:
    """A StateCallback that remembers, and can be waited for."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str]] = []
        self._waiters: list[tuple[str, asyncio.Future[str]]] = []

    def __call__(self, state: str, message: str) -> None:
        self.seen.append((state, message))
        waiters, self._waiters = self._waiters, []
        for wanted, future in waiters:
            if wanted == state and not future.done():
                future.set_result(message)
            elif not future.done():
                self._waiters.append((wanted, future))

    async def next(self, state: str) -> str:
        """The message of the next report of `state`."""
        future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._waiters.append((state, future))
        return await future

    @property
    def names(self) -> list[str]:
        """The states in order, each run of equal ones once (a dying engine may hold its lock a moment longer)."""
        names = [state for state, _ in self.seen]
        return [name for n, name in enumerate(names) if n == 0 or names[n - 1] != name]


class Processes:
    """Engine "processes" inside this one: the real server and sockets around scripted engines."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.clock = Clock()
        self.make: Callable[[], ScriptedEngine] = ScriptedEngine
        self.rules = ServeRules()
        self.server_class = EngineServer
        self.servers: list[EngineServer] = []
        self.engines: list[ScriptedEngine] = []
        self.endpoints: list[Endpoint] = []
        self.hangs: list[str] = []
        self.versions: dict[int, str] = {}
        self.peer_check: Callable[..., Peer] = peer_of

    async def spawn(self, launch: EngineLaunch, endpoint: Endpoint) -> str:
        lock = acquire(endpoint)
        if lock is None:
            return "busy"
        engine = self.make()
        number = len(self.servers)
        extra = {"version": self.versions[number]} if number in self.versions else {}
        server = self.server_class(
            engine, endpoint, lock, self.rules, clock=self.clock, peer_check=self.peer_check,
            on_hang=self.hangs.append, **extra,
        )
        self.engines.append(engine)
        self.servers.append(server)
        self.endpoints.append(endpoint)
        await server.start()
        return "ok"

    async def start(self, name: str = "e-test", *, tcp: bool = False) -> Endpoint:
        endpoint = Endpoint(self.directory, name, tcp)
        assert await self.spawn(EngineLaunch("model.gguf"), endpoint) == "ok"
        return endpoint

    async def kill(self, index: int = -1) -> None:
        """As the system does it: no goodbye, connections cut, lock gone, socket file left behind."""
        server = self.servers[index]
        server._listener.close()
        server._lock.release()
        for session in list(server.sessions):
            session.abort()
            await session.ended.wait()


@pytest.fixture
def run_dir() -> Iterator[Path]:
    """A short private directory."""
    path = Path(tempfile.mkdtemp(prefix="lc"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
async def processes(run_dir: Path) -> AsyncIterator[Processes]:
    made = Processes(run_dir)
    yield made
    for server in made.servers:
        await asyncio.wait_for(server.close(), 30)  # a broken server must fail a test, not hang the run


@pytest.fixture
def sleeper() -> Sleeper:
    return Sleeper()


@pytest.fixture
def states() -> States:
    return States()


@pytest.fixture
async def make_client(
    processes: Processes, sleeper: Sleeper, states: States
) -> AsyncIterator[Callable[..., EngineClient]]:
    """Clients over in-process engines, with manual time."""
    made: list[EngineClient] = []

    def make(**options: object) -> EngineClient:
        defaults: dict[str, object] = {
            "launch": EngineLaunch("model.gguf"), "on_state": states, "rules": ClientRules(),
            "directory": processes.directory, "spawn": processes.spawn, "sleep": sleeper,
            "clock": processes.clock, "kill": lambda pid: None,
        }
        client = EngineClient(**{**defaults, **options})
        made.append(client)
        return client

    yield make
    for client in made:
        await client.close()


@pytest.fixture
async def connect_to() -> AsyncIterator[Callable[..., object]]:
    """Raw connections with the handshake done."""
    made: list[Connection] = []

    async def connect(endpoint: Endpoint, **options: object) -> Connection:
        connection = await dial(endpoint, Dialer(**options))
        made.append(connection)
        return connection

    yield connect
    for connection in made:
        await connection.close()
