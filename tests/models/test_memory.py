"""The memory formula, the plan, and the choice of a model for a machine."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsp_complete.errors import MemoryPlanError, ModelError
from lsp_complete.models.auto import choose_installed
from lsp_complete.models.catalogue import load_catalogue
from lsp_complete.models.fit import (
    Speed,
    assumed_speed,
    fit,
    load_speed,
    predict,
    recommend,
    save_speed,
    smaller_models,
    table,
)
from lsp_complete.models.gguf import require_whole
from lsp_complete.models.installed import resolve
from lsp_complete.models.memory import (
    Wanted,
    buffer_bytes,
    gpu_share,
    kv_bytes_per_token,
    least_need,
    need_of,
    plan,
    reserve,
    settings,
)
from lsp_complete.models.shape import shape_of

CATALOGUE = load_catalogue()
SMALL = CATALOGUE.get("qwen2.5-coder-0.5b")
MIDDLE = CATALOGUE.get("qwen2.5-coder-1.5b")
LARGE = CATALOGUE.get("qwen2.5-coder-7b")
GB = 10**9


def test_kv_counts_kv_heads_and_block_scales() -> None:
    assert kv_bytes_per_token(SMALL.shape, "f16") * 2048 == 25_165_824  # 25.2 MB, as measured
    assert kv_bytes_per_token(SMALL.shape, "q8_0") / kv_bytes_per_token(SMALL.shape, "f16") == 34 / 64
    assert kv_bytes_per_token(SMALL.shape, "q4_0") / kv_bytes_per_token(SMALL.shape, "f16") == 18 / 64
    assert kv_bytes_per_token(LARGE.shape, "f16") == 2 * 28 * 4 * 128 * 2


def test_keys_and_values_may_be_of_two_types() -> None:
    k, v = kv_bytes_per_token(SMALL.shape, "q8_0"), kv_bytes_per_token(SMALL.shape, "q4_0")
    assert kv_bytes_per_token(SMALL.shape, "q8_0/q4_0") == kv_bytes_per_token(SMALL.shape, "q4_0/q8_0") == (k + v) / 2
    chosen = plan(SMALL.name, SMALL.shape, SMALL.file.size, 8 * GB, Wanted(kv_types=("q8_0/q4_0", "q4_0")))
    assert chosen.kv_type == "q8_0/q4_0" and not chosen.reduced
    with pytest.raises(ValueError, match="bf16"):
        Wanted(kv_types=("q8_0/bf16",))


def test_settings_begin_with_the_wanted_one_and_give_up_the_least_first() -> None:
    order = list(settings(SMALL.shape, Wanted()))
    assert order[0] == (8192, "q8_0") and order[1] == (6144, "q8_0")
    assert order.index((2048, "q8_0")) < order.index((8192, "q4_0")) < order.index((1024, "q8_0"))
    assert len(set(order)) == len(order)
    granite = CATALOGUE.get("granite-3b-code")
    assert max(context for context, _ in settings(granite.shape, Wanted())) == 2048


@given(free=st.integers(0, 40 * GB), row=st.integers(0, len(CATALOGUE.models) - 1))
def test_a_plan_fits_and_a_refusal_is_right(free: int, row: int) -> None:
    model = CATALOGUE.models[row]
    try:
        chosen = plan(model.name, model.shape, model.file.size, free)
    except MemoryPlanError:
        assert all(
            need_of(model.shape, model.file.size, context, kv).total > free - reserve(free)
            for context, kv in settings(model.shape, Wanted())
        )
        return
    assert chosen.need.total + chosen.host_cache <= free - reserve(free)
    assert 1 <= chosen.slots <= 8 and chosen.context <= model.shape.context
    assert chosen.host_cache >= 0


@given(free=st.integers(600_000_000, 3 * GB))
def test_more_memory_never_gives_a_worse_plan(free: int) -> None:
    def loss(memory: int) -> int:
        try:
            chosen = plan(MIDDLE.name, MIDDLE.shape, MIDDLE.file.size, memory)
        except MemoryPlanError:
            return 10**6
        return list(settings(MIDDLE.shape, Wanted())).index((chosen.context, chosen.kv_type))

    assert loss(free + 50_000_000) <= loss(free)


def test_a_tight_plan_says_what_it_gave_up() -> None:
    free = least_need(LARGE.shape, LARGE.file.size)
    chosen = plan(LARGE.name, LARGE.shape, LARGE.file.size, free)
    assert chosen.context < 8192 and "context" in chosen.reduced
    with pytest.raises(MemoryPlanError):
        plan(LARGE.name, LARGE.shape, LARGE.file.size, free - 100_000_000)


def test_a_refusal_has_the_numbers_and_the_next_smaller_model() -> None:
    with pytest.raises(MemoryPlanError) as caught:
        plan(LARGE.short_name, LARGE.shape, LARGE.file.size, 3 * GB, smaller=smaller_models(LARGE))
    text = str(caught.value)
    assert "4.7 GB" in text and "3.0 GB free" in text and "KV of" in text
    name = text.rsplit(" ", 1)[1]
    suggested = CATALOGUE.get(name)
    assert suggested.licence.commercial and least_need(suggested.shape, suggested.file.size) <= 3 * GB
    plan(name, suggested.shape, suggested.file.size, 3 * GB)


def test_nothing_smaller_is_said_too() -> None:
    with pytest.raises(MemoryPlanError, match="no smaller model"):
        plan(SMALL.name, SMALL.shape, SMALL.file.size, 500_000_000, smaller=smaller_models(SMALL))


def test_an_explicit_kv_type_is_kept() -> None:
    chosen = plan(SMALL.name, SMALL.shape, SMALL.file.size, 8 * GB, Wanted(kv_types=("f16",)))
    assert chosen.kv_type == "f16" and not chosen.reduced
    with pytest.raises(ValueError, match="bf16"):
        Wanted(kv_types=("bf16",))


def test_slots_go_with_the_context_only_where_it_had_to_be_shortened() -> None:
    tight = plan(LARGE.name, LARGE.shape, LARGE.file.size, least_need(LARGE.shape, LARGE.file.size))
    assert tight.slots == max(1, tight.context // 1024) < 8
    assert plan(SMALL.name, SMALL.shape, SMALL.file.size, 8 * GB, Wanted(context=2048, slots=6)).slots == 6


def test_gpu_layers_follow_the_free_gpu_memory() -> None:
    need = need_of(LARGE.shape, LARGE.file.size, 8192, "q8_0")
    assert gpu_share(LARGE.shape, need, 0) == (0, 0)
    assert gpu_share(LARGE.shape, need, 8 * GB)[0] == -1
    layers, moved = gpu_share(LARGE.shape, need, 3 * GB)
    assert 0 < layers < LARGE.shape.layers and 0 < moved < 3 * GB
    assert plan(LARGE.name, LARGE.shape, LARGE.file.size, 4 * GB, gpu_free=8 * GB).gpu_layers == -1


def test_the_table_has_each_context_and_type() -> None:
    rows = table(SMALL, 1_150_000_000)
    assert {row.kv_type for row in rows} == {"f16", "q8_0", "q4_0"}
    assert [row.context for row in rows] == sorted(row.context for row in rows)
    assert rows[0].fits and not rows[-3].fits
    granite = table(CATALOGUE.get("granite-3b-code"), 8 * GB)
    assert {row.context for row in granite} == {2048}


def test_speed_predicts_what_was_measured() -> None:
    """0.5B and 1.5B on two cores: 285 and 147 tokens/s of prefill, 17 and 30 ms per decoded token."""
    prefill, decode = predict(MIDDLE, assumed_speed(2))
    assert prefill == pytest.approx(147) and decode == pytest.approx(30)
    back = predict(SMALL, Speed(147, 30, MIDDLE.file.size, MIDDLE.parameters))
    assert back == pytest.approx((285, 17))


def test_recommendations() -> None:
    def best(cores: int, free: float) -> str | None:
        found = recommend(CATALOGUE.models, assumed_speed(cores), int(free * GB))
        return found.model.short_name if found else None

    assert best(2, 8) == "qwen2.5-coder-1.5b"
    assert best(2, 1.5) == "qwen2.5-coder-0.5b"
    assert best(16, 24) == "qwen2.5-coder-7b"
    assert best(2, 0.5) is None
    slow = Speed(40, 120, SMALL.file.size, SMALL.parameters)
    found = recommend(CATALOGUE.models, slow, 8 * GB)
    assert found is not None and not found.fast_enough and found.model.short_name == "qwen2.5-coder-0.5b"


def test_research_models_are_not_recommended() -> None:
    for cores in range(1, 33):
        found = recommend(CATALOGUE.models, assumed_speed(cores), 64 * GB)
        assert found is not None and found.model.licence.commercial


def test_the_measured_speed_is_kept(folder: Path) -> None:
    assert load_speed() is None
    speed = Speed(300, 15, SMALL.file.size, SMALL.parameters, 2)
    save_speed(speed)
    assert load_speed() == speed
    (folder / ".speed.json").write_text('{"prefill_tps": -1}')
    assert load_speed() is None


def test_auto_without_a_model_names_the_command(folder: Path) -> None:
    with pytest.raises(ModelError, match=r"lsp-complete models pull qwen2\.5-coder-0\.5b"):
        choose_installed(8 * GB, 2)


@pytest.mark.model
def test_auto_takes_the_largest_that_is_fast_enough() -> None:
    name = choose_installed(8 * GB, 2)[0].short_name
    here = fit(MIDDLE, assumed_speed(2), 8 * GB)
    assert here.usable and name in ("qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b")
    slow = Speed(60, 80, SMALL.file.size, SMALL.parameters)
    assert choose_installed(8 * GB, 2, speed=slow)[0] is SMALL
    assert choose_installed(1_500_000_000, 2)[0] is SMALL


_SCRIPT = """
import ctypes, sys
import llama_cpp.llama_cpp as lc
lines = []
callback = lc.llama_log_callback(lambda level, text, data: lines.append(text.decode("utf-8", "replace")))
lc.llama_log_set(callback, ctypes.c_void_p(0))
lc.llama_backend_init()
model = lc.llama_model_load_from_file(sys.argv[1].encode(), lc.llama_model_default_params())
params = lc.llama_context_default_params()
params.n_ctx, params.n_batch, params.n_ubatch = int(sys.argv[2]), 512, int(sys.argv[4])
params.n_seq_max, params.n_outputs_max, params.kv_unified = 16, 64, True
params.flash_attn_type = lc.LLAMA_FLASH_ATTN_TYPE_ENABLED
params.type_k = params.type_v = int(sys.argv[3])
assert lc.llama_init_from_model(model, params)
print("".join(lines))
"""


@pytest.mark.model
@pytest.mark.parametrize(
    ("context", "kv_type", "number", "ubatch"),
    [(8192, "q8_0", 8, 128), (4096, "f16", 1, 128), (8192, "q4_0", 2, 512)],
)
def test_the_formula_agrees_with_llama_cpp(context: int, kv_type: str, number: int, ubatch: int) -> None:
    path = resolve("qwen2.5-coder-0.5b")
    command = [sys.executable, "-c", _SCRIPT, str(path), str(context), str(number), str(ubatch)]
    log = subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def reported(what: str) -> float:
        return sum(float(size) for size in re.findall(rf"{what} buffer size = +([0-9.]+) MiB", log)) * (
            1 << 20
        )

    shape = shape_of(require_whole(path))
    assert shape == SMALL.shape
    assert kv_bytes_per_token(shape, kv_type) * context == pytest.approx(reported("KV"), rel=0.01)
    assert reported("model") >= 0.95 * SMALL.file.size
    buffers = buffer_bytes(shape, ubatch, 64, context)
    assert reported("compute") < buffers < 2.2 * (reported("compute") + reported("output"))
