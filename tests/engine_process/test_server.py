"""The engine's side of the socket: handshake, faults of clients, and everything that depends on time."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import struct
from collections.abc import Callable
from dataclasses import replace

import pytest

from lsp_complete.engine.api import Completion, ModelInfo
from lsp_complete.engine.connection import Dialer, VersionMismatch, connect, dial
from lsp_complete.engine.fake import ScriptedEngine
from lsp_complete.engine.launch import ServeRules
from lsp_complete.engine.paths import Endpoint
from lsp_complete.engine.protocol import FrameDecoder, encode_frame
from lsp_complete.engine.server import EngineServer
from lsp_complete.engine.session import Session
from lsp_complete.engine.transport import NotListening, Peer
from lsp_complete.engine.wire import from_json, to_json
from lsp_complete.errors import EngineUnavailable, ModelError, PromptCold, RequestFailed

from .conftest import REQUEST, Processes

Connect = Callable[..., object]


async def complete(connection, request=REQUEST, on_delta=None) -> Completion:
    fields = {"request": to_json(request), "deltas": on_delta is not None}
    return from_json(Completion, await connection.call("complete", fields, on_delta))


async def accepted(server: EngineServer) -> Session:
    """The session of the only connection, as soon as the engine has taken it."""
    while not server.sessions:  # noqa: ASYNC110 - nothing tells of it
        await asyncio.sleep(0)
    (session,) = server.sessions
    return session


class Raw:
    """A client without manners."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer, self.decoder = reader, writer, FrameDecoder()

    @classmethod
    async def to(cls, endpoint: Endpoint, *, hello: bool = True) -> Raw:
        raw = cls(*await asyncio.open_unix_connection(str(endpoint.socket)))
        if hello:
            raw.send({"t": "hello", "version": Dialer().version, "protocol": 1})
            assert (await raw.read())["t"] == "welcome"
        return raw

    def send(self, message: dict[str, object]) -> None:
        self.writer.write(encode_frame(message))

    async def read(self) -> dict[str, object]:
        """The next message; {} at the end of the stream."""
        while (message := self.decoder.next_message()) is None:
            try:
                data = await self.reader.read(65536)
            except ConnectionError:
                data = b""
            if not data:
                return {}
            self.decoder.receive(data)
        return message


async def test_info_complete_stats(processes: Processes, connect_to: Connect) -> None:
    connection = await connect_to(await processes.start())
    assert from_json(ModelInfo, await connection.call("info")).architecture == "fake"
    assert (await complete(connection)).candidates[0].text == b"answer"
    stats = await connection.call("stats")
    assert stats["done"] == 1 and stats["process"]["served"] == 1 and stats["process"]["pid"] == os.getpid()
    assert processes.engines[0].requests == [REQUEST]


async def test_deltas_come_before_the_answer(processes: Processes, connect_to: Connect) -> None:
    processes.make = lambda: ScriptedEngine([b"a\xc3\xa9\x00"], deltas=True)
    connection = await connect_to(await processes.start())
    seen: list[bytes] = []
    await complete(connection, on_delta=seen.append)
    assert seen == [b"a", b"\xc3", b"\xa9", b"\x00"]


async def test_each_client_has_its_own_name_for_the_fair_share(processes: Processes, connect_to: Connect) -> None:
    endpoint = await processes.start()
    for _ in range(3):
        await complete(await connect_to(endpoint))
    assert len({call.client for call in processes.engines[0].calls}) == 3


async def test_cancel_stops_the_work(processes: Processes, connect_to: Connect) -> None:
    processes.make = lambda: ScriptedEngine(hold=True)
    connection = await connect_to(await processes.start())
    engine = processes.engines[0]
    task = asyncio.create_task(complete(connection))
    await engine.wait_calls(1)
    task.cancel()
    await engine.wait_for(lambda: engine.calls[0].outcome == "cancelled")
    with pytest.raises(asyncio.CancelledError):
        await task
    engine.hold = False
    assert (await complete(connection)).candidates[0].text == b"answer"


