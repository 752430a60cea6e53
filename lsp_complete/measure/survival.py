"""Quantiles of waiting times of which some were cut short. Pure.

Strategy: a typist overtakes slow answers by the next key, so the times of those that arrived are too good. The product-limit
estimate (Kaplan and Meier 1958) counts an overtaken request as "longer than this".
"""

from __future__ import annotations

from collections.abc import Iterable


def survival_quantile(waits: Iterable[tuple[float, bool]], q: float) -> float | None:
    """The time by which the share q of all waits would have ended; None if too few were seen to their end.

    waits: (time, True if it ended then, False if it was cut short then). 0 < q < 1.
    """
    ordered = sorted(waits, key=lambda wait: (wait[0], not wait[1]))  # an end counts before a cut at the same time
    at_risk, alive = len(ordered), 1.0
    for time, ended in ordered:
        if ended:
            alive *= 1.0 - 1.0 / at_risk
            if 1.0 - alive >= q - 1e-12:
                return time
        at_risk -= 1
    return None
