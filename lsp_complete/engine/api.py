"""What the rest of the program knows of the engine: requests, answers, and one asynchronous interface.

Strategy: everything that crosses the process border is a frozen value that survives JSON. The in-process
engine, the socket client and a scripted fake implement the same `Engine`, so nobody above can tell which
one answers.

Rules:
- Text is bytes here: a token may end in the middle of a UTF-8 sequence. Only whoever shows text decodes.
- Cancelling the task that awaits `complete` cancels the work. There is no other cancel call.
- Every request ends in exactly one `Completion` or one exception.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Protocol


class Priority(IntEnum):
    """Smaller runs first. On a CPU one batch never mixes priorities."""

    INTERACTIVE = 0
    PREFETCH = 1
    BACKGROUND = 2


@dataclass(frozen=True, slots=True)
class StopRules:
    """When to stop, and what of the output to keep. All rules act on generated text (without `forced`).

    mode: "line" stops before the first line end after some non-blank text; "block" stops where the
    indentation falls below `base_indent` (columns, tabs count as `tab_width`) on a non-blank line after the first;
    "free" stops only by the other rules.
    suffix_head: stripped text of the first non-blank line after the cursor; a generated line (after the
    first line end) whose stripped text equals it ends the text before that line. "" turns it off.
    max_lines: lines of output, counting the cursor's own.
    strings: verbatim stop strings; text before the match is kept.
    min_sum: stop ("unsure") once the summed log-probability of the first line is below this; 0.0 turns it off. A line
    that has become so unlikely is not worth the decoding.
    no_blank: the text does not begin with a line end: the most probable token that begins otherwise is taken, its
    log-probability being what it is with line ends allowed.
    forced_only: stop ("forced") once the forced bytes are there. The product of the masses then is the probability of these bytes, the
    model having written them in its own most probable pieces.
    """

    mode: str = "line"
    base_indent: int = 0
    tab_width: int = 4
    suffix_head: str = ""
    max_lines: int = 32
    strings: tuple[str, ...] = ()
    min_sum: float = 0.0
    no_blank: bool = False
    forced_only: bool = False

    def __post_init__(self) -> None:
        if self.min_sum > 0.0:
            raise ValueError("a sum of log-probabilities is never above 0")
        if self.mode not in ("line", "block", "free"):
            raise ValueError(f"unknown stop mode {self.mode!r}")


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    """One completion.

    prompt: token ids, already cut for healing. forced: bytes that the output must begin with
    (token healing); they are not part of the returned text. key: what the slot choice may use as a hint (the
    document's URI); it never decides what is reused, only ids and positions do.
    max_tokens counts generated tokens including the healed ones; 0 means "evaluate the prompt only".
    time_limit_ms counts from submission. candidates: K ≤ 8 alternatives branching on the first tokens.
    evaluate_limit: refuse at once (PromptCold) if more prompt tokens than this would have to be evaluated, counting what
    slots and saved prompts hold; 0 is no limit.
    lookup: further token ids for n-gram proposals (the rest of the file, retrieved chunks, deleted text). lookup_key: names that
    text by its content; a request with a key and no text means the text that came under this key before, or none if the engine
    has let go of it (it only proposes). drafts: whole proposals to verify first (an earlier suggestion), token ids from the cut on.
    """

    prompt: tuple[int, ...]
    forced: bytes = b""
    key: str = ""
    max_tokens: int = 64
    time_limit_ms: float = 4000.0
    priority: Priority = Priority.INTERACTIVE
    stop: StopRules = field(default_factory=StopRules)
    candidates: int = 1
    temperature: float = 0.0
    seed: int = 0
    lookup: tuple[int, ...] = ()
    lookup_key: str = ""
    drafts: tuple[tuple[int, ...], ...] = ()
    speculate: bool = True
    evaluate_limit: int = 0


@dataclass(frozen=True, slots=True)
class Candidate:
    """One alternative. text excludes `forced` and what the stop rules cut.

    tokens, logprobs and masses run in parallel over the generated tokens that contributed to the text,
    healed ones included. A log-probability is natural-log, within the allowed set where a token was
    constrained; masses holds that set's total probability (1.0 where unconstrained).
    offsets: for token i, how many bytes of `text` exist once it is consumed (0 while still inside `forced`).
    stop: "eog" | "line" | "indent" | "suffix" | "repeat" | "string" | "lines" | "tokens" | "time" | "unsure" | "forced".
    """

    text: bytes
    tokens: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()
    masses: tuple[float, ...] = ()
    offsets: tuple[int, ...] = ()
    stop: str = "eog"


@dataclass(frozen=True, slots=True)
class EngineTiming:
    """Stage times in milliseconds and token counts of one request, as the engine saw them.

    restore_ms: reading, checking and putting back saved state; it is part of prefill_ms.
    """

    queue_ms: float = 0.0
    prefill_ms: float = 0.0
    decode_ms: float = 0.0
    total_ms: float = 0.0
    prompt: int = 0
    reused: int = 0
    evaluated: int = 0
    restored: int = 0
    decoded: int = 0
    drafted: int = 0
    accepted: int = 0
    slot: int = -1
    restore_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class Completion:
    """The answer to one request, best candidate first. No candidates for a prefill-only request."""

    candidates: tuple[Candidate, ...]
    timing: EngineTiming


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """What the engine loaded. `fingerprint` identifies file content, llama.cpp version and KV settings.

    window: how many of a sequence's last positions its memory has to hold: 0 all of them, n the last n (sliding window), 1 only a state
    (recurrent layers; then `can_drop_tail` is False).
    """

    path: str
    fingerprint: str
    description: str
    architecture: str
    vocab_size: int
    context: int
    slots: int
    parameters: int
    size_bytes: int
    can_drop_tail: bool = True
    gpu: bool = False
    prefill_tps: float = 0.0
    decode_ms: float = 0.0
    window: int = 0


DeltaCallback = Callable[[bytes], None]
"""Called on the caller's event loop with text bytes as they are generated (candidate 0 only)."""

StateCallback = Callable[[str, str], None]
"""(state, message); state is "starting" | "ready" | "restarting" | "failed" | "stopped"."""


class Engine(Protocol):
    """The one interface. All methods belong to one event loop."""

    async def info(self) -> ModelInfo:
        """Wait until the model is loaded and describe it. Raises EngineUnavailable or ModelError."""
        ...

    async def complete(self, request: CompletionRequest, on_delta: DeltaCallback | None = None) -> Completion:
        """Run one request. Cancel the awaiting task to stop the work within one decode step.

        Raises EngineUnavailable if the engine is gone, RequestFailed if this request cannot be run.
        """
        ...

    async def stats(self) -> dict[str, object]:
        """Counters, slots (owner key, length), queue, memory. Plain JSON values."""
        ...

    async def close(self) -> None:
        """Let go of the engine. A shared engine process lives on for its other clients."""
        ...