async def test_a_vanished_clients_work_stops_and_others_go_on(processes: Processes, connect_to: Connect) -> None:
    processes.make = lambda: ScriptedEngine(hold=True)
    endpoint = await processes.start()
    stays, leaves = await connect_to(endpoint), await Raw.to(endpoint)
    engine = processes.engines[0]
    leaves.send({"t": "complete", "id": 1, "deltas": True, "request": to_json(REQUEST)})
    leaves.send({"t": "complete", "id": 2, "request": to_json(REQUEST)})
    await engine.wait_calls(2)
    task = asyncio.create_task(complete(stays))
    await engine.wait_calls(3)
    leaves.writer.transport.abort()
    await engine.wait_for(lambda: [c.outcome for c in engine.calls] == ["cancelled", "cancelled", "running"])
    engine.release(2)
    assert (await task).candidates[0].text == b"answer"


@pytest.mark.parametrize("garbage", [
    struct.pack("!I", 3) + b"{{{", struct.pack("!I", 0), struct.pack("!I", 1 << 31), b"GET / HTTP/1.1\r\n\r\n",
    encode_frame({"t": "no such kind"}), encode_frame({"t": "complete"}), encode_frame({"t": "complete", "id": 1}),
    encode_frame({"t": "complete", "id": 1, "request": {"prompt": ["x"]}}), encode_frame({"t": "cancel", "id": -1}),
])  # fmt: skip
@pytest.mark.parametrize("hello", [True, False])
async def test_a_bad_frame_ends_this_connection_only(
    processes: Processes, connect_to: Connect, garbage: bytes, hello: bool
) -> None:
    endpoint = await processes.start()
    other, bad = await connect_to(endpoint), await Raw.to(endpoint, hello=hello)
    bad.writer.write(garbage)
    assert (await bad.read())["t"] == "refused"
    assert await bad.read() == {}
    assert (await complete(other)).candidates[0].text == b"answer"
    bad.writer.close()


async def test_before_hello_only_small_frames(processes: Processes) -> None:
    raw = await Raw.to(await processes.start(), hello=False)
    raw.writer.write(struct.pack("!I", 5000))
    assert "over the limit" in str((await raw.read())["message"])
    raw.writer.close()


async def test_an_id_in_use_is_refused(processes: Processes) -> None:
    processes.make = lambda: ScriptedEngine(hold=True)
    raw = await Raw.to(await processes.start())
    for _ in range(2):
        raw.send({"t": "complete", "id": 1, "request": to_json(REQUEST)})
    assert (await raw.read())["t"] == "refused"
    raw.writer.close()


async def test_too_many_requests_at_once_are_refused_one_by_one(processes: Processes) -> None:
    processes.make = lambda: ScriptedEngine(hold=True)
    raw = await Raw.to(await processes.start())
    for n in range(65):
        raw.send({"t": "complete", "id": n, "request": to_json(REQUEST)})
    answer = await raw.read()
    assert (answer["t"], answer["id"], answer["kind"]) == ("error", 64, "request")
    raw.writer.close()


async def test_ids_outside_the_vocabulary_never_reach_the_engine(processes: Processes, connect_to: Connect) -> None:
    connection = await connect_to(await processes.start())
    await connection.call("info")
    with pytest.raises(RequestFailed, match="vocabulary"):
        await complete(connection, replace(REQUEST, prompt=(1, 1000)))
    assert processes.engines[0].calls == []


async def test_an_engine_bug_fails_one_request_without_its_words(processes: Processes, connect_to: Connect) -> None:
    def bug(request):
        raise KeyError("user text")

    processes.make = lambda: ScriptedEngine(bug)
    connection = await connect_to(await processes.start())
    with pytest.raises(RequestFailed) as caught:
        await complete(connection)
    assert "user text" not in str(caught.value) and "KeyError" in str(caught.value)
    assert (await connection.call("stats"))["process"]["failed"] == 1


async def test_other_version_is_refused(processes: Processes) -> None:
    endpoint = await processes.start()
    with pytest.raises(VersionMismatch):
        await dial(endpoint, Dialer(version="0.0.0-other"))
    raw = await Raw.to(endpoint, hello=False)
    raw.send({"t": "hello", "version": Dialer().version, "protocol": 99})
    assert (await raw.read())["reason"] == "version"
    raw.writer.close()


async def test_foreign_user_is_refused_by_the_engine(processes: Processes) -> None:
    processes.peer_check = lambda sock: Peer(uid=os.getuid() + 1)
    with pytest.raises(EngineUnavailable, match="refused"):
        await dial(await processes.start(), Dialer())
    assert processes.engines[0].calls == []


