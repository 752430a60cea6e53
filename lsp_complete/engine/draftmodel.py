"""A smaller model with the same vocabulary as a proposer, and the check that it has the same vocabulary.

Strategy: the draft model keeps one sequence that follows the target's; what both share stays evaluated, so a proposal costs
the tokens that are new plus one step per proposed token. It stops where it is unsure itself. It may propose warmer than the target
decides; the most probable token is best for a target that takes its own most probable one (`bench speculation`, `draft_policies`).

Rules: engine thread only, and unlike the other proposers this one takes its time (its cost is measured when it is loaded and
counts against it, the prompt it has to catch up with too). It pays where the target's step is several times the draft's: on GPUs and for
large targets, not for 0.5B before 1.5B on a CPU.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from lsp_complete.engine.backend import Backend, Floats, PieceTable, Segment, Status
from lsp_complete.engine.options import EngineOptions
from lsp_complete.errors import ModelError

SPARE_TOKENS = 128
"""Two builds of one vocabulary may be padded to sizes that differ by so much."""

LEAST = 0.4
"""The draft stops before a token that it gives less than this, by default."""

DRAFT_CONTEXT = 4096
"""Longer prompts get no proposals of the draft model."""

_CHUNK = 256
_WEIGHT = 0.2
_SEED = 1
_ROWS = 16
_TRIAL_PROMPT, _TRIAL_STEPS = 64, 4


def draft_problem(target: PieceTable, target_size: int, draft: PieceTable, draft_size: int) -> str:
    """Why a model with vocabulary `draft` cannot propose for one with `target`; "" if it can."""
    if abs(target_size - draft_size) > SPARE_TOKENS:
        return f"The draft model has {draft_size} vocabulary entries, the model {target_size}."
    common = min(target_size, draft_size)
    for token in range(common):
        ours, theirs = target.piece(token), draft.piece(token)
        if bool(ours) != bool(theirs):
            return f"Token {token} is special in one of the two models only."
        if ours != theirs:
            return f"Token {token} has another text in the draft model."
        if target.is_eog(token) != draft.is_eog(token):
            return f"Token {token} ends the text in one of the two models only."
    return ""


def draft_options(options: EngineOptions) -> EngineOptions:
    """How the draft model of these options is loaded: alone, for one sequence, saving nothing."""
    return replace(
        options, model_path=options.draft_path, draft_path="", context=min(options.context, DRAFT_CONTEXT), slots=1,
        host_cache_bytes=0, disk_cache_dir=None, remeasure_threads=False,
    )  # fmt: skip


def load_draft(options: EngineOptions, target: Backend, factory: Callable[[EngineOptions], Backend]) -> DraftModel | None:
    """The draft model that the options name, measured; None if they name none. Raises ModelError with the reason if it cannot
    propose for the target."""
    if not options.draft_path or not options.speculative_tokens:
        return None
    backend = factory(draft_options(options))
    problem = draft_problem(target.vocab, target.info.vocab_size, backend.vocab, backend.info.vocab_size)
    if not problem and not backend.info.can_drop_tail:
        problem = "Its memory cannot go back over what was not accepted."
    if problem:
        backend.close()
        name, model = Path(options.draft_path).name, Path(options.model_path).name
        raise ModelError(
            f"{name} cannot be the draft model of {model}. {problem} Set draft_model to a smaller model of the same family, or leave it empty."
        )
    draft = DraftModel(backend, temperature=options.draft_temperature, least=options.draft_least)
    draft.measure()
    return draft


class DraftModel:
    """Proposals from a second backend. `cost_ms`: of one proposed token; `prefill_ms`: of one token to catch up with; 0 until
    measured. temperature, least: see `EngineOptions`; what is sampled is the same from run to run."""

    def __init__(
        self, backend: Backend, clock: Callable[[], float] = time.perf_counter, temperature: float = 0.0, least: float = LEAST
    ) -> None:
        self._backend = backend
        self._clock = clock
        self._temperature, self._least = temperature, least
        self._random = np.random.default_rng(_SEED)
        self._held: list[int] = []
        self.cost_ms = 0.0
        self.prefill_ms = 0.0

    def measure(self) -> None:
        """Learn both costs from a short run of its own."""
        token = int(self._backend.vocab.ids[0])
        began = self._clock()
        if self._decode([token] * _TRIAL_PROMPT):
            middle = self._clock()
            if all(self._decode([token]) for _ in range(_TRIAL_STEPS)):
                self.prefill_ms = (middle - began) * 1e3 / _TRIAL_PROMPT
                self.cost_ms = (self._clock() - middle) * 1e3 / _TRIAL_STEPS
        self._backend.seq_rm(0, 0)
        self._held.clear()

    def close(self) -> None:
        """Free the model."""
        self._backend.close()

    def after(self, tokens: Sequence[int], limit: int) -> list[int]:
        """At most `limit` tokens that may follow all of `tokens`. [] where the draft is unsure, full or failed."""
        if not tokens or len(tokens) + limit > self._backend.info.context or limit <= 0:
            return []
        if not self._follow(tokens):
            return []
        found: list[int] = []
        started = self._clock()
        while len(found) < limit:
            token, probability = pick(self._backend.logits(0), self._temperature, self._random)
            if probability < self._least or not self._backend.vocab.piece(token):
                break
            found.append(token)
            if len(found) < limit and not self._decode([token]):
                break
        if len(found) > 1:
            spent = (self._clock() - started) * 1e3 / (len(found) - 1)
            self.cost_ms += (_WEIGHT if self.cost_ms else 1.0) * (spent - self.cost_ms)
        return found

    def along(self, prompt: Sequence[int], text: Sequence[int]) -> Iterator[Floats]:
        """Its logits before each token of a text that the target wrote after the prompt; each valid until the next is taken. Ends early
        where the context is full or an evaluation fails."""
        if not prompt or not text or len(prompt) + len(text) > self._backend.info.context or not self._follow(prompt):
            return
        yield self._backend.logits(0)
        most = min(self._backend.max_outputs, _ROWS)
        for at in range(0, len(text) - 1, most):
            part = tuple(text[at : min(at + most, len(text) - 1)])
            if not self._decode(part, len(part)):
                return
            for row in range(len(part)):
                yield self._backend.logits(row)

    def behind(self, tokens: Sequence[int]) -> int:
        """How many of `tokens` would have to be evaluated before the first proposal."""
        return len(tokens) - self._shared(tokens)

    def _shared(self, tokens: Sequence[int]) -> int:
        pairs = enumerate(zip(self._held, tokens, strict=False))
        return next((i for i, (a, b) in pairs if a != b), min(len(self._held), len(tokens)))

    def _follow(self, tokens: Sequence[int]) -> bool:
        """Bring the sequence to `tokens`, with logits of the last one."""
        keep = min(self._shared(tokens), len(tokens) - 1)
        if keep < len(self._held) and not self._backend.seq_rm(0, keep):
            self._backend.seq_rm(0, 0)
            keep = 0
        del self._held[keep:]
        return all(
            self._decode(tokens[at : min(at + _CHUNK, len(tokens))])
            for at in range(keep, len(tokens), _CHUNK)
        )

    def _decode(self, tokens: Sequence[int], outputs: int = 1) -> bool:
        status = self._backend.decode([Segment(0, len(self._held), tuple(tokens), outputs)])
        if status is not Status.OK:
            self._backend.seq_rm(0, 0)
            self._held.clear()
            return False
        self._held.extend(tokens)
        return True


def pick(logits: Floats, temperature: float, random: np.random.Generator) -> tuple[int, float]:
    """A token and its probability (at temperature 1): the most probable one at temperature 0, else a sample at that temperature."""
    top = float(logits.max())
    weights = np.exp(logits - top, dtype=np.float32)
    if temperature <= 0.0:
        token = int(np.argmax(logits))
    else:
        warm = np.cumsum(np.exp((logits - top) / temperature, dtype=np.float64))
        token = min(int(np.searchsorted(warm, random.random() * warm[-1], side="right")), len(warm) - 1)
    return token, float(weights[token] / weights.sum())
