"""The client: first start, restart with back-off, failure without a loop, and requests meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from lsp_complete.engine.client import EngineClient
from lsp_complete.engine.connection import Dialer
from lsp_complete.engine.fake import ScriptedEngine
from lsp_complete.engine.launch import EngineLaunch
from lsp_complete.engine.paths import Endpoint
from lsp_complete.engine.retry import ClientRules, back_off, kill
from lsp_complete.engine.server import EngineServer
from lsp_complete.engine.transport import acquire
from lsp_complete.errors import EngineUnavailable, MemoryPlanError, ModelError, RequestFailed

from .conftest import REQUEST, Processes, Sleeper, States

MakeClient = Callable[..., EngineClient]
HANG_LIMIT = 1.0 + ClientRules().grace_s
"""Seconds after which REQUEST's engine counts as hung."""


async def test_first_use_starts_the_engine_and_answers_unavailable_at_once(
    processes: Processes, make_client: MakeClient, states: States
) -> None:
    client = make_client()
    assert processes.servers == []
    with pytest.raises(EngineUnavailable, match="starting"):
        await client.complete(REQUEST)
    assert (await client.info()).architecture == "fake"
    assert (await client.complete(REQUEST)).candidates[0].text == b"answer"
    assert states.names == ["starting", "ready"] and len(processes.servers) == 1


async def test_ten_clients_share_one_engine(processes: Processes, make_client: MakeClient) -> None:
    clients = [make_client() for _ in range(10)]
    await clients[0].info()
    await asyncio.gather(*(c.info() for c in clients))
    await asyncio.gather(*(c.complete(REQUEST) for c in clients))
    stats = await clients[0].stats()
    assert len(processes.servers) == 1 and stats["process"]["clients"] == 10 and stats["done"] == 10


async def test_started_at_the_same_moment_one_engine_wins(
    processes: Processes, make_client: MakeClient, sleeper: Sleeper
) -> None:
    clients = [make_client() for _ in range(5)]
    waiting = [asyncio.create_task(c.info()) for c in clients]
    for task in waiting:
        await task
    assert len(processes.servers) == 1


async def test_deltas_and_cancel(processes: Processes, make_client: MakeClient) -> None:
    processes.make = lambda: ScriptedEngine([b"ab"], deltas=True)
    client = make_client()
    await client.info()
    engine, seen = processes.engines[0], []
    await client.complete(REQUEST, seen.append)
    assert seen == [b"a", b"b"]
    engine.hold = True
    task = asyncio.create_task(client.complete(REQUEST))
    await engine.wait_calls(2)
    task.cancel()
    await engine.wait_for(lambda: engine.calls[1].outcome == "cancelled")


async def test_an_error_in_the_delta_callback_is_the_callers(processes: Processes, make_client: MakeClient) -> None:
    processes.make = lambda: ScriptedEngine([b"ab"], deltas=True)
    client = make_client()
    await client.info()

    def bad(data: bytes) -> None:
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        await client.complete(REQUEST, bad)
    assert (await client.complete(REQUEST)).candidates[0].text == b"ab"


async def test_killed_in_mid_request(
    processes: Processes, make_client: MakeClient, sleeper: Sleeper, states: States
) -> None:
    processes.make = lambda: ScriptedEngine(hold=True)
    client = make_client()
    await client.info()
    task = asyncio.create_task(client.complete(REQUEST))
    await processes.engines[0].wait_calls(1)
    restarting = asyncio.create_task(states.next("restarting"))
    await asyncio.sleep(0)
    processes.make = ScriptedEngine
    await processes.kill()
    with pytest.raises(EngineUnavailable):
        await task
    await restarting
    with pytest.raises(EngineUnavailable, match="restarted"):
        await client.complete(REQUEST)
    info = asyncio.create_task(client.info())
    await sleeper.wake(0.1)
    await info
    assert (await client.complete(REQUEST)).candidates[0].text == b"answer"
    assert states.names == ["starting", "ready", "restarting", "ready"]


async def test_info_asked_at_the_very_moment_of_death_waits_for_the_next_engine(
    processes: Processes, make_client: MakeClient, sleeper: Sleeper
) -> None:
    client = make_client()
    await client.info()
    client._connection.cut("died")  # its supervisor has not run since
    task = asyncio.create_task(client.info())
    await sleeper.asked(0.1)
    assert not task.done()
    await sleeper.wake(0.1)
    await task
    assert (await client.complete(REQUEST)).candidates


async def test_back_off_grows_with_early_deaths_and_starts_anew_after_a_long_life(
    processes: Processes, make_client: MakeClient, sleeper: Sleeper
) -> None:
    client = make_client()
    await client.info()
    for delay in (0.1, 0.2, 0.4):
        await processes.kill()
        await sleeper.wake(delay)
        await client.info()
    processes.clock.now += 60
    await processes.kill()
    await sleeper.wake(0.1)
    await client.info()


