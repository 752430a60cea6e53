"""Requests and answers survive JSON exactly; what is not one of them is refused without being quoted."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lsp_complete.engine.api import (
    Candidate,
    Completion,
    CompletionRequest,
    EngineTiming,
    ModelInfo,
    Priority,
    StopRules,
)
from lsp_complete.engine.fake import FAKE_INFO
from lsp_complete.engine.wire import check_request, from_json, to_json
from lsp_complete.errors import ProtocolError, RequestFailed

IDS = st.lists(st.integers(0, 200_000), max_size=6).map(tuple)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
RULES = st.builds(
    StopRules, mode=st.sampled_from(["line", "block", "free"]), base_indent=st.integers(0, 80), suffix_head=st.text(max_size=9),
    strings=st.lists(st.text(max_size=5), max_size=3).map(tuple),
)
REQUESTS = st.builds(
    CompletionRequest, prompt=IDS, forced=st.binary(max_size=9), key=st.text(max_size=9), max_tokens=st.integers(0, 99),
    time_limit_ms=FINITE, priority=st.sampled_from(Priority), stop=RULES, candidates=st.integers(1, 8), temperature=FINITE,
    seed=st.integers(0, 2**32), lookup=IDS, drafts=st.lists(IDS, max_size=3).map(tuple), speculate=st.booleans(),
)
CANDIDATES = st.builds(
    Candidate, text=st.binary(max_size=20), tokens=IDS, logprobs=st.lists(FINITE, max_size=3).map(tuple),
    masses=st.lists(FINITE, max_size=3).map(tuple), offsets=IDS, stop=st.text(max_size=6),
)
COMPLETIONS = st.builds(
    Completion, candidates=st.lists(CANDIDATES, max_size=3).map(tuple),
    timing=st.builds(EngineTiming, queue_ms=FINITE, reused=st.integers(0, 9999), slot=st.integers(-1, 9)),
)


def through_json(value: object) -> object:
    return json.loads(json.dumps(to_json(value), allow_nan=False))


@settings(deadline=None)
@given(REQUESTS)
def test_requests_survive(request: CompletionRequest) -> None:
    assert from_json(CompletionRequest, through_json(request)) == request


@settings(deadline=None)
@given(COMPLETIONS)
def test_completions_survive(completion: Completion) -> None:
    assert from_json(Completion, through_json(completion)) == completion


def test_model_info_survives() -> None:
    assert from_json(ModelInfo, through_json(FAKE_INFO)) == FAKE_INFO


def test_priority_and_bytes_come_back_as_themselves() -> None:
    back = from_json(CompletionRequest, through_json(CompletionRequest((1,), b"\xff\x00", priority=Priority.BACKGROUND)))
    assert back.priority is Priority.BACKGROUND and back.forced == b"\xff\x00"


@pytest.mark.parametrize(("field", "value"), [
    ("prompt", [1, True]), ("prompt", [1.0]), ("prompt", "12"), ("prompt", [2**64]), ("prompt", None), ("prompt", {"a": 1}),
    ("forced", "%%%"), ("forced", "é"), ("forced", [1]), ("key", 1), ("max_tokens", 1.5), ("max_tokens", True),
    ("time_limit_ms", "5"), ("time_limit_ms", True), ("time_limit_ms", 10**400), ("time_limit_ms", float("inf")),
    ("priority", 7), ("priority", "0"), ("priority", True), ("stop", None), ("stop", {"mode": "line"} | {"x": 1}),
    ("stop", {"mode": "no such mode"}), ("drafts", [1]), ("drafts", [[1], ["a"]]), ("speculate", 1), ("unknown", 1),
])  # fmt: skip
def test_wrong_values_are_refused(field: str, value: object) -> None:
    good = through_json(CompletionRequest((1,)))
    assert isinstance(good, dict)
    with pytest.raises(ProtocolError):
        from_json(CompletionRequest, {**good, field: value})


@pytest.mark.parametrize("value", [None, 1, "text", [], {}, {"forced": ""}])
def test_what_is_no_request_is_refused(value: object) -> None:
    with pytest.raises(ProtocolError):
        from_json(CompletionRequest, value)


@pytest.mark.parametrize("change", [
    {"prompt": ()}, {"prompt": (100,)}, {"prompt": (-1,)}, {"lookup": (100,)}, {"drafts": ((1,), (-5,))}, {"max_tokens": -1},
    {"max_tokens": 10**6}, {"candidates": 0}, {"candidates": 9}, {"time_limit_ms": 0.0}, {"time_limit_ms": 1e9},
    {"temperature": -1.0}, {"forced": b"x" * 5000},
])  # fmt: skip
def test_limits(change: dict[str, object]) -> None:
    check_request(CompletionRequest((1, 99)), 100)
    with pytest.raises(RequestFailed):
        check_request(replace(CompletionRequest((1, 99)), **change), 100)
