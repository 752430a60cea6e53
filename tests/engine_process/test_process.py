"""Real engine processes around scripted engines: kills, hangs, races, privacy, and the commands for people."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import stat
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from lsp_complete.engine import control
from lsp_complete.engine.client import EngineClient
from lsp_complete.engine.launch import EngineLaunch, ServeRules, child_environment, spawn
from lsp_complete.engine.paths import Endpoint, endpoint_names
from lsp_complete.engine.retry import ClientRules
from lsp_complete.engine.serve import load_factory, main, read_setup
from lsp_complete.errors import EngineUnavailable, ModelError

from .conftest import REQUEST, Sleeper, States
from .factories import MAPPED_BYTES

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="uses /proc and pidfd")
ROOT = Path(__file__).resolve().parents[2]
SHORT = replace(REQUEST, max_tokens=1)
MakeReal = Callable[..., EngineClient]


async def ended(pid: int) -> None:
    """Wait for the end of a process."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    loop, gone = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(fd, gone.set)
    try:
        await gone.wait()
    finally:
        loop.remove_reader(fd)
        os.close(fd)


def lock_holders(directory: Path) -> list[int]:
    """Process ids in the lock files."""
    return [pid for lock in directory.glob("*.lock") if (pid := int(lock.read_text() or 0)) > 1]


def proc(pid: int, name: str) -> bytes:
    """A file of /proc."""
    return Path(f"/proc/{pid}/{name}").read_bytes()


async def pid_of(client: EngineClient) -> int:
    await client.info()
    return int((await client.stats())["process"]["pid"])


@pytest.fixture
def launch_of(run_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., EngineLaunch]:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))

    def make(factory: str = "scripted", **options: object) -> EngineLaunch:
        rules = options.pop("rules", ServeRules())
        return EngineLaunch(
            str(options.pop("model", "model.gguf")), options, rules, str(options.pop("logs", run_dir / "logs")),
            f"tests.engine_process.factories:{factory}",
        )

    return make


@pytest.fixture
async def make_real(run_dir: Path, states: States) -> AsyncIterator[MakeReal]:
    """Clients of real processes in a directory of their own; whatever still runs is killed at the end."""
    made: list[EngineClient] = []

    def make(launch: EngineLaunch, **options: object) -> EngineClient:
        defaults = {"on_state": states, "rules": ClientRules(first_delay_s=0.0)}
        made.append(EngineClient(launch, directory=run_dir, **{**defaults, **options}))
        return made[-1]

    yield make
    for client in made:
        await client.close()
    for pid in lock_holders(run_dir):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            await ended(pid)


async def test_a_process_of_its_own_that_tells_nobody_its_settings(launch_of, make_real: MakeReal) -> None:
    launch = launch_of(model="/secret-place/model.gguf", text="secret-option")
    client = make_real(launch)
    pid = await pid_of(client)
    assert (await client.complete(REQUEST)).candidates[0].text == b"secret-option"
    assert pid != os.getpid() and os.getsid(pid) == pid
    for name in ("cmdline", "environ"):
        assert b"secret" not in proc(pid, name)
    assert proc(pid, "oom_score_adj").strip() == b"500"


async def test_over_loopback_tcp_as_on_windows(launch_of, make_real: MakeReal, run_dir: Path) -> None:
    one, two = make_real(launch_of(), tcp=True), make_real(launch_of(), tcp=True)
    assert await pid_of(one) == await pid_of(two)
    pid = await pid_of(one)
    os.kill(pid, signal.SIGKILL)
    await ended(pid)
    if one._connection is not None:
        await one._connection.lost.wait()
    assert await pid_of(one) != pid
    assert [s.state for s in await control.find_all(run_dir, True)] == ["ready"]


async def test_the_log_is_private_and_holds_no_user_text(launch_of, make_real: MakeReal, run_dir: Path) -> None:
    client = make_real(launch_of(text="secret-answer"))
    await client.info()
    await client.complete(replace(REQUEST, key="file:///secret-file.py", forced=b"secret-forced"))
    with pytest.raises(Exception, match="vocabulary"):
        await client.complete(replace(REQUEST, prompt=(10**9,)))
    (log,) = (run_dir / "logs").iterdir()
    assert stat.S_IMODE(log.stat().st_mode) == 0o600 and stat.S_IMODE(log.parent.stat().st_mode) == 0o700
    assert "joined" in log.read_text() and "secret" not in log.read_text()
    assert "joined" in control.logs(directory=run_dir / "logs")


async def test_killed_in_mid_request(launch_of, make_real: MakeReal, states: States) -> None:
    client = make_real(launch_of("holding"))
    pid, begun = await pid_of(client), asyncio.Event()
    task = asyncio.create_task(client.complete(REQUEST, lambda data: begun.set()))
    await begun.wait()
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(EngineUnavailable):
        await task
    assert await pid_of(client) != pid
    assert (await client.complete(SHORT)).candidates[0].text == b"answer"
    assert states.names == ["starting", "ready", "restarting", "ready"]


