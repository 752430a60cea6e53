"""The shipped catalogue and its checks."""

from __future__ import annotations

import copy
import json
from importlib import resources
from typing import Any

import pytest

from lsp_complete.errors import ModelError
from lsp_complete.models.catalogue import load_catalogue, parse_catalogue
from lsp_complete.models.formats import format_of


@pytest.fixture
def data() -> dict[str, Any]:
    text = resources.files("lsp_complete.models").joinpath("catalogue.json").read_text("utf-8")
    return dict(json.loads(text))


def test_has_the_models_of_the_task() -> None:
    catalogue = load_catalogue()
    for size in ("0.5b", "1.5b", "3b", "7b"):
        for quantization in ("Q4_K_M", "Q8_0"):
            assert any(
                model.name.startswith(f"qwen2.5-coder-{size}-") and model.file.quantization == quantization
                for model in catalogue.models
            ), (size, quantization)
    families = {model.family for model in catalogue.models}
    assert {"starcoder2", "deepseek-coder", "codegemma", "granite-code", "codestral"} <= families


def test_what_was_fetched_here_has_digest_and_both_sources() -> None:
    verified = [model for model in load_catalogue().models if model.verified]
    assert {model.short_name for model in verified} == {"qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b"}
    assert all(
        model.file.sha256 and model.file.size_exact and model.hub and model.registry for model in verified
    )
    assert load_catalogue().default_model in verified


def test_the_3b_models_carry_their_research_licence() -> None:
    small = [model for model in load_catalogue().models if "coder-3b" in model.name]
    assert small and all(not model.licence.commercial and "esearch" in model.licence.note for model in small)


def test_each_family_has_a_format_and_each_size_is_plausible() -> None:
    for model in load_catalogue().models:
        assert format_of(model.family).family == model.family
        assert 0.4 < model.file.size / model.parameters < 1.5, model.name


def test_names_and_aliases_without_regard_to_case() -> None:
    catalogue = load_catalogue()
    for name in (
        "qwen2.5-coder-0.5b",
        "QWEN2.5-Coder-0.5B-instruct-q4_k_m",
        "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
    ):
        assert catalogue.get(name) is catalogue.default_model


def test_an_unknown_name_gives_near_ones() -> None:
    with pytest.raises(ModelError, match=r"qwen2\.5-coder-1\.5b"):
        load_catalogue().get("qwen2.5-coder-1.5")


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        (("files", 0, "sha256"), "xyz", "sha256"),
        (("files", 0, "name"), "../evil.gguf", "file name"),
        (("files", 0, "size"), 0, "size"),
        (("roles",), ["boss"], "roles"),
        (("licence",), "none such", "none such"),
        (("sources",), {}, "no source"),
        (("sources", "registry", "package"), "no-number", "pattern"),
        (("files", 0, "sha256"), None, "digest"),
    ],
)
def test_a_wrong_entry_is_named(data: dict[str, Any], path: tuple[Any, ...], value: Any, reason: str) -> None:
    changed = copy.deepcopy(data)
    place = changed["models"][0]
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    with pytest.raises(ModelError, match=reason) as caught:
        parse_catalogue(changed)
    assert data["models"][0]["name"] in str(caught.value)


def test_a_name_may_occur_once(data: dict[str, Any]) -> None:
    data["models"].append(data["models"][0])
    with pytest.raises(ModelError, match="twice"):
        parse_catalogue(data)


def test_another_version_is_refused(data: dict[str, Any]) -> None:
    with pytest.raises(ModelError, match="version"):
        parse_catalogue({**data, "version": 2})