def test_back_off_has_limits() -> None:
    rules = ClientRules()
    assert back_off(rules, 1, False) == 0.1 and back_off(rules, 10_000, False) == 30.0
    assert back_off(rules, 10_000, True) == 1.0


@pytest.mark.parametrize("error", [ModelError("the file is truncated"), MemoryPlanError("needs 9 GB")])
async def test_a_model_that_cannot_be_used_fails_without_a_loop(
    processes: Processes, make_client: MakeClient, states: States, sleeper: Sleeper, error: Exception
) -> None:
    processes.make = lambda: ScriptedEngine(info_error=error)
    client = make_client()
    with pytest.raises(type(error), match=str(error)):
        await client.info()
    for _ in range(3):
        with pytest.raises(type(error)):
            await client.info()
        with pytest.raises(EngineUnavailable, match=str(error)):
            await client.complete(REQUEST)
    assert states.seen == [("starting", ""), ("failed", str(error))]
    assert len(processes.servers) == 1 and 0.1 not in sleeper.history


async def test_failed_is_left_when_the_file_changes(
    processes: Processes, make_client: MakeClient, run_dir: Path
) -> None:
    model = run_dir / "m.gguf"
    model.write_bytes(b"bad")
    processes.make = lambda: ScriptedEngine(info_error=ModelError("bad"))
    client = make_client(launch=EngineLaunch(str(model)))
    with pytest.raises(ModelError):
        await client.info()
    processes.make = ScriptedEngine
    model.write_bytes(b"good now")
    assert (await client.info()).architecture == "fake"


async def test_a_model_that_did_not_fit_is_tried_again_after_a_while(
    processes: Processes, make_client: MakeClient, states: States
) -> None:
    processes.make = lambda: ScriptedEngine(info_error=MemoryPlanError("too large"))
    client = make_client()
    with pytest.raises(MemoryPlanError):
        await client.info()
    await end_of(processes.servers[0])
    processes.make = ScriptedEngine
    processes.clock.now += ClientRules().memory_retry_s - 1
    with pytest.raises(MemoryPlanError):
        await client.info()
    processes.clock.now += 1
    with pytest.raises(EngineUnavailable):  # asking is what starts it
        await client.complete(REQUEST)
    assert (await client.info()).architecture == "fake"
    assert states.names == ["starting", "failed", "starting", "ready"]


async def end_of(server: EngineServer) -> None:
    """The engine ends, all its sessions first."""
    for session in list(server.sessions):
        await session.ended.wait()
    await server.close()


async def test_failed_is_left_by_restart(processes: Processes, make_client: MakeClient) -> None:
    processes.make = lambda: ScriptedEngine(info_error=ModelError("bad"))
    client = make_client()
    with pytest.raises(ModelError):
        await client.info()
    await end_of(processes.servers[0])
    processes.make = ScriptedEngine
    await client.restart()
    assert (await client.info()).architecture == "fake"


async def test_an_engine_that_never_gets_ready_is_given_up(
    make_client: MakeClient, sleeper: Sleeper, states: States
) -> None:
    started = []

    async def spawn(launch: EngineLaunch, endpoint: Endpoint) -> str:
        started.append(endpoint.name)
        raise EngineUnavailable("it crashed")

    client = make_client(spawn=spawn)
    task = asyncio.create_task(client.info())
    for delay in (0.1, 0.2, 0.4, 0.8):
        await sleeper.wake(delay)
    with pytest.raises(EngineUnavailable, match="5 times; last: it crashed"):
        await task
    assert len(started) == 5 and states.names[-1] == "failed"
    with pytest.raises(EngineUnavailable):
        await client.info()
    assert len(started) == 5


async def test_while_another_holds_the_lock_it_is_tried_again(
    processes: Processes, make_client: MakeClient, sleeper: Sleeper
) -> None:
    seen: list[Endpoint] = []

    async def spawn(launch: EngineLaunch, endpoint: Endpoint) -> str:
        seen.append(endpoint)
        if len(seen) == 1:
            held.append(acquire(endpoint))
        return await processes.spawn(launch, endpoint)

    held: list[object] = []
    client = make_client(spawn=spawn)
    task = asyncio.create_task(client.info())
    for delay in (0.1, 0.2, 0.4, 0.8, 1.0, 1.0):
        await sleeper.wake(delay)
    await sleeper.asked(1.0)
    held[0].release()
    await sleeper.wake(1.0)
    assert (await task).architecture == "fake"


