"""Load and soak benchmarks: the arithmetic, the typist against the fake server, several windows of one user."""

from __future__ import annotations

import asyncio
import random
from itertools import repeat

import pytest

from lsp_complete.engine.api import Candidate
from lsp_complete.errors import EngineUnavailable
from lsp_complete.measure import bench_load, bench_load_commands, bench_load_typists
from lsp_complete.measure.bench_exact import NEAR_TIE, Tally, compare
from lsp_complete.measure.bench_load_bars import LOAD, SOAK, verdicts
from lsp_complete.measure.bench_load_engine import Prompts
from lsp_complete.measure.bench_load_typists import figures
from lsp_complete.measure.bench_soak import Life, Soak, SoakOptions, plan_kills, report
from lsp_complete.measure.client import CANCELLED, Answer
from lsp_complete.measure.corpus import Place, Source
from lsp_complete.measure.jsonrpc import Call
from lsp_complete.measure.loadtypist import Asked, LoadTypist
from lsp_complete.measure.session import household
from lsp_complete.measure.survival import survival_quantile

from .conftest import Options


def test_without_cut_waits_the_quantile_is_the_nearest_rank() -> None:
    waits = [(float(n), True) for n in (5, 1, 3, 2, 4)]
    assert [survival_quantile(waits, q) for q in (0.2, 0.5, 0.95)] == [1.0, 3.0, 5.0]


def test_a_cut_wait_counts_as_longer() -> None:
    # By hand: 1 of 4 ends at 10, one of the remaining three is cut at 15, then 1 of 2 ends at 20: S = 3/4 · 1/2.
    waits = [(10.0, True), (15.0, False), (20.0, True), (30.0, False)]
    assert survival_quantile(waits, 0.25) == 10.0
    assert survival_quantile(waits, 0.6) == 20.0
    assert survival_quantile(waits, 0.7) is None and survival_quantile([(1.0, False)], 0.5) is None
    assert survival_quantile([], 0.5) is None


def test_parts_have_one_list() -> None:
    assert bench_load_commands.PARTS == bench_load.PARTS == tuple(bench_load.parts())
    with pytest.raises(ValueError, match="unknown parts"):
        bench_load.LoadOptions(parts=("nonsense",))


def test_kept_parts_count_only_for_the_same_options(tmp_path) -> None:
    options, save = bench_load.LoadOptions(seconds=7), tmp_path / "kept.json"
    assert bench_load.load_kept(save, options) == {}
    ran: list[str] = []

    async def run() -> dict[str, object]:
        def keep(result: dict[str, object]) -> None:
            save.write_text(bench_load.json.dumps({"options": bench_load.recipe(options), "parts": result}))

        async def part(bench: bench_load.Bench) -> dict[str, object]:
            ran.append("batching")
            return {"batching_gain": 2}

        bench = bench_load.Bench(bench_load.LoadOptions(parts=("batching",), seconds=7), tmp_path, [], lambda text: None)
        return await bench_load.measure(bench, bench_load.load_kept(save, options), keep, {"batching": part})

    assert asyncio.run(run()) == asyncio.run(run()) == {"batching": {"batching_gain": 2}}
    assert ran == ["batching"]
    assert bench_load.load_kept(save, bench_load.LoadOptions(seconds=8)) == {}
    save.write_text("{half")
    assert bench_load.load_kept(save, options) == {}


async def test_a_part_that_fails_is_told_and_not_kept_and_the_others_run(tmp_path) -> None:
    kept: list[dict[str, object]] = []

    async def broken(bench: bench_load.Bench) -> dict[str, object]:
        raise TimeoutError("the engine did not come back")

    async def good(bench: bench_load.Bench) -> dict[str, object]:
        return {"batching_gain": 2}

    bench = bench_load.Bench(bench_load.LoadOptions(parts=("cancel", "batching")), tmp_path, [], lambda text: None)
    found = await bench_load.measure(bench, {}, lambda result: kept.append(dict(result)), {"cancel": broken, "batching": good})
    assert found == {"cancel": {"error": "TimeoutError: the engine did not come back"}, "batching": {"batching_gain": 2}}
    assert kept == [{"batching": {"batching_gain": 2}}]
    assert verdicts(found, LOAD)["cancel.cancel_p95_ms"]["met"] is False


