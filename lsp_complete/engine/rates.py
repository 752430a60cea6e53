"""How fast this machine is, learned from what runs anyway: prefill, decode, restoring.

Strategy: exponential averages over real steps, with first guesses from the probes in the project's notes. They decide
whether restoring saved state beats evaluating, and are reported to whoever plans prompts.

Rules: times in milliseconds; a single slow step moves an average by at most a fifth. Engine thread writes, anyone reads.
"""

from __future__ import annotations

from dataclasses import dataclass

_WEIGHT = 0.2
_PREFILL_MIN_TOKENS = 32


@dataclass(slots=True)
class Rates:
    """Averages; zero means "not measured yet" for the first two."""

    prefill_token_ms: float = 0.0
    decode_ms: float = 0.0
    memory_mb_ms: float = 0.3
    disk_mb_ms: float = 2.0

    def step(self, tokens: int, outputs: int, elapsed_ms: float) -> None:
        """One evaluation ended normally."""
        if tokens == 1:
            self.decode_ms = _mix(self.decode_ms, elapsed_ms)
        elif tokens >= _PREFILL_MIN_TOKENS and outputs <= 1:
            self.prefill_token_ms = _mix(self.prefill_token_ms, elapsed_ms / tokens)

    def restored(self, size: int, elapsed_ms: float, disk: bool) -> None:
        """Saved state of `size` bytes was put back."""
        per_mb = elapsed_ms / max(size / (1 << 20), 0.1)
        if disk:
            self.disk_mb_ms = _mix(self.disk_mb_ms, per_mb)
        else:
            self.memory_mb_ms = _mix(self.memory_mb_ms, per_mb)

    def worth_restoring(self, tokens: int, size: int, disk: bool) -> bool:
        """Whether restoring `size` bytes is quicker than evaluating `tokens` tokens."""
        per_token = self.prefill_token_ms or 1.0
        return (self.disk_mb_ms if disk else self.memory_mb_ms) * size / (1 << 20) < per_token * tokens

    @property
    def prefill_tps(self) -> float:
        """Prompt tokens per second, 0 if not measured yet."""
        return 1e3 / self.prefill_token_ms if self.prefill_token_ms else 0.0


def _mix(average: float, value: float) -> float:
    return value if not average else average + _WEIGHT * (value - average)