async def test_unknown_peer_is_refused_by_the_engine(processes: Processes) -> None:
    def unknown(sock):
        raise EngineUnavailable("nobody knows")

    processes.peer_check = unknown
    with pytest.raises(EngineUnavailable, match="nobody knows"):
        await dial(await processes.start(), Dialer())


async def test_foreign_engine_is_refused_by_the_client(processes: Processes) -> None:
    with pytest.raises(EngineUnavailable, match="not the user"):
        await dial(await processes.start(), Dialer(peer_check=lambda sock: Peer(uid=os.getuid() + 1)))


async def test_tcp_needs_the_secret_both_ways(processes: Processes, connect_to: Connect) -> None:
    endpoint = await processes.start(tcp=True)
    assert (await complete(await connect_to(endpoint))).candidates[0].text == b"answer"
    address = json.loads(endpoint.address.read_text())
    endpoint.address.write_text(json.dumps({**address, "secret": "00" * 32}))
    with pytest.raises(EngineUnavailable, match="not the engine"):
        await dial(endpoint, Dialer())
    raw = Raw(*await asyncio.open_connection("127.0.0.1", address["port"]))
    raw.send({"t": "hello", "version": Dialer().version, "protocol": 1, "nonce": "n"})
    assert (await raw.read())["t"] == "challenge"
    raw.send({"t": "proof", "proof": "guess"})
    assert (await raw.read())["t"] == "refused"
    raw.writer.close()


async def test_too_many_clients(processes: Processes, connect_to: Connect) -> None:
    processes.rules = ServeRules(max_clients=1)
    endpoint = await processes.start()
    await connect_to(endpoint)
    with pytest.raises(EngineUnavailable, match="already serves"):
        await dial(endpoint, Dialer())


async def test_model_error_reaches_clients_and_the_process_ends_with_the_last(processes: Processes) -> None:
    processes.make = lambda: ScriptedEngine(info_error=ModelError("the file is too short"))
    connection = await dial(await processes.start(), Dialer())
    with pytest.raises(ModelError, match="too short"):
        await connection.call("info")
    with pytest.raises(EngineUnavailable):
        await complete(connection)
    server = processes.servers[0]
    await server.tick()
    assert not server.stopping.is_set()
    (session,) = server.sessions
    await connection.close()
    await session.ended.wait()
    await server.tick()
    assert server.stopping.is_set()


async def test_idle_exit_counts_from_the_last_client(processes: Processes, connect_to: Connect) -> None:
    endpoint, server, clock = await processes.start(), processes.servers[0], processes.clock
    connection = await connect_to(endpoint)
    clock.now += 1000
    await server.tick()
    assert not server.stopping.is_set()
    (session,) = server.sessions
    await connection.close()
    await session.ended.wait()
    clock.now += 59
    await server.tick()
    assert not server.stopping.is_set()
    clock.now += 1
    await server.tick()
    assert server.stopping.is_set()
    await server.close()
    assert not endpoint.socket.exists() and not endpoint.lock.exists() and processes.engines[0].closed


async def test_a_cold_prompt_is_no_failure(processes: Processes, connect_to: Connect) -> None:
    processes.make = lambda: ScriptedEngine((PromptCold("cold"), RequestFailed("bad")))
    connection = await connect_to(await processes.start())
    for kind in (PromptCold, RequestFailed):
        with pytest.raises(kind):
            await complete(connection)
    assert (await connection.call("stats"))["process"]["failed"] == 1


