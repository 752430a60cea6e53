"""The memory plan inside the engine process: less memory, other GPUs and failed allocations, all injected."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from lsp_complete.commands import engine_load
from lsp_complete.commands.engine_load import kv_choices, load_planned
from lsp_complete.config import Settings
from lsp_complete.engine.options import EngineOptions
from lsp_complete.engine.paths import endpoint_name
from lsp_complete.engine.serve import load_factory
from lsp_complete.errors import MemoryPlanError, ModelError
from lsp_complete.models.catalogue import load_catalogue
from lsp_complete.models.memory import need_of, reserve
from lsp_complete.service.startup import PLANNED, engine_launch, engine_options, reference_launch
from tests.engine.fake_backend import FakeBackend
from tests.models.builders import gguf

SMALL = load_catalogue().get("qwen2.5-coder-0.5b")
LARGE = load_catalogue().get("qwen2.5-coder-7b")
MB = 1_000_000


class Loader:
    """Loads nothing and remembers with which options; fails as often as told."""

    def __init__(self, error: Exception | None = None) -> None:
        self.asked: list[EngineOptions] = []
        self.error = error

    def __call__(self, options: EngineOptions) -> FakeBackend:
        self.asked.append(options)
        if self.error is not None:
            raise self.error
        return FakeBackend(context=options.context, slots=options.slots)


def model_file(path: Path, model=SMALL) -> EngineOptions:
    """A file of this model's name, shape and size that holds no weights."""
    shape, arch = model.shape, "qwen2"
    head = gguf(
        {
            "general.architecture": arch, f"{arch}.block_count": shape.layers, f"{arch}.attention.head_count": shape.heads,
            f"{arch}.attention.head_count_kv": shape.kv_heads, f"{arch}.embedding_length": shape.embedding,
            f"{arch}.feed_forward_length": shape.feed_forward, f"{arch}.vocab_size": shape.vocabulary,
            f"{arch}.context_length": shape.context,
        }
    )  # fmt: skip
    file = path / model.file.name
    with file.open("wb") as out:
        out.write(head)
        out.truncate(model.file.size)
    return EngineOptions(str(file))


def planned(options: EngineOptions, free: int, gpu: int | None = 0) -> EngineOptions:
    loader = Loader()
    load_planned(options, free=lambda: free, gpu=lambda: gpu, load=loader)
    return loader.asked[0]


def test_with_memory_enough_everything_is_as_wanted(tmp_path: Path) -> None:
    options = model_file(tmp_path)
    assert planned(options, 8000 * MB) == options