def test_each_figure_is_held_against_its_bar() -> None:
    result = {
        "eight": {"lost": 0, "answered_share_min_over_mean": 0.4, "engine_rss_ratio": 1.15},
        "restore": {"memory": {"restore_ms": 2.0}, "disk": {"restore_ms": None}, "restart": {}},
    }
    found = verdicts(result, LOAD)
    assert {name: verdict["met"] for name, verdict in found.items()} == {
        "eight.lost": True, "eight.answered_share_min_over_mean": False, "eight.engine_rss_ratio": True,
        "restore.memory.restore_ms": True, "restore.disk.restore_ms": False, "restore.restart.first_suggestion_ms": False,
    }  # fmt: skip
    assert found["eight.answered_share_min_over_mean"] == {"value": 0.4, "bar": "≥ 0.5", "met": False}
    assert {bar.path[0] for bar in LOAD} == set(bench_load.PARTS)
    soaked = verdicts(report(Soak(SoakOptions(), None, [], print, 0.0)), SOAK)  # type: ignore[arg-type]
    assert {name: verdict["met"] for name, verdict in soaked.items()} == {
        "memory_growth": False, "stuck": True, "integrity_faults": True
    }  # fmt: skip


def test_prompts_share_no_beginning_and_come_again_with_the_seed() -> None:
    tokens = list(range(5000))
    first, again = Prompts(tokens, 1, "x"), Prompts(tokens, 1, "x")
    made = [first.next(50) for _ in range(300)]
    assert made == [again.next(50) for _ in range(300)]
    assert len({prompt[:2] for prompt in made}) == 300 and {len(prompt) for prompt in made} == {50}


def test_figures_of_requests() -> None:
    asked = [Asked(0, 100, "answered", "model"), Asked(1, 50, "overtaken"), Asked(2, 1, "refused"), Asked(3, 9, "lost")]
    found = figures(asked)
    assert (found["requests"], found["overtaken"], found["refused"], found["lost"]) == (4, 1, 1, 1)
    assert found["answered_share"] == 0.25 and found["p50_ms"] == 100.0 and found["sources"] == {"model": 1}
    assert figures([])["p95_ms"] is None


async def test_the_typist_types_whole_lines_and_every_request_is_accounted_for(fake_options: Options, source: Source) -> None:
    async with household(fake_options(["    result = compute(value, 20, [1, 2])"])) as home:
        window = await home.window()

        async def until_answered(delay: float) -> None:
            await window.client.execute("text", [source.path.as_uri()])  # the fake answers in order

        places = [Place(source, 61), Place(source, 1)]
        typist = LoadTypist(window.client, places, repeat(1.0), random.Random(1), until_answered)
        asked = await typist.type_for(0.0) + await typist.type_for(0.0)
        assert {one.state for one in asked} == {"answered"} and len(asked) > 40
        assert await window.client.execute("text", [source.path.as_uri()]) == source.text


class Silent:
    """A client whose requests are never answered, answered with an error, or cancelled, in turn."""

    def __init__(self) -> None:
        self.calls = 0

    def open(self, *values: object) -> None: ...
    def change(self, *values: object) -> None: ...
    def cancel(self, call: Call) -> None: ...

    def ask(self, uri: str, cursor: object) -> Call:
        self.calls += 1
        return Call(self.calls, 0.0, asyncio.get_running_loop().create_future())

    async def answer(self, call: Call, cursor: object, limit_s: float) -> Answer:
        if call.id % 3 == 0:
            raise TimeoutError
        code = CANCELLED if call.id % 3 == 1 else -32603
        return Answer(call.id, (), 0.0, 0.001, code, "", {})


