"""`lsp-complete bench quality`: how often is the suggestion right? HumanEval-Infilling by the mid-line rule.

Strategy: each problem is a file in the editor, asked for once per plan through the real server: the product's default
prompt plan, and healed prefix-suffix-middle (`context.layout = standard`) beside it, both with the product's own
stop and clean-up rules. Both are given the time that their prompt takes; `ladder` is the default plan as a place never seen meets
it, where a prompt that takes longer than `first_deadline_ms` is answered from a small one first.

Two figures per plan: `invoked` asks explicitly, which is what the rule means by "the answer" (nothing is held
back for want of confidence, several lines may come, the first counts); `automatic` is what a user sees unasked, with the
product's filters. Both are reported, `invoked` as the plan's own figure. Suggestions kept from before are off, so each
answer comes from the model.

Rules: greedy; the prompt contains no test; programs run under limits (`sandbox`).
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .applying import ghost
from .client import AUTOMATIC, INVOKED, Answer
from .closed import Variant
from .edits import Position, utf16
from .infill import Problem, edit_similarity, exact, first_line, problems
from .sandbox import passes
from .session import SERVER, Session, SessionOptions, model_name, run_to_end, session, warm_up
from .statistics import percentile, ratio

TRIGGERS = (("invoked", INVOKED), ("automatic", AUTOMATIC))
PLANS: Mapping[str, Mapping[str, Any]] = {
    "default": {"suggest": {"typed_through": False}, "first_deadline_ms": 0},
    "standard": {"suggest": {"typed_through": False}, "context": {"layout": "standard"}, "first_deadline_ms": 0},
    "ladder": {"suggest": {"typed_through": False}},
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """One problem, one plan, one trigger. text: the answer's first line."""

    plan: str
    trigger: str
    task_id: str
    text: str
    exact: bool
    similarity: float
    passed: bool
    ms: float
    outcome: str


def answer_text(problem: Problem, answer: Answer, cursor: Position) -> str:
    """First line that acceptance would put after the cursor; "" for none."""
    if not answer.items:
        return ""
    return first_line(ghost(problem.before.rsplit("\n", 1)[-1], cursor, answer.items[0]))


async def ask_problem(running: Session, problem: Problem, uri: str, plan: str, run: bool) -> list[Verdict]:
    """Open the problem, ask once per trigger, judge."""
    client = running.client
    cursor = Position(problem.before.count("\n"), utf16(problem.before.rsplit("\n", 1)[-1]))
    client.open(uri, "python", problem.document)
    verdicts = []
    known: dict[str, bool] = {}
    for name, trigger in TRIGGERS:
        answer = await client.inline(uri, cursor, trigger)
        text = answer_text(problem, answer, cursor)
        right = exact(text, problem)
        if run and text not in known:
            known[text] = await asyncio.to_thread(passes, problem.program(text))
        verdicts.append(
            Verdict(
                plan, name, problem.task_id, text, right, edit_similarity(text, problem.rest.rstrip()),
                known.get(text, False), (answer.received - answer.sent) * 1000, str(answer.stages.get("outcome", "")),
            )
        )  # fmt: skip
    client.close(uri)
    return verdicts


async def run_plans(
    variants: Sequence[Variant], chosen: Sequence[Problem], run: bool, say: Callable[[str], None]
) -> tuple[list[Verdict], str]:
    """All problems by all plans, problem by problem; and the model's file name. Raises EngineUnavailable."""
    verdicts: list[Verdict] = []
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lspc-quality-")))
        sessions = []
        for variant in variants:
            say(f"starting plan {variant.name}")
            running = await stack.enter_async_context(session(variant.options))
            await warm_up(running, folder)
            sessions.append((variant, running))
        for number, problem in enumerate(chosen):
            uri = (folder / f"problem_{number}.py").as_uri()
            for variant, running in sessions:
                verdicts += await ask_problem(running, problem, uri, variant.name, run)
            if (number + 1) % 10 == 0 or number + 1 == len(chosen):
                shares = ", ".join(
                    f"{v.name} {summary(verdicts, v.name, 'invoked')['exact_match']:.3f}" for v in variants
                )
                say(f"{number + 1}/{len(chosen)} problems, exact match {shares}")
        return verdicts, await model_name(sessions[0][1])


def summary(verdicts: Sequence[Verdict], plan: str, trigger: str) -> dict[str, Any]:
    """Shares over the problems of one plan and trigger."""
    mine = [v for v in verdicts if v.plan == plan and v.trigger == trigger]
    n = len(mine)
    return {
        "exact_match": round(ratio(sum(v.exact for v in mine), n), 4),
        "edit_similarity": round(ratio(sum(v.similarity for v in mine), n), 4),
        "pass_at_1": round(ratio(sum(v.passed for v in mine), n), 4),
        "empty": round(ratio(sum(not v.text for v in mine), n), 4),
        "p50_ms": round(percentile([v.ms for v in mine], 0.5), 1) if mine else None,
        "n": n,
    }


def report(verdicts: Sequence[Verdict], plans: Sequence[str], ran: bool) -> dict[str, Any]:
    """The result of a run. The default plan's figures stand at the top too."""
    result: dict[str, Any] = {}
    for plan in plans:
        result[plan] = summary(verdicts, plan, "invoked")
        result[plan]["automatic"] = summary(verdicts, plan, "automatic")
        if not ran:
            del result[plan]["pass_at_1"], result[plan]["automatic"]["pass_at_1"]
    top = {k: v for k, v in result[plans[0]].items() if k not in ("automatic",)} if plans else {}
    return {**top, "plans": result}


def read_problems(path: Path, limit: int) -> list[Problem]:
    """The data's usable problems, at most limit (0: all). Raises OSError or ValueError."""
    with open(path, encoding="utf-8") as lines:
        found = list(problems(lines))
    return found[:limit] if limit else found


def variants_for(model: str, plans: Sequence[str], command: Sequence[str] = SERVER) -> list[Variant]:
    """Sessions to start for the named plans."""
    return [Variant(name, SessionOptions(PLANS[name], model=model, command=tuple(command))) for name in plans]


def run(
    data: Path,
    *,
    model: str = "",
    limit: int = 0,
    plans: Sequence[str] = tuple(PLANS),
    tests: bool = True,
) -> tuple[dict[str, Any], list[Verdict]]:
    """The whole benchmark; progress on standard error. Raises OSError, ValueError, EngineUnavailable."""
    chosen = read_problems(data, limit)
    say = lambda text: print(text, file=sys.stderr, flush=True)  # noqa: E731
    verdicts, loaded = run_to_end(run_plans(variants_for(model, plans), chosen, tests, say))
    return {"model": loaded, **report(verdicts, plans, tests)}, verdicts


def save(verdicts: Sequence[Verdict], path: Path) -> None:
    """Write the single verdicts, one JSON object a line."""
    with open(path, "w", encoding="utf-8") as out:
        out.writelines(json.dumps(asdict(verdict)) + "\n" for verdict in verdicts)
