"""The engine on the real 0.5B model: reuse equals cold, healing, cancelling, candidates, end of text, state, vocabulary."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from lsp_complete.engine.api import Completion, CompletionRequest, Priority, StopRules
from lsp_complete.engine.local import LocalEngine
from lsp_complete.engine.options import EngineOptions
from lsp_complete.engine.vocab import Vocab, load_vocab

pytestmark = [pytest.mark.model, pytest.mark.asyncio(loop_scope="module")]
MODEL = Path("~/.cache/lsp-complete/models/qwen2.5-coder-0.5b-instruct-q4_k_m.gguf").expanduser()
SOURCE = Path(__file__).with_name("fake_backend.py").read_text()


@pytest.fixture(scope="module")
def vocab() -> Vocab:
    if not MODEL.exists():
        pytest.skip(
            "the 0.5B model is not there; fetch it with `lsp-complete models pull qwen2.5-coder-0.5b`"
        )
    return load_vocab(str(MODEL))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def engine(vocab: Vocab) -> AsyncIterator[LocalEngine]:
    made = LocalEngine(EngineOptions(str(MODEL), context=4096, slots=4))
    await made.start()
    await made.info()
    yield made
    await made.close()


def ask(prompt: tuple[int, ...], **more: Any) -> CompletionRequest:
    """A request whose time does not run out on a busy machine."""
    return CompletionRequest(prompt, **{"time_limit_ms": 100_000.0, **more})


def fim(vocab: Vocab, prefix: str, suffix: str, tail: str = "") -> tuple[int, ...]:
    pre, suf, mid = (vocab.special(f"<|fim_{part}|>") for part in ("prefix", "suffix", "middle"))
    assert pre is not None and suf is not None and mid is not None
    return (pre, *vocab.tokenize(prefix), suf, *vocab.tokenize(suffix), mid, *vocab.tokenize(tail))


AREA = "def area(width, height):\n    return width * height\n\n\ndef volume(width, height, depth):\n"


async def cold(engine: LocalEngine, request: CompletionRequest) -> Completion:
    """The same request in an engine that never saw anything else."""
    fresh = LocalEngine(EngineOptions(str(MODEL), context=2048, slots=1))
    try:
        return await fresh.complete(request)
    finally:
        await fresh.close()


async def test_the_vocabulary(vocab: Vocab) -> None:
    assert (vocab.size, vocab.pre) == (151936, "qwen2")
    assert vocab.special("<|fim_prefix|>") == 151659 and vocab.special("def") is None
    assert vocab.special("<|fim_prefix|><|fim_prefix|>") is None
    assert {151643, 151645} <= vocab.eog and vocab.piece(151660) == b""
    text = "def f(x):\n\treturn 'é🙂' <|fim_middle|> \ud800 \r\n"
    ids = vocab.tokenize(text)
    assert 151660 not in ids
    assert b"".join(vocab.piece(t) for t in ids) == text.encode("utf-8", "replace")
    assert vocab.tokenize("") == [] and len(vocab.tokenize("ab " * 9000)) > 4096
    assert all(bytes([b]) in vocab.pieces for b in range(256))


async def test_reuse_gives_the_text_of_a_cold_prompt(engine: LocalEngine, vocab: Vocab) -> None:
    for tail in ("    return", "    return width", "    return width *"):
        request = ask(fim(vocab, AREA, "\n", tail), key="a", max_tokens=16)
        last = await engine.complete(request)
    assert last.timing.reused > 0 and last.timing.evaluated <= 3
    plain = await cold(engine, request)
    assert last.candidates[0].text == plain.candidates[0].text == b" height * depth"
    assert plain.timing.reused == 0


async def test_healing_ends_the_word(engine: LocalEngine, vocab: Vocab) -> None:
    request = ask(fim(vocab, AREA, "\n", "    return width *"), forced=b" hei", max_tokens=12)
    answer = (await engine.complete(request)).candidates[0]
    assert answer.text == b"ght * depth" and answer.stop in ("line", "eog")
    odd = await engine.complete(ask(request.prompt, forced="é🙂\x00".encode()[:5], max_tokens=8))
    assert odd.candidates[0].tokens


async def test_end_of_text_stops(engine: LocalEngine, vocab: Vocab) -> None:
    request = ask(
        fim(vocab, "def add(a, b):\n    return ", "\n\nprint(add(1, 2))\n"),
        max_tokens=40,
        stop=StopRules("free"),
    )
    answer = (await engine.complete(request)).candidates[0]
    assert answer.stop == "eog" and answer.text.startswith(b"a + b")


async def test_cancelling_in_mid_prefill_frees_the_engine(engine: LocalEngine, vocab: Vocab) -> None:
    ids = tuple(vocab.tokenize(SOURCE))[:1500]
    task = asyncio.create_task(engine.complete(ask(ids, key="long")))
    before = await engine.stats()
    while (await engine.stats())["running"] == 0:  # noqa: ASYNC110 - a prefill gives no sign of its own
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    started = time.perf_counter()
    answer = await engine.complete(ask(ids[:20], key="short", max_tokens=1))
    assert answer.candidates and before["state"] == "ready"
    print(f"cancel to next answer: {(time.perf_counter() - started) * 1e3:.0f} ms")


async def test_candidates_differ_and_contain_the_greedy_one(engine: LocalEngine, vocab: Vocab) -> None:
    request = ask(fim(vocab, AREA, "\n", "    "), max_tokens=16, key="k")
    greedy = (await engine.complete(request)).candidates[0]
    several = await engine.complete(ask(request.prompt, max_tokens=16, key="k", candidates=4))
    texts = [c.text for c in several.candidates]
    assert len(set(texts)) == len(texts) >= 2 and greedy.text in texts


async def test_requests_decode_together(engine: LocalEngine, vocab: Vocab) -> None:
    requests = [
        ask(fim(vocab, AREA.replace("volume", name), "\n", "    return"), key=name, max_tokens=12)
        for name in ("volume", "box", "room")
    ]
    together = await asyncio.gather(*(engine.complete(r, client=r.key) for r in requests))
    for request, answer in zip(requests, together, strict=True):
        assert answer.candidates[0].text == b" width * height * depth", request.key


async def test_a_draft_is_verified_in_one_batch(engine: LocalEngine, vocab: Vocab) -> None:
    request = ask(fim(vocab, AREA, "\n", "    return"), max_tokens=12, key="d")
    plain = await engine.complete(request)
    draft = (*plain.candidates[0].tokens, *vocab.tokenize("\n"))
    again = await engine.complete(ask(request.prompt, max_tokens=12, key="d", drafts=(draft,)))
    assert again.candidates[0].text == plain.candidates[0].text
    assert again.timing.drafted >= again.timing.accepted > 0


async def test_prompts_return_from_host_memory(engine: LocalEngine, vocab: Vocab) -> None:
    small = LocalEngine(EngineOptions(str(MODEL), context=1024, slots=1))
    ids = tuple(vocab.tokenize(SOURCE))
    first = ask(ids[:400], key="a", max_tokens=8, stop=StopRules("free"))
    other = ask(ids[600:900], key="b", max_tokens=0, priority=Priority.BACKGROUND)
    before = await small.complete(first)
    await small.complete(other)
    after = await small.complete(first)
    assert after.timing.restored >= 399 and after.timing.evaluated <= 1
    assert after.candidates[0].text == before.candidates[0].text
    await small.close()