async def test_of_two_started_at_once_one_wins(launch_of, make_real: MakeReal, run_dir: Path) -> None:
    endpoint = Endpoint(run_dir, "e-race")
    started = await asyncio.gather(*(spawn(launch_of(), endpoint) for _ in range(3)))
    assert sorted(started) == ["busy", "busy", "ok"]


async def test_two_clients_racing_share_one_process(launch_of, make_real: MakeReal) -> None:
    clients = [make_real(launch_of()) for _ in range(3)]
    assert len({await pid for pid in [asyncio.ensure_future(pid_of(c)) for c in clients]}) == 1


async def test_a_crash_while_loading_is_given_up(launch_of, make_real: MakeReal, states: States) -> None:
    client = make_real(launch_of("crashing"), rules=ClientRules(first_delay_s=0.0, max_failures=2))
    with pytest.raises(EngineUnavailable, match="2 times"):
        await client.info()
    assert states.names == ["starting", "restarting", "failed"]


async def test_truncated_model_file_fails_and_a_good_one_recovers(
    launch_of, make_real: MakeReal, states: States, run_dir: Path
) -> None:
    model = run_dir / "model.gguf"
    model.write_bytes(b"GG")
    client = make_real(launch_of("checking", model=model))
    with pytest.raises(ModelError, match="no GGUF"):
        await client.info()
    assert states.names == ["starting", "failed"]
    model.write_bytes(b"GGUF and more")
    assert (await client.info()).architecture == "fake"


async def test_model_truncated_under_a_running_engine(
    launch_of, make_real: MakeReal, states: States, run_dir: Path
) -> None:
    """Reading what is gone kills the process; the next one says what is wrong; a whole file again is used again."""
    model = run_dir / "model.gguf"
    whole = b"GGUF" + bytes(MAPPED_BYTES)
    model.write_bytes(whole)
    client = make_real(launch_of("mapping", model=model))
    await client.info()
    assert (await client.complete(REQUEST)).candidates
    os.truncate(model, 8192)
    with pytest.raises(EngineUnavailable):
        await client.complete(REQUEST)
    with pytest.raises(ModelError, match="8192 of"):
        await client.info()
    assert states.names == ["starting", "ready", "restarting", "failed"]
    model.write_bytes(whole)
    await client.info()
    assert (await client.complete(REQUEST)).candidates


async def test_model_replaced_under_a_running_engine(launch_of, make_real: MakeReal, run_dir: Path) -> None:
    """The old engine serves its clients on; a new client gets one with the new file."""
    model = run_dir / "model.gguf"
    model.write_bytes(b"GGUF 1")
    old = make_real(launch_of("checking", model=model))
    old_pid = await pid_of(old)
    model.write_bytes(b"GGUF 22")
    assert await pid_of(make_real(launch_of("checking", model=model))) != old_pid
    assert (await old.complete(REQUEST)).candidates


async def test_a_hung_request_ends_the_process(launch_of, make_real: MakeReal, run_dir: Path) -> None:
    client = make_real(launch_of("holding", rules=ServeRules(grace_s=0.01, tick_s=0.01)))
    pid = await pid_of(client)
    with pytest.raises(EngineUnavailable):
        await client.complete(replace(REQUEST, time_limit_ms=1.0))
    await ended(pid)
    assert (await client.info()) and (await client.complete(SHORT)).candidates
    assert "hangs" in control.logs(directory=run_dir / "logs")


async def test_a_hung_event_loop_ends_the_process(launch_of, make_real: MakeReal, run_dir: Path) -> None:
    client = make_real(launch_of("blocking", rules=ServeRules(loop_s=0.2)))
    pid = await pid_of(client)
    with pytest.raises(EngineUnavailable):
        await client.complete(REQUEST)
    await ended(pid)
    assert (await client.info()) and (await client.complete(SHORT)).candidates
    assert "Timeout" in control.logs(directory=run_dir / "logs")


async def test_a_stopped_process_is_killed_by_its_client(launch_of, make_real: MakeReal, sleeper: Sleeper) -> None:
    client = make_real(launch_of("holding"), sleep=sleeper)
    pid, begun = await pid_of(client), asyncio.Event()
    task = asyncio.create_task(client.complete(REQUEST, lambda data: begun.set()))
    await begun.wait()
    os.kill(pid, signal.SIGSTOP)
    await sleeper.wake(REQUEST.time_limit_ms / 1000 + ClientRules().grace_s)
    with pytest.raises(EngineUnavailable, match="in time"):
        await task
    await ended(pid)
    await sleeper.wake(0.0)
    assert await pid_of(client) != pid


async def test_idle_exit_leaves_nothing_behind(launch_of, make_real: MakeReal, run_dir: Path) -> None:
    client = make_real(launch_of(rules=ServeRules(idle_s=0.3, tick_s=0.01)))
    pid = await pid_of(client)
    await client.close()
    await ended(pid)
    assert endpoint_names(run_dir) == []


