"""Problems, scores and the sandbox; the whole benchmark against the fake server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lsp_complete.measure.bench_quality import PLANS, report, run_plans
from lsp_complete.measure.closed import Variant
from lsp_complete.measure.infill import Problem, edit_similarity, exact, first_line, levenshtein, problems
from lsp_complete.measure.sandbox import passes

from .conftest import Options

ROW = {
    "task_id": "T/1/L0",
    "entry_point": "double",
    "prompt": "def double(x):\n",
    "canonical_solution": "    return x + x\n",
    "suffix": "\n",
    "test": "def check(candidate):\n    assert candidate(4) == 8\n",
}


def only(row: dict[str, str]) -> Problem:
    return next(problems([json.dumps(row)]))


def test_the_mid_line_rule() -> None:
    problem = only(ROW)
    assert problem.before + problem.rest == "def double(x):\n    return x + x"
    assert len("def double(x):\n    ") <= len(problem.before) and len(problem.rest) >= 2
    assert problem.cursor == (1, len(problem.before) - len("def double(x):\n"))
    assert problem.document == problem.before + "\n\n"
    assert not list(problems([json.dumps({**ROW, "canonical_solution": "    x\n"}), "  "]))
    with pytest.raises(ValueError, match="Line 2"):
        list(problems(["", '{"task_id": 1}']))


def test_scores() -> None:
    problem = only(ROW)
    assert exact(problem.rest + "  \nmore", problem) and not exact(problem.rest[1:], problem)
    assert first_line("a \r\nb") == "a"
    assert levenshtein("kitten", "sitting") == levenshtein("sitting", "kitten") == 3
    assert (
        edit_similarity("", "") == 1.0
        and edit_similarity("ab", "") == 0.0
        and edit_similarity("ab", "ac") == 0.5
    )


@pytest.mark.parametrize(
    ("program", "verdict"),
    [
        ("assert 1 + 1 == 2", True),
        ("assert 1 + 1 == 3", False),
        ("import typing, math, collections, hashlib, re, functools; math.sqrt(2)", True),
        ("x = bytearray(4 << 30)", False),
        ("open('big', 'wb').write(b'x' * (8 << 20))", False),
        ("import socket; socket.create_connection(('127.0.0.1', 9), 1)", False),
        ("import subprocess; subprocess.run(['true'])", False),
        ("def broken(:", False),
    ],
)
def test_programs_run_under_limits(program: str, verdict: bool) -> None:
    assert passes(program) is verdict


def test_an_endless_program_ends() -> None:
    assert passes("while True: pass", wall_s=0.3) is False


async def test_the_benchmark_end_to_end(fake_options: Options) -> None:
    problem = only(ROW)
    wrong = Problem("T/2", "double", "def double(x):\n    retu", "rn x + x", "\n", ROW["test"])
    variants = [Variant(name, fake_options(["    return x + x"])) for name in PLANS]
    said: list[str] = []
    verdicts, model = await run_plans(variants, [problem, wrong], True, said.append)
    assert model == "fake.gguf"
    result = report(verdicts, list(PLANS), True)
    assert (
        result["exact_match"] == 1.0 and result["pass_at_1"] == 1.0 and result["plans"]["standard"]["n"] == 2
    )
    assert result["plans"]["default"]["automatic"]["empty"] == 0.0
    assert said[-1].startswith("2/2 problems")
    assert "pass_at_1" not in report(verdicts, list(PLANS), False)


def test_the_shipped_rule_matches_the_data_if_it_is_there() -> None:
    data = (
        Path(__file__).resolve().parents[3] / "shared" / "eval" / "humaneval-infilling-single-line.dev.jsonl"
    )
    if not data.is_file():
        pytest.skip("the development data is not part of the clone")
    with open(data, encoding="utf-8") as lines:
        found = list(problems(lines))
    assert len(found) == 194
    assert passes(found[0].program(found[0].rest))
