"""Outcome tracking and pace: pure, with times that are passed in."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsp_complete.suggest import pace
from lsp_complete.suggest.outcome import FINAL, OPEN, OutcomeTracker, Shown, settle, step, still_there

U = "file:///a.py"


@pytest.mark.parametrize(
    ("events", "status", "taken"),
    [
        ([("accept", 0)], "accepted", 5),
        ([("accept_part", 2), ("accept_part", 3)], "accepted", 5),
        ([("accept_part", 2), ("disagree", 0)], "partly_accepted", 2),
        ([("accept_part", 2), ("type", 3)], "partly_accepted", 2),
        ([("type", 2), ("disagree", 0)], "typed_over", 0),
        ([("type", 2), ("type", 5)], "typed_out", 0),
        ([("dismiss", 0)], "dismissed", 0),
        ([("replace", 0)], "replaced", 0),
        ([("dismiss", 0), ("accept", 0)], "dismissed", 0),
        ([("nonsense", 0)], "shown", 0),
    ],
)
def test_the_state_machine(events: list[tuple[str, int]], status: str, taken: int) -> None:
    s = Shown(1, U, "abcde", 0.0)
    for event, amount in events:
        s = step(s, event, 1.0, amount)
    assert (s.status, s.taken) == (status, taken)


def test_a_suggestion_that_stays_while_typed_counts_once() -> None:
    t = OutcomeTracker()
    first = t.shown(U, "hello", 0.0)
    assert t.shown(U, "ello", 0.1) == first
    assert t.shown(U, "llo", 0.2) == first
    assert t.shown(U, "other", 0.3) != first
    assert t.counts["shown"] == 2 and t.counts["replaced"] == 1


def test_accepted_text_is_looked_for_three_times() -> None:
    t = OutcomeTracker()
    number = t.shown(U, "x = 1", 0.0)
    t.event(number, "accept", 10.0)
    assert t.due(39.0) == ()
    for now, share in ((40.0, 1.0), (130.0, 1.0), (610.0, 0.0)):
        (check,) = t.due(now)
        assert check.text == "x = 1"
        t.still_there(check, share)
        t.still_there(check, share)
    assert t.due(9999.0) == () and len(t) == 0
    assert t.summary()["still_there"] == {"30": 1.0, "120": 1.0, "600": 0.0}


def test_closing_and_shutting_down() -> None:
    t = OutcomeTracker(capacity=2)
    t.shown(U, "a", 0.0)
    t.forget(U)
    assert t.counts["dismissed"] == 1 and t.current(U) is None
    for uri in ("b", "c", "d"):
        t.shown(uri, "text", 0.0)
    assert len(t) == 2
    settle(t, ["b", "c", "d"], 1.0)
    assert len(t) == 0 and t.counts["dismissed"] == 3


def test_what_is_still_there() -> None:
    assert still_there("def f():\n  x  =  1\n", "x = 1") == 1.0
    assert still_there("a = 1\nc = 3\n", "a = 1\nb = 2") == 0.5
    assert 0.0 < still_there("y = 1\n", "x = 1") <= 0.5
    assert still_there("", "x = 1") == 0.0
    assert still_there("anything", "\n") == 1.0


EVENTS = st.lists(
    st.tuples(st.sampled_from(["accept", "accept_part", "type", "disagree", "dismiss", "replace", "?"]), st.integers(-2, 9))
)


@given(EVENTS)
def test_one_final_outcome(events: list[tuple[str, int]]) -> None:
    t, s = OutcomeTracker(), Shown(1, U, "abcde", 0.0)
    number = t.shown(U, "abcde", 0.0)
    for event, amount in events:
        t.event(number, event, 1.0, amount)
        s = step(s, event, 1.0, amount)
        assert s.status in (*OPEN, *FINAL) and 0 <= s.taken <= s.length
    assert sum(t.counts[x] for x in FINAL) == (1 if s.status in FINAL else 0)


def test_no_delay_where_the_machine_is_fast() -> None:
    p = pace.answered(pace.Pace(), 60.0)
    assert pace.delay_ms(p) == 0.0
    assert pace.delay_ms(pace.Pace()) == 0.0


def test_a_slow_machine_waits_about_a_gap() -> None:
    p = pace.Pace()
    for n in range(50):
        p = pace.answered(pace.key(p, n * 120.0), 900.0)
    assert 100.0 < p.gap_ms < 125.0
    assert 120.0 < pace.delay_ms(p) <= pace.MAX_DELAY_MS


def test_pauses_teach_nothing_about_typing_speed() -> None:
    p = pace.key(pace.key(pace.Pace(), 0.0), 60_000.0)
    assert p.gap_ms == pace.TYPICAL_GAP_MS


@given(st.lists(st.floats(0, 1e6)), st.lists(st.floats(-10, 1e6)))
def test_the_delay_is_bounded(keys: list[float], answers: list[float]) -> None:
    p = pace.Pace()
    for now in keys:
        p = pace.key(p, now)
    for took in answers:
        p = pace.answered(p, took)
    assert 0.0 <= pace.delay_ms(p) <= pace.MAX_DELAY_MS