async def test_sigterm_is_an_orderly_end_and_clients_start_anew(launch_of, make_real: MakeReal) -> None:
    client = make_real(launch_of())
    pid = await pid_of(client)
    os.kill(pid, signal.SIGTERM)
    await client._connection.lost.wait()
    await ended(pid)
    assert await pid_of(client) != pid


async def test_no_place_for_the_log_is_no_reason_not_to_serve(launch_of, make_real: MakeReal, run_dir: Path) -> None:
    (run_dir / "full").write_text("")
    client = make_real(launch_of(logs=run_dir / "full" / "below"))
    await client.info()
    assert (await client.complete(REQUEST)).candidates


async def test_a_repository_in_the_way_is_not_run(
    launch_of, make_real: MakeReal, run_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`python -m` looks in the current directory first; a stranger's repository must not become the engine."""
    decoy = run_dir / "decoy" / "lsp_complete"
    decoy.mkdir(parents=True)
    (decoy / "__init__.py").write_text("raise SystemExit(9)")
    monkeypatch.chdir(decoy.parent)
    assert (await make_real(launch_of()).info()).architecture == "fake"


def test_module_path_of_the_child(monkeypatch: pytest.MonkeyPatch, run_dir: Path) -> None:
    monkeypatch.chdir(run_dir)
    path = child_environment({"PYTHONPATH": f"relative{os.pathsep}{os.pathsep}/abs"})["PYTHONPATH"].split(os.pathsep)
    assert path == [str(ROOT), str(run_dir / "relative"), "/abs"]


async def test_bad_factory_and_bad_settings_are_told(launch_of, make_real: MakeReal) -> None:
    client = make_real(launch_of("no_such"), rules=ClientRules(max_failures=1))
    with pytest.raises(EngineUnavailable, match="cannot be loaded"):
        await client.info()
    with pytest.raises(EngineUnavailable):
        load_factory("no_such_module_here:x")
    for data in (b"", b"[]", b"{}", b'{"options": 1, "rules": {}, "log_directory": ""}',
                 b'{"options": {}, "rules": {"tick_s": -1}, "log_directory": ""}'):  # fmt: skip
        with pytest.raises(EngineUnavailable, match="settings"):
            read_setup(data)


def test_a_public_directory_is_refused_by_the_process_too(run_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (run_dir / "open").mkdir()
    (run_dir / "open").chmod(0o755)
    old = os.umask(0o022)
    handler = signal.getsignal(signal.SIGHUP)
    try:
        assert main(["--directory", str(run_dir / "open"), "--name", "e-1"]) == 1
    finally:
        os.umask(old)
        signal.signal(signal.SIGHUP, handler)
    assert capsys.readouterr().out.startswith("error ")


async def test_start_status_stop(launch_of, make_real: MakeReal, run_dir: Path) -> None:
    assert await asyncio.to_thread(control.status, directory=run_dir) == []
    assert control.status_text([]) == "no engine is running"
    info = await asyncio.to_thread(control.start, launch_of(), directory=run_dir)
    client = make_real(launch_of())
    pid = await pid_of(client)
    (status,) = await asyncio.to_thread(control.status, directory=run_dir)
    assert (status.state, status.pid, status.info) == ("ready", pid, info)
    assert status.stats["process"]["clients"] == 1
    text = control.status_text([status])
    assert f"process {pid}" in text and "scripted engine" in text and "clients  1" in text
    (stopped,) = await asyncio.to_thread(control.stop, directory=run_dir)
    assert stopped.pid == pid and endpoint_names(run_dir) == []  # it has saved what it had to save
    await ended(pid)
    assert await asyncio.to_thread(control.status, directory=run_dir) == []
    with pytest.raises(EngineUnavailable, match="told to stop"):
        await client.info()


async def test_status_of_a_failed_engine(launch_of, make_real: MakeReal, run_dir: Path) -> None:
    (run_dir / "model.gguf").write_bytes(b"no")
    endpoint = Endpoint(run_dir, "e-bad")
    rules = ServeRules(tick_s=3600.0)
    assert await spawn(launch_of("checking", model=run_dir / "model.gguf", rules=rules), endpoint) == "ok"
    (status,) = await control.find_all(run_dir, False)
    while status.state == "loading":
        (status,) = await control.find_all(run_dir, False)
    assert status.state == "failed" and "no GGUF" in control.status_text([status])


async def test_stop_ends_a_stopped_process_by_force(
    launch_of, make_real: MakeReal, run_dir: Path, sleeper: Sleeper
) -> None:
    pid = await pid_of(make_real(launch_of(), on_state=None))
    os.kill(pid, signal.SIGSTOP)
    asking = asyncio.create_task(control.find_all(run_dir, False, sleeper))
    await sleeper.wake(control.ANSWER_S)
    assert [(s.state, s.pid) for s in await asking] == [("no answer", pid)]
    stopping = asyncio.create_task(control.stop_all(run_dir, False, sleeper))
    await sleeper.wake(control.ANSWER_S)
    assert [s.pid for s in await stopping] == [pid]
    await ended(pid)