async def test_an_engine_of_another_version_is_left_alone(processes: Processes, make_client: MakeClient) -> None:
    old = make_client(dialer=Dialer(version="0.0.1"))
    processes.versions[0] = "0.0.1"
    await old.info()
    new = make_client()
    await new.info()
    assert (await old.complete(REQUEST)).candidates and (await new.complete(REQUEST)).candidates
    assert len(processes.servers) == 2 and processes.endpoints[0].name != processes.endpoints[1].name
    third = make_client()
    await third.info()
    assert len(processes.servers) == 2


async def test_a_program_that_was_updated_meanwhile_is_told_of_and_not_started_again_and_again(
    processes: Processes, make_client: MakeClient, states: States
) -> None:
    processes.versions = dict.fromkeys(range(8), "9.9.9")
    client = make_client()
    with pytest.raises(EngineUnavailable, match="restart the editor"):
        await client.info()
    assert len(processes.servers) == 1 and states.names == ["starting", "failed"]
    with pytest.raises(EngineUnavailable, match="restart the editor"):
        await client.complete(REQUEST)


async def test_stopped_by_the_user_stays_stopped_until_someone_starts_it(
    processes: Processes, make_client: MakeClient, states: States
) -> None:
    client, other = make_client(), make_client(on_state=None)
    await client.info()
    await other.info()
    stopped = asyncio.create_task(states.next("stopped"))
    await asyncio.sleep(0)
    other._connection.ask_stop()
    await processes.servers[0].stopping.wait()
    await processes.servers[0].close()
    await stopped
    with pytest.raises(EngineUnavailable, match="told to stop"):
        await client.complete(REQUEST)
    with pytest.raises(EngineUnavailable, match="told to stop"):
        await client.info()
    assert len(processes.servers) == 1
    await processes.spawn(EngineLaunch("model.gguf"), processes.endpoints[0])
    with pytest.raises(EngineUnavailable):  # asking is what makes it look
        await client.complete(REQUEST)
    await client.info()
    assert (await client.complete(REQUEST)).candidates and len(processes.servers) == 2


async def await_info_of(processes: Processes) -> EngineServer:
    """Wait until a client waits for the model of the first server."""
    asked = asyncio.Event()

    class Seen(EngineServer):
        async def info(self):
            asked.set()
            return await super().info()

    processes.server_class = Seen
    await asked.wait()
    return processes.servers[0]


async def test_stopped_while_the_model_is_loading(processes: Processes, make_client: MakeClient, states: States) -> None:
    class Loading(ScriptedEngine):
        async def info(self):
            await asyncio.Event().wait()

    processes.make = Loading
    client = make_client()
    loading = asyncio.create_task(await_info_of(processes))
    await asyncio.sleep(0)
    task = asyncio.create_task(client.info())
    server = await loading
    server.ask_stop("it was told to stop", told=True)
    await server.close()
    with pytest.raises(EngineUnavailable, match="told to stop"):
        await task
    assert states.names[-1] == "stopped" and len(processes.servers) == 1


async def test_restart_replaces_a_running_engine_for_all(
    processes: Processes, make_client: MakeClient, sleeper: Sleeper
) -> None:
    client, other = make_client(), make_client(on_state=None)
    await client.info()
    await other.info()
    task = asyncio.create_task(client.restart())
    await processes.servers[0].stopping.wait()
    await processes.servers[0].close()
    await task
    waiting = [asyncio.create_task(client.info()), asyncio.create_task(other.info())]
    await sleeper.wake(0.1)
    await sleeper.wake(0.1)
    for waiter in waiting:
        await waiter
    assert len(processes.servers) == 2
    assert (await client.complete(REQUEST)).candidates and (await other.complete(REQUEST)).candidates


async def test_a_hung_engine_is_killed(processes: Processes, make_client: MakeClient, sleeper: Sleeper) -> None:
    processes.make = lambda: ScriptedEngine(hold=True)
    killed: list[int] = []
    client = make_client(kill=killed.append)
    await client.info()
    task = asyncio.create_task(client.complete(REQUEST))
    await processes.engines[0].wait_calls(1)
    await sleeper.wake(HANG_LIMIT)
    with pytest.raises(EngineUnavailable, match="did not answer in time"):
        await task
    assert len(killed) == 1 and killed[0] > 1


@pytest.mark.parametrize("answers", [True, False])
async def test_after_a_pause_of_this_process_an_engine_has_some_more_time(
    processes: Processes, make_client: MakeClient, sleeper: Sleeper, answers: bool
) -> None:
    processes.make = lambda: ScriptedEngine(hold=True)
    killed: list[int] = []
    client = make_client(kill=killed.append)
    await client.info()
    task = asyncio.create_task(client.complete(REQUEST))
    await processes.engines[0].wait_calls(1)
    await sleeper.asked(HANG_LIMIT)
    processes.clock.now += 3600
    await sleeper.wake(HANG_LIMIT)
    await sleeper.asked(ClientRules().handshake_s)
    assert not killed
    if answers:
        processes.engines[0].release(0)
        assert (await task).candidates and not killed
    else:
        await sleeper.wake(ClientRules().handshake_s)
        with pytest.raises(EngineUnavailable, match="did not answer in time"):
            await task
        assert len(killed) == 1


