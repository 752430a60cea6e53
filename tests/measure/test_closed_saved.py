"""A closed run that was stopped goes on: whole files, the same keys, nothing twice."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from lsp_complete.measure.closed import KeySample, Variant, run_closed
from lsp_complete.measure.closed_saved import SavedRun, finished, tag_of
from lsp_complete.measure.corpus import Place, Source

from .conftest import Options

KNOWN = "    result = compute(value, 20, [1, 2])"


def bare(sample: KeySample) -> tuple[object, ...]:
    return sample.variant, sample.place, sample.key, sample.opening, sample.exact, sample.text


async def test_a_stopped_run_goes_on_with_the_file_it_stopped_in(fake_options: Options, source: Source, tmp_path: Path) -> None:
    second = tmp_path / "second.py"
    second.write_text(source.text)
    other = replace(source, name="second.py", path=second)
    places = [Place(source, 1), Place(other, 1), Place(other, 61)]
    variants = [Variant("a", fake_options([KNOWN])), Variant("b", fake_options([KNOWN]))]
    names, tag, file = ["a", "b"], tag_of(variants, places, 1), tmp_path / "keys.jsonl"
    whole = await run_closed(variants, places, 1, lambda text: None)

    first = SavedRun(file, tag)
    assert first.load(names, places) == 0
    first.rewrite()
    first.add([s for s in whole.samples if s.place == 0])
    first.add([s for s in whole.samples if s.place == 1])
    file.write_text(file.read_text() + '{"tag": "half a li')

    again = SavedRun(file, tag)
    assert again.load(names, places) == 1  # place 2 is a jump only behind place 1
    again.rewrite()
    said: list[str] = []
    run = await run_closed(variants, places, 1, said.append, again, 1)
    assert sorted(map(bare, run.samples)) == sorted(map(bare, whole.samples))
    assert not [text for text in said if text.startswith("place 1/")]
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert len(lines) == len(whole.samples) and {line["tag"] for line in lines} == {tag}

    ended = SavedRun(file, tag)
    assert ended.load(names, places) == len(places)
    assert sorted(map(bare, ended.samples)) == sorted(map(bare, whole.samples))


def test_another_run_is_not_gone_on_with(
    fake_options: Options, source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = [Place(source, 1), Place(source, 61)]
    variants = [Variant("a", fake_options([KNOWN]))]
    tags = {tag_of(variants, places, 1), tag_of(variants, places, 2), tag_of(variants, places[:1], 1)}
    tags.add(tag_of([Variant("a", replace(variants[0].options, model="m"))], places, 1))
    tags.add(tag_of([Variant("a", replace(variants[0].options, settings={"suggest": {"level": "quiet"}}))], places, 1))
    monkeypatch.setattr("lsp_complete.measure.closed_saved.commit", lambda: "another")
    tags.add(tag_of(variants, places, 1))
    assert len(tags) == 6
    sample = KeySample("a", 0, 0, "new", 1.0, 1, 1, 1, 0, 0, "model", "shown", True, True, True, False)
    file = tmp_path / "keys.jsonl"
    SavedRun(file, "one").add([sample, replace(sample, place=1)])
    assert SavedRun(file, "two").load(["a"], places) == 0
    assert SavedRun(file, "one").load(["a"], places) == 2
    assert file.stat().st_mode & 0o777 == 0o600
    assert finished([sample], ["a", "b"], places) == 0
