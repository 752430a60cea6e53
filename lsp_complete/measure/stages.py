"""The stage record that every answer carries. Later work (statistics, recordings, replay) builds on it."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class StageRecord:
    """One request, from message to answer. Times in milliseconds, counts in tokens. Holds no user text.

    scenario: "new_file" | "editing" | "cross_file" | "after_accept" | "explicit".
    source: "model" | "typed_through" | "prefetched" | "joined" | "store" | "none". prefetched: made before it was asked for.
    outcome: "shown" | "empty" | "superseded" | "cancelled" | "held_back" | "unavailable" | "disabled" | "error".
    The stages add up to total_ms; transfer_ms is what is left (socket and event loop).
    reuse_break: why the first differing prompt token differs ("" if the prompt only grew).
    """

    request: int
    scenario: str = "editing"
    source: str = "none"
    outcome: str = "empty"
    reason: str = ""
    read_ms: float = 0.0
    syntax_ms: float = 0.0
    context_ms: float = 0.0
    tokenize_ms: float = 0.0
    queue_ms: float = 0.0
    prefill_ms: float = 0.0
    decode_ms: float = 0.0
    post_ms: float = 0.0
    transfer_ms: float = 0.0
    total_ms: float = 0.0
    prompt_tokens: int = 0
    reused: int = 0
    evaluated: int = 0
    restored: int = 0
    decoded: int = 0
    drafted: int = 0
    accepted: int = 0
    reuse_break: str = ""

    def as_dict(self) -> dict[str, object]:
        """Plain JSON values, for the wire and for logs."""
        return asdict(self)