async def test_who_only_looks_is_not_logged(
    processes: Processes, connect_to: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    endpoint = await processes.start()
    with caplog.at_level(logging.INFO, "lsp_complete"):
        await connect_to(endpoint, observer=True)
        assert "joined" not in caplog.text
        await connect_to(endpoint)
    assert caplog.text.count("joined") == 1


async def test_observers_do_not_keep_the_engine(processes: Processes, connect_to: Connect) -> None:
    await connect_to(await processes.start(), observer=True)
    processes.clock.now += 60
    await processes.servers[0].tick()
    assert processes.servers[0].stopping.is_set()


async def test_removed_socket_is_made_anew(processes: Processes, connect_to: Connect) -> None:
    endpoint = await processes.start()
    old = await connect_to(endpoint)
    endpoint.socket.unlink()
    with pytest.raises(NotListening):
        await dial(endpoint, Dialer())
    await processes.servers[0].tick()
    for connection in (old, await connect_to(endpoint)):
        assert (await complete(connection)).candidates[0].text == b"answer"


@pytest.mark.parametrize("what", ["link", "file"])
async def test_something_else_in_the_sockets_place_is_replaced(processes: Processes, connect_to: Connect, what: str) -> None:
    endpoint = await processes.start()
    endpoint.socket.unlink()
    if what == "link":
        endpoint.socket.symlink_to(os.devnull)
    else:
        endpoint.socket.write_text("")
    with pytest.raises(NotListening):
        await dial(endpoint, Dialer())
    await processes.servers[0].tick()
    assert (await complete(await connect_to(endpoint))).candidates[0].text == b"answer"
    assert endpoint.socket.is_socket() and not endpoint.socket.is_symlink()


async def test_a_place_that_cannot_be_had_back_is_told_once(
    processes: Processes, connect_to: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    endpoint = await processes.start()
    connection = await connect_to(endpoint)
    endpoint.socket.unlink()
    endpoint.socket.mkdir()
    for _ in range(3):
        await processes.servers[0].tick()
    assert caplog.text.count("cannot listen") == 1
    assert (await complete(connection)).candidates[0].text == b"answer"
    endpoint.socket.rmdir()
    await processes.servers[0].tick()
    assert (await complete(await connect_to(endpoint))).candidates[0].text == b"answer"


async def test_a_client_that_does_not_read_does_not_keep_an_engine_that_ends(processes: Processes) -> None:
    processes.rules = ServeRules(close_s=0.25)
    processes.make = lambda: ScriptedEngine([b"x" * 2_000_000])
    raw = await Raw.to(await processes.start())
    raw.writer.transport.pause_reading()
    (session,) = processes.servers[0].sessions
    for n in range(2):
        raw.send({"t": "complete", "id": n, "request": to_json(REQUEST)})
    while not session._writer.transport.get_write_buffer_size():  # noqa: ASYNC110 - nothing tells of it
        await asyncio.sleep(0)
    await asyncio.wait_for(processes.servers[0].close(), 30)
    assert processes.engines[0].closed
    raw.writer.close()


async def test_after_its_lock_was_removed_an_engine_leaves_the_place_to_others(
    processes: Processes, connect_to: Connect
) -> None:
    endpoint = await processes.start()
    connection = await connect_to(endpoint)
    endpoint.lock.unlink()
    await processes.start()
    first, second = processes.servers
    await first.tick()
    assert not first.stopping.is_set()
    assert (await complete(connection)).candidates[0].text == b"answer"
    (session,) = first.sessions
    await connection.close()
    await session.ended.wait()
    await first.tick()
    assert first.stopping.is_set()
    await first.close()
    assert endpoint.socket.exists() and endpoint.lock.exists() and not second.stopping.is_set()


async def test_hang_is_seen_by_a_request_that_outlives_its_limit(processes: Processes, connect_to: Connect) -> None:
    processes.rules = ServeRules(grace_s=10.0)
    processes.make = lambda: ScriptedEngine(hold=True)
    connection = await connect_to(await processes.start())
    server, clock = processes.servers[0], processes.clock
    task = asyncio.create_task(complete(connection))
    await processes.engines[0].wait_calls(1)
    for _ in range(4):
        clock.now += 2.7
        await server.tick()
    assert processes.hangs == []
    clock.now += 0.3  # 1 s of limit and 10 s of grace are over
    await server.tick()
    assert len(processes.hangs) == 1
    task.cancel()


async def test_a_pause_of_the_whole_process_is_no_hang(processes: Processes, connect_to: Connect) -> None:
    processes.make = lambda: ScriptedEngine(hold=True)
    connection = await connect_to(await processes.start())
    task = asyncio.create_task(complete(connection))
    await processes.engines[0].wait_calls(1)
    processes.clock.now += 3600
    await processes.servers[0].tick()
    assert processes.hangs == []
    task.cancel()


class Stuck(ScriptedEngine):
    """Says that it is busy and never gets a step further."""

    async def stats(self) -> dict[str, object]:
        return {"counters": {"steps": 5}, "waiting": 0, "running": 1}


async def test_hang_is_seen_by_steps_that_do_not_come(processes: Processes) -> None:
    processes.make = Stuck
    processes.rules = ServeRules(stall_s=60.0)
    await processes.start()
    server = processes.servers[0]
    await server.info()
    for _ in range(16):
        await server.tick()
        processes.clock.now += 4
    assert processes.hangs == []
    await server.tick()
    assert "no step" in processes.hangs[0]


async def test_a_connection_that_never_says_hello_is_cut(processes: Processes, connect_to: Connect) -> None:
    endpoint, server = await processes.start(), processes.servers[0]
    raw = await Raw.to(endpoint, hello=False)
    raw.writer.write(b"\x00")
    polite = await connect_to(endpoint)  # accepted after it
    for _ in range(3):
        processes.clock.now += 4
        await server.tick()
    assert await raw.read() == {}
    assert (await complete(polite)).candidates[0].text == b"answer"
    raw.writer.close()


async def test_stop_says_goodbye(processes: Processes, connect_to: Connect) -> None:
    endpoint = await processes.start()
    one, two = await connect_to(endpoint), await connect_to(endpoint)
    two.ask_stop()
    assert "told to stop" in await processes.servers[0].run(sleep=lambda s: asyncio.Event().wait())
    await processes.servers[0].close()
    await one.lost.wait()
    assert one.told_to_stop and "told to stop" in one.reason
    with pytest.raises(EngineUnavailable, match="told to stop"):
        await one.call("info")


async def test_a_client_that_does_not_read_is_dropped(
    processes: Processes, connect_to: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lsp_complete.engine.session.WRITE_LIMIT", 1 << 20)
    processes.make = lambda: ScriptedEngine([b"x" * 500_000])
    endpoint = await processes.start()
    raw = await Raw.to(endpoint)
    raw.writer.transport.pause_reading()
    (session,) = processes.servers[0].sessions
    for n in range(20):
        raw.send({"t": "complete", "id": n, "request": to_json(REQUEST)})
    await session.ended.wait()
    assert (await complete(await connect_to(endpoint))).candidates[0].text[:1] == b"x"
    raw.writer.close()


async def test_a_client_in_the_handshake_keeps_an_idle_engine(processes: Processes) -> None:
    endpoint, server = await processes.start(), processes.servers[0]

    async def pass_seconds(count: float) -> None:
        for _ in range(int(count)):
            processes.clock.now += 1
            await server.tick()

    await pass_seconds(ServeRules().idle_s - 1)
    raw = await Raw.to(endpoint, hello=False)
    session = await accepted(server)
    await pass_seconds(2)
    assert not server.stopping.is_set()
    await pass_seconds(ServeRules().handshake_s)  # one that says nothing is cut, and then the engine is free to go
    await session.ended.wait()
    await server.tick()
    assert server.stopping.is_set() and await raw.read() == {}
    raw.writer.close()


async def test_an_engine_that_ends_in_the_handshake_is_simply_unavailable(processes: Processes) -> None:
    endpoint = await processes.start()
    connection = await connect(endpoint, Dialer())
    await accepted(processes.servers[0])
    await processes.servers[0].close()
    with pytest.raises(EngineUnavailable, match="is ending"):
        await connection.handshake(Dialer())


async def test_a_connection_accepted_while_the_engine_ends_is_cut_at_once(processes: Processes) -> None:
    """Nobody would end it any more: its client would wait for the end of the process."""
    endpoint = await processes.start()
    processes.servers[0].ask_stop("no client for 60 s")
    raw = await Raw.to(endpoint, hello=False)
    assert await raw.read() == {}
    raw.writer.close()
    await processes.servers[0].close()


async def test_ending_while_loading_leaves_nobody_waiting(processes: Processes) -> None:
    class Loading(ScriptedEngine):
        async def info(self) -> ModelInfo:
            await asyncio.Event().wait()
            raise AssertionError

    processes.make = Loading
    await processes.start()
    waiting = asyncio.create_task(processes.servers[0].info())
    await asyncio.sleep(0)
    await processes.servers[0].close()
    with pytest.raises(EngineUnavailable, match="while it was loading"):
        await asyncio.wait_for(waiting, 30)


async def test_an_engine_that_says_it_is_broken_is_ended(processes: Processes) -> None:
    class Broken(ScriptedEngine):
        async def stats(self) -> dict[str, object]:
            return {"state": "broken", "problem": "no context could be had"}

    processes.make = Broken
    await processes.start()
    await processes.servers[0].info()
    await processes.servers[0].tick()
    assert processes.hangs == ["it cannot go on: no context could be had"]