async def test_an_engine_that_hangs_in_the_handshake_is_killed(
    make_client: MakeClient, sleeper: Sleeper, run_dir: Path
) -> None:
    killed: list[int] = []
    closing: list[asyncio.Server] = []

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async def spawn(launch: EngineLaunch, endpoint: Endpoint) -> str:
        closing.append(await asyncio.start_unix_server(silent, str(endpoint.socket)))
        return "ok"

    client = make_client(spawn=spawn, kill=killed.append, rules=ClientRules(max_failures=1))
    task = asyncio.create_task(client.info())
    await sleeper.wake(ClientRules().handshake_s)
    with pytest.raises(EngineUnavailable):
        await task
    assert len(killed) == 1
    closing[0].close()


def test_kill_never_aims_at_nothing_or_itself() -> None:
    import os

    kill(0)
    kill(1)
    kill(os.getpid())


@pytest.mark.parametrize("reply", [b"\x00\x00\x00\x03{{{", b"\xff" * 64])
async def test_an_engine_that_talks_nonsense_is_no_crash(
    make_client: MakeClient, reply: bytes, states: States
) -> None:
    servers: list[asyncio.Server] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(reply)
        await reader.read()
        writer.close()

    async def spawn(launch: EngineLaunch, endpoint: Endpoint) -> str:
        servers.append(await asyncio.start_unix_server(answer, str(endpoint.socket)))
        return "ok"

    client = make_client(spawn=spawn, rules=ClientRules(max_failures=1))
    with pytest.raises(EngineUnavailable):
        await client.info()
    assert states.names == ["starting", "failed"]
    servers[0].close()


async def test_one_bad_request_fails_alone(processes: Processes, make_client: MakeClient) -> None:
    processes.make = lambda: ScriptedEngine([RequestFailed("too long"), b"fine"])
    client = make_client()
    await client.info()
    with pytest.raises(RequestFailed, match="too long"):
        await client.complete(REQUEST)
    assert (await client.complete(REQUEST)).candidates[0].text == b"fine"


async def test_a_request_too_large_to_send_fails_alone(processes: Processes, make_client: MakeClient) -> None:
    client = make_client()
    await client.info()
    for bad in (replace(REQUEST, prompt=tuple(range(10**6))), replace(REQUEST, temperature=float("nan"))):
        with pytest.raises(RequestFailed, match="cannot be sent"):
            await client.complete(bad)
    assert (await client.complete(REQUEST)).candidates and len(processes.servers) == 1


async def test_close_leaves_the_engine_to_others(
    processes: Processes, make_client: MakeClient, states: States
) -> None:
    one, two = make_client(), make_client(on_state=None)
    await one.info()
    await two.info()
    await one.close()
    await one.close()
    with pytest.raises(EngineUnavailable, match="closed"):
        await one.complete(REQUEST)
    with pytest.raises(EngineUnavailable, match="closed"):
        await one.info()
    with pytest.raises(EngineUnavailable, match="closed"):
        await one.stats()
    assert (await two.complete(REQUEST)).candidates and states.names[-1] == "stopped"


async def test_closing_in_mid_start_leaves_nobody_waiting(make_client: MakeClient) -> None:
    begun = asyncio.Event()

    async def spawn(launch: EngineLaunch, endpoint: Endpoint) -> str:
        begun.set()
        await asyncio.Event().wait()
        return "ok"

    client = make_client(spawn=spawn)
    task = asyncio.create_task(client.info())
    await begun.wait()
    await client.close()
    with pytest.raises(EngineUnavailable, match="closed"):
        await task


async def test_a_failing_state_callback_changes_nothing(make_client: MakeClient) -> None:
    def bad(state: str, message: str) -> None:
        raise RuntimeError

    client = make_client(on_state=bad)
    assert (await client.info()).architecture == "fake" and client.state == "ready"


async def test_no_private_directory_is_a_clear_failure(make_client: MakeClient, run_dir: Path, monkeypatch) -> None:
    (run_dir / "open").mkdir()
    (run_dir / "open").chmod(0o777)
    monkeypatch.setattr("lsp_complete.engine.paths.runtime_candidates", lambda: [run_dir / "open"])
    client = make_client(directory=None, rules=ClientRules(max_failures=1))
    with pytest.raises(EngineUnavailable, match="chmod 700"):
        await client.info()
