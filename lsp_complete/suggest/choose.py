"""From the engine's candidates to what is offered: cut where unsure, polish, judge names, rank, hold back.

Strategy: the steps of this package in their order, for all candidates of one answer. Automatic requests are cut
and held back by the confidence level; explicit ones only ranked, since the user asked to see something.

Rules:
- Pure; never raises on text. Any thread.
- The answer always says why nothing is shown: the reason of the candidate that came nearest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lsp_complete.suggest import flat
from lsp_complete.suggest.confidence import Level, Scored, confident, cut_point, first_line, level_of, rank
from lsp_complete.suggest.names import Known, Name, declares, trim_at_unknown, unknown_names, unknown_penalty
from lsp_complete.suggest.pipeline import PolishContext, Polished, RawCandidate, polish
from lsp_complete.suggest.window import scan_window

NAME_MODES = ("off", "rank", "trim", "hold")


@dataclass(frozen=True, slots=True)
class Policy:
    """How to choose. level: "eager" | "balanced" | "quiet", or a level of one's own. known: whether a name exists at this place (scopes,
    imports, index, document); None judges no names. names: "off", "rank" (unknown names lower the rank), "trim" (and end
    the text before the first), "hold" (and drop a text that has one). penalty: ranking cost of only unknown names."""

    level: str | Level = "balanced"
    known: Known | None = None
    names: str = "rank"
    penalty: float = 1.0
    guard_habits: bool = True

    def __post_init__(self) -> None:
        if self.names not in NAME_MODES:
            raise ValueError(f"unknown way to treat names {self.names!r}; choose one of {', '.join(NAME_MODES)}")


@dataclass(frozen=True, slots=True)
class Choice:
    """One offered text, best first. index: of its candidate, -1 for the reference's text. sum, mean: log-probabilities
    of its first line. unknown: names that nobody knows. Others as in `pipeline.Polished`."""

    index: int
    text: str
    full: str
    reason: str = ""
    changed_by: tuple[str, ...] = ()
    sum: float = 0.0
    mean: float = 0.0
    unknown: tuple[str, ...] = ()

    @property
    def may_hold_later(self) -> bool:
        """Worth keeping: it is shown, or all of it stands right of the cursor and something may be left of it once that is
        typed over. What was held back for any other reason must not come back at the next key."""
        return bool(self.text) or (bool(self.full) and self.reason == "already_there")


def choose(
    candidates: Sequence[Scored],
    stops: Sequence[str],
    ctx: PolishContext,
    policy: Policy,
    reference: str = "",
    typed: str = "",
) -> tuple[Choice, ...]:
    """What to offer, best first; one `Choice` with an empty text and a reason if nothing is worth it.

    candidates and stops run in parallel (`engine.api.Candidate`). reference: the reference model's latest suggestion
    that still holds here ("" without one); it takes the first place where every candidate consists of habits and it does not.
    typed: what was typed since generation began (a joined request); `ctx` is the place after it.
    """
    if len(stops) != len(candidates):
        raise ValueError("candidates and stops must run in parallel")
    level = level_of(policy.level) if isinstance(policy.level, str) else policy.level
    tried = [_one(i, c, stops[i], ctx, policy, level, typed.encode()) for i, c in enumerate(candidates)]
    penalties = [unknown_penalty(t.text, _as_names(t), policy.penalty) if policy.names != "off" else 0.0 for t in tried]
    order = rank(candidates, [t.text for t in tried], penalties)
    if not order:
        nearest = next((t for t in tried if t.reason), Choice(-1, "", "", "empty"))
        return (nearest,)
    chosen = [tried[i] for i in order]
    return _guarded(chosen, ctx, reference) if policy.guard_habits else tuple(chosen)


def _as_names(choice: Choice) -> tuple[Name, ...]:
    return tuple(Name(x, 0, 0, False) for x in choice.unknown)


def _one(
    i: int, c: Scored, stop: str, ctx: PolishContext, policy: Policy, level: Level, typed: bytes
) -> Choice:
    line = first_line(c, level)
    if not c.text.startswith(typed):
        return Choice(i, "", "", "typed_otherwise", (), line.sum, line.mean)
    raw, why = c.text, stop
    if not ctx.explicit:
        if not confident(c, level):
            return Choice(i, "", "", "unsure", (), line.sum, line.mean)
        keep = cut_point(c, level)
        if keep < len(raw):
            raw, why = raw[:keep], "lines"
        if not raw[len(typed) :].strip():
            return Choice(i, "", "", "unsure" if c.text.strip() else "empty", (), line.sum, line.mean)
    done = polish(RawCandidate(raw[len(typed) :], why), ctx)
    unknown = _unknown(done.text, ctx, policy)
    if unknown and policy.names == "hold" and not ctx.explicit:
        return Choice(i, "", done.full, "unknown_name", done.changed_by, line.sum, line.mean)
    if unknown and policy.names == "trim" and not ctx.explicit:
        done = polish(RawCandidate(trim_at_unknown(done.text, unknown).encode(), "lines"), ctx)
        done = Polished(done.text, done.reason and "unknown_name", (*done.changed_by, "unknown_names"), done.full)
        unknown = ()
    return Choice(i, done.text, done.full, done.reason, done.changed_by, line.sum, line.mean, tuple(n.text for n in unknown))


def _unknown(text: str, ctx: PolishContext, policy: Policy) -> tuple[Name, ...]:
    if policy.known is None or policy.names == "off" or not text:
        return ()
    found = scan_window(ctx.before, ctx.language)
    if found.opened and declares(ctx.before[: found.opened[-1]].rpartition("\n")[2]):
        return ()  # a list of parameters, perhaps begun lines above
    return unknown_names(text, ctx.language, policy.known, ctx.before.rpartition("\n")[2], found.end)


def habits_of(texts: Sequence[str], ctx: PolishContext) -> list[flat.Habits]:
    """How far each of the texts consists of habits, were it inserted here. Pure."""
    state = scan_window(ctx.before, ctx.language).end
    around = ctx.before[-2000:] + ctx.after[:2000]
    return [flat.known_habits(text, around, ctx.language, state) for text in texts]


def _guarded(chosen: list[Choice], ctx: PolishContext, reference: str) -> tuple[Choice, ...]:
    """Put a text that does not consist of habits first, if there is one."""
    habits = habits_of([c.text for c in chosen], ctx)
    if reference and habits_of([reference], ctx)[0].flat:
        reference = ""
    first = flat.prefer(habits, reference or None)
    if first is None:
        return (Choice(-1, reference, reference, changed_by=("reference",)), *chosen)
    return (chosen[first], *chosen[:first], *chosen[first + 1 :])