async def test_silence_is_lost_and_errors_are_refused(source: Source) -> None:
    async def at_once(delay: float) -> None: ...

    client = Silent()
    asked = await LoadTypist(client, [Place(source, 1)], repeat(1.0), random.Random(1), at_once).type_for(0.0)  # type: ignore[arg-type]
    assert client.calls == len(asked) > 9
    assert [one.state for one in asked[:6]] == ["overtaken", "refused", "lost"] * 2


async def test_windows_of_a_household_share_its_places_and_one_may_die(fake_options: Options) -> None:
    async with household(fake_options()) as home:
        one, two = await home.window(), await home.window()
        places = [await window.client.execute("environment") for window in (one, two)]
        assert places[0]["XDG_RUNTIME_DIR"] == places[1]["XDG_RUNTIME_DIR"]
        assert {p.pid for p in one.processes()} >= {one.client.process.pid, two.client.process.pid}
        assert home.engine() is None
        two.client.process.kill()
        await two.client.process.wait()
        assert await one.client.execute("environment")
    assert one.client.process_ended()


async def test_figures_that_must_be_had_are_asked_for_again_and_their_lack_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    answers: list[dict[str, object]] = [{}, {}, {"counters": {}}]

    async def figures_now(home: object) -> dict[str, object]:
        return answers.pop(0) if answers else {}

    monkeypatch.setattr(bench_load_typists, "engine_figures", figures_now)
    assert await bench_load_typists.sure_figures(None) == {"counters": {}}  # type: ignore[arg-type]
    with pytest.raises(EngineUnavailable, match="did not tell"):
        await bench_load_typists.sure_figures(None)  # type: ignore[arg-type]


def test_kills_are_planned_by_the_seed() -> None:
    options = SoakOptions(minutes=30, windows=4)
    plan = plan_kills(options)
    assert plan == plan_kills(options) != plan_kills(SoakOptions(minutes=30, windows=4, seed=2))
    assert [kill.at for kill in plan] == sorted(kill.at for kill in plan)
    assert sum(kill.window < 0 for kill in plan) == 3 and all(-1 <= kill.window < 4 for kill in plan)
    assert all(kill.at < 0.4 * 1800 for kill in plan if kill.window < 0)
    assert plan_kills(SoakOptions(minutes=0.1, windows=1))


def test_growth_is_judged_after_the_warm_up_and_only_of_long_lives() -> None:
    rising = Life("engine", 0.0, [(float(t), 100.0 + t) for t in range(0, 100, 5)])
    flat = Life("engine", 0.0, [(float(t), 100.0 + min(t, 10)) for t in range(0, 100, 5)])
    assert rising.growth(10.0) == pytest.approx(60 / 120 - 0.0, abs=0.05)
    assert flat.growth(10.0) == 0.0
    assert Life("engine", 0.0, flat.samples[:5]).growth(10.0) is None


def test_a_near_tie_is_counted_and_a_real_difference_told_without_text() -> None:
    tally = Tally()
    base = Candidate(b"secret a", (1, 2), (-0.1, -0.6), (1.0, 1.0), (3, 8))
    compare(tally, base, base)
    compare(tally, base, Candidate(b"secret b", (1, 3), (-0.1, -0.6 - NEAR_TIE / 2), (1.0, 1.0), (3, 8)))
    compare(tally, base, Candidate(b"secret c", (1, 3), (-0.1, -0.6 - NEAR_TIE * 2), (1.0, 1.0), (3, 8)))
    compare(tally, base, Candidate(b"secret", (1,), (-0.1,), (1.0,), (3,)))
    assert (tally.same, tally.near_ties, len(tally.different)) == (1, 1, 2)
    assert "secret" not in str(tally.as_dict()) and "token 1" in tally.different[0]