def test_with_less_memory_the_context_the_slots_and_the_cache_shrink_to_fit(tmp_path: Path) -> None:
    options = model_file(tmp_path)
    seen = []
    for free in range(1300, 980, -5):
        try:
            got = planned(options, free * MB)
        except MemoryPlanError:
            break
        need = need_of(SMALL.shape, SMALL.file.size, got.context, got.kv_type).total + got.host_cache_bytes
        assert need <= free * MB - reserve(free * MB)
        seen.append((got.context, got.slots, got.kv_type))
    assert seen[0] == (8192, 8, "q8_0") and len(set(seen)) >= 3
    assert all(slots <= max(1, context // 1024) for context, slots, _ in seen)
    assert any(kind == "q4_0" for _, _, kind in seen)


def test_a_kv_type_of_the_users_is_the_best_one_not_the_only_one(tmp_path: Path) -> None:
    options = replace(model_file(tmp_path), kv_type="f16")
    assert planned(options, 8000 * MB).kv_type == "f16"
    kinds = set()
    for free in range(1100, 900, -5):
        try:
            kinds.add(planned(options, free * MB).kv_type)
        except MemoryPlanError:
            break
    assert kinds > {"f16"}
    assert planned(replace(options, kv_type="q4_0"), 1075 * MB).kv_type == "q4_0"


@pytest.mark.parametrize(
    ("k", "v", "choices"),
    [
        ("f16", "", ("f16", "q8_0", "q4_0")), ("q8_0", "q8_0", ("q8_0", "q4_0")), ("q8_0", "q4_0", ("q8_0/q4_0", "q4_0")),
        ("f16", "q4_0", ("f16/q4_0", "q8_0/q4_0", "q4_0")), ("q4_0", "f16", ("q4_0/f16", "q4_0/q8_0", "q4_0")),
    ],
)  # fmt: skip
def test_keys_and_values_of_two_types_come_down_together(tmp_path: Path, k: str, v: str, choices: tuple[str, ...]) -> None:
    options = replace(model_file(tmp_path), kv_type=k, v_type=v)
    assert kv_choices(options) == choices
    got = planned(options, 8000 * MB)
    assert (got.kv_type, got.v_type or k) == (k, v or k) and got.kv_pair == choices[0]


def test_where_nothing_fits_the_error_has_the_numbers_and_the_next_smaller_model(tmp_path: Path) -> None:
    loader = Loader()
    with pytest.raises(MemoryPlanError) as caught:
        load_planned(model_file(tmp_path, LARGE), free=lambda: 3000 * MB, gpu=lambda: 0, load=loader)
    text = str(caught.value)
    assert "qwen2.5-coder-7b does not fit" in text and "weights 4.7 GB" in text and "3.0 GB free" in text
    assert "lsp-complete models pull" in text and loader.asked == []


def test_a_plan_that_fitted_but_could_not_be_had_says_so_with_the_numbers(tmp_path: Path) -> None:
    loader = Loader(MemoryPlanError("No context of 8192 tokens, nor a smaller one"))
    with pytest.raises(MemoryPlanError, match=r"weights 491 MB.*gave less when it was tried"):
        load_planned(model_file(tmp_path), free=lambda: 8000 * MB, gpu=lambda: 0, load=loader)


def test_gpu_layers_follow_the_room_and_the_users_wish(tmp_path: Path) -> None:
    options = replace(model_file(tmp_path, LARGE), gpu_layers=-1)
    assert planned(options, 16_000 * MB, 0).gpu_layers == 0
    assert planned(options, 16_000 * MB, 16_000 * MB).gpu_layers == -1
    part = planned(options, 16_000 * MB, 4000 * MB).gpu_layers
    assert 0 < part < LARGE.shape.layers
    assert planned(replace(options, gpu_layers=3), 16_000 * MB, 16_000 * MB).gpu_layers == 3
    assert planned(replace(options, gpu_layers=28), 16_000 * MB, 4000 * MB).gpu_layers == part
    assert planned(replace(options, gpu_layers=0), 16_000 * MB, 16_000 * MB).gpu_layers == 0


def test_a_gpu_of_unknown_size_is_tried(tmp_path: Path) -> None:
    options = replace(model_file(tmp_path, LARGE), gpu_layers=-1)
    assert planned(options, 3000 * MB, None) == options
    assert planned(options, 16_000 * MB, None).gpu_layers == -1


def test_a_file_without_a_shape_is_left_to_the_loader(tmp_path: Path) -> None:
    (tmp_path / "odd.gguf").write_bytes(b"GGUF nonsense")
    options = EngineOptions(str(tmp_path / "odd.gguf"))
    assert planned(options, 8000 * MB) == options
    with pytest.raises(ModelError, match="bad"):
        load_planned(options, free=lambda: 1, gpu=lambda: 0, load=Loader(ModelError("bad")))


async def test_the_engine_process_makes_its_engine_by_the_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from lsp_complete.config import Settings

    options = model_file(tmp_path)
    assert engine_launch(Settings(), Path(options.model_path)).factory == PLANNED
    loader = Loader()
    monkeypatch.setattr(
        engine_load, "load_planned",
        lambda options: load_planned(options, free=lambda: 1075 * MB, gpu=lambda: 0, load=loader),
    )  # fmt: skip
    engine = load_factory(PLANNED)(options.as_dict())
    info = await asyncio.wait_for(engine.info(), 30)
    assert (info.context, info.slots) == (loader.asked[0].context, loader.asked[0].slots) != (8192, 8)
    await engine.close()


def test_a_model_beside_another_leaves_the_others_weights_in_memory(tmp_path: Path) -> None:
    options = model_file(tmp_path)
    free = 3500 * MB
    assert planned(options, free) == options
    beside = replace(options, leave_bytes=2200 * MB)
    assert _sizes(planned(beside, free)) == _sizes(planned(options, free - 2200 * MB)) != _sizes(options)
    with pytest.raises(MemoryPlanError, match=r"qwen2\.5-coder-0\.5b"):
        planned(replace(options, leave_bytes=3000 * MB), free)


def _sizes(options: EngineOptions) -> dict[str, object]:
    return {name: getattr(options, name) for name in ("context", "slots", "kv_type", "gpu_layers", "host_cache_bytes")}


def test_only_a_process_that_is_to_give_way_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []
    monkeypatch.setattr(engine_load, "give_way", lambda: asked.append(True))
    options = model_file(tmp_path)
    engine_load.planned_engine(options.as_dict())
    assert not asked
    engine_load.planned_engine(replace(options, gives_way=True).as_dict())
    assert asked == [True]


def test_the_reference_model_runs_apart_and_the_main_one_does_not_count_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lsp_complete.models.installed.require_whole", lambda path: None)  # the files here hold no weights
    main, other = Path(model_file(tmp_path).model_path), Path(model_file(tmp_path, LARGE).model_path)
    settings = Settings(reference_model=str(other))
    launch = reference_launch(settings, main)
    options = EngineOptions.from_dict(dict(launch.options))
    assert launch.model_path == options.model_path == str(other) and launch.factory == PLANNED
    assert options.gives_way and options.gpu_layers == 0 and options.kv_type == "f16" and not options.host_cache_bytes
    assert options.leave_bytes == SMALL.file.size and options.disk_cache_dir is None
    assert not engine_options(settings, main).count_niced and engine_options(Settings(), main).count_niced
    alone = engine_options(Settings(), main).as_dict()
    assert endpoint_name(str(other), engine_options(Settings(), other).as_dict()) != endpoint_name(str(other), launch.settings())
    assert not alone["gives_way"] and not alone["leave_bytes"]
    with pytest.raises(ModelError, match="reference model of itself"):
        reference_launch(Settings(reference_model=str(main)), main)
    with pytest.raises(ModelError, match="There is no file"):
        reference_launch(Settings(reference_model=str(tmp_path / "none.gguf")), main)
