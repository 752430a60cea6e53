"""The real engine process with the real 0.5B model."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import platformdirs
import pytest

from lsp_complete.engine.api import CompletionRequest, StopRules
from lsp_complete.engine.client import EngineClient
from lsp_complete.engine.launch import EngineLaunch
from lsp_complete.engine.options import EngineOptions
from lsp_complete.engine.retry import ClientRules
from lsp_complete.engine.vocab import load_vocab
from lsp_complete.errors import EngineUnavailable, ModelError

from .conftest import States
from .test_process import ended, lock_holders, pid_of

pytestmark = pytest.mark.model
MODEL = Path(platformdirs.user_cache_dir("lsp-complete")) / "models" / "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"
CODE = "def add(a: int, b: int) -> int:\n    return a"
PATIENT = 110_000.0
"""Milliseconds: a loaded machine must not change a text by the time limit."""
MakeModel = Callable[..., EngineClient]


def launch_of(run_dir: Path, model: Path = MODEL) -> EngineLaunch:
    options = EngineOptions(str(model), context=2048, slots=4, threads=2, host_cache_bytes=0)
    return EngineLaunch(str(model), options.as_dict(), log_directory=str(run_dir / "logs"))


def endless_request(prompt: tuple[int, ...]) -> CompletionRequest:
    """Hot enough to ramble on until it is stopped."""
    rules = StopRules("free", max_lines=10_000)
    return CompletionRequest(prompt, max_tokens=1500, time_limit_ms=PATIENT, stop=rules, temperature=2.0, seed=1)


@pytest.fixture
def prompt() -> tuple[int, ...]:
    vocab = load_vocab(str(MODEL))
    marks = [vocab.special(f"<|fim_{name}|>") for name in ("prefix", "suffix", "middle")]
    return (marks[0], *vocab.tokenize(CODE), marks[1], *vocab.tokenize("\n"), marks[2])


@pytest.fixture
async def make_model(run_dir: Path, states: States) -> AsyncIterator[MakeModel]:
    made: list[EngineClient] = []

    def make(launch: EngineLaunch | None = None, **options: object) -> EngineClient:
        defaults = {"on_state": states, "rules": ClientRules(first_delay_s=0.0)}
        made.append(EngineClient(launch or launch_of(run_dir), directory=run_dir, **{**defaults, **options}))
        return made[-1]

    yield make
    for client in made:
        await client.close()
    for pid in lock_holders(run_dir):
        os.kill(pid, signal.SIGKILL)
        await ended(pid)


async def test_completes_and_survives_sigkill_in_mid_request(
    make_model: MakeModel, prompt: tuple[int, ...], states: States
) -> None:
    client = make_model()
    pid = await pid_of(client)
    seen: list[bytes] = []
    first = await client.complete(CompletionRequest(prompt, max_tokens=16, time_limit_ms=PATIENT), seen.append)
    text = first.candidates[0].text
    assert b"b" in text and b"".join(seen).startswith(text[:1])

    begun = asyncio.Event()
    endless = endless_request(prompt)
    task = asyncio.create_task(client.complete(endless, lambda data: begun.set()))
    await begun.wait()
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(EngineUnavailable):
        await task
    with pytest.raises(EngineUnavailable):
        await client.complete(endless)

    assert await pid_of(client) != pid
    again = await client.complete(CompletionRequest(prompt, max_tokens=16, time_limit_ms=PATIENT))
    assert again.candidates[0].text == text
    assert states.names == ["starting", "ready", "restarting", "ready"]


async def test_ten_clients_share_one_process_and_its_prompt(make_model: MakeModel, prompt: tuple[int, ...]) -> None:
    clients = [make_model(on_state=None) for _ in range(10)]
    pids = await asyncio.gather(*(pid_of(c) for c in clients))
    answers = [await c.complete(CompletionRequest(prompt, max_tokens=8, time_limit_ms=PATIENT)) for c in clients]
    assert len(set(pids)) == 1
    assert len({a.candidates[0].text for a in answers}) == 1
    assert all(a.timing.reused >= len(prompt) - 1 for a in answers[1:])


async def test_a_vanished_client_frees_the_engine(make_model: MakeModel, prompt: tuple[int, ...]) -> None:
    leaves, stays = make_model(on_state=None), make_model(on_state=None)
    await leaves.info()
    await stays.info()
    begun = asyncio.Event()
    task = asyncio.create_task(leaves.complete(endless_request(prompt), lambda data: begun.set()))
    await begun.wait()
    leaves._connection.cut("vanished")
    with pytest.raises(EngineUnavailable):
        await task
    assert (await stays.complete(CompletionRequest(prompt, max_tokens=8, time_limit_ms=PATIENT))).candidates[0].text
    stats = await stays.stats()
    assert stats["process"]["cancelled"] == 1 and stats["running"] == 0


async def test_truncated_file_is_refused_without_a_loop(make_model: MakeModel, run_dir: Path, states: States) -> None:
    damaged = run_dir / "damaged.gguf"
    with MODEL.open("rb") as source:
        damaged.write_bytes(source.read(50_000_000))
    client = make_model(launch_of(run_dir, damaged))
    with pytest.raises(ModelError):
        await client.info()
    assert states.names == ["starting", "failed"]
