"""Prompts on disk: what is restored is exactly what was saved, by this user, for this engine, unchanged."""

from __future__ import annotations

import os
import stat
import struct
from pathlib import Path

import numpy as np
import pytest

from lsp_complete.engine.backend import Ints
from lsp_complete.engine.diskprompts import DiskCache
from lsp_complete.engine.promptfile import (
    DiskEntry,
    _name_first,
    build,
    enforce,
    purge,
    read_head,
    user_key,
    verify,
)
from lsp_complete.engine.state import save_one
from lsp_complete.errors import PromptCold
from tests.engine.fake_backend import FakeBackend, encode
from tests.engine.harness import Harness, cold
from tests.engine.test_core import TEXT, ask

LONG = TEXT * 2


def run(first: int, length: int) -> Ints:
    return np.arange(first, first + length, dtype=np.int32)


def saved(
    directory: Path, *prompts: tuple[Ints, bytes], fingerprint: str = "f" * 32, key: str = "doc"
) -> None:
    cache = DiskCache(str(directory), fingerprint, 1 << 20, 7.0)
    for tokens, state in prompts:
        assert cache.save(tokens, state, key, wait_s=10)
    cache.close()


def opened(directory: Path, fingerprint: str = "f" * 32, limit: int = 1 << 20) -> DiskCache:
    return DiskCache(str(directory), fingerprint, limit, 7.0)


def only(directory: Path) -> Path:
    (path,) = directory.glob("*.kv")
    return path


def test_a_saved_prompt_is_found_by_the_next_process(tmp_path: Path) -> None:
    saved(tmp_path, (run(0, 300), b"state"))
    cache = opened(tmp_path)
    found = cache.find(run(0, 400), 100, True)
    assert found is not None and found[1] == 300
    state = cache.load(found[0])
    assert state is not None and bytes(state) == b"state"
    assert cache.find(run(0, 300), 100, False) is None  # would need the last token again
    assert cache.find(run(1, 300), 1, True) is None
    cache.close()


def test_files_are_the_users_alone(tmp_path: Path) -> None:
    root = tmp_path / "prompts"
    saved(root, (run(0, 300), b"state"))
    assert stat.S_IMODE(root.stat().st_mode) == 0o700
    assert all(stat.S_IMODE(p.stat().st_mode) == 0o600 for p in root.iterdir())


@pytest.mark.parametrize("where", [0, 9, 20, 40, 100, -40, -1])
def test_any_changed_byte_is_noticed(tmp_path: Path, where: int) -> None:
    saved(tmp_path, (run(0, 300), b"state" * 20))
    path = only(tmp_path)
    data = bytearray(path.read_bytes())
    data[where] ^= 1
    path.write_bytes(data)
    cache = opened(tmp_path)
    found = cache.find(run(0, 300), 1, True)
    assert found is None or cache.load(found[0]) is None
    assert cache.find(run(0, 300), 1, True) is None
    cache.close()


def test_truncated_foreign_and_other_files_are_ignored(tmp_path: Path) -> None:
    saved(tmp_path, (run(0, 300), b"state"))
    path = only(tmp_path)
    whole = path.read_bytes()
    for size in (0, 5, 23, 24, 100, len(whole) - 1):
        path.write_bytes(whole[:size])
        assert read_head(path, "f" * 32) is None
    path.write_bytes(whole)
    assert read_head(path, "e" * 32) is None
    (tmp_path / ("f" * 16 + "-dir.kv")).mkdir()
    cache = opened(tmp_path)
    assert len(cache) == 1
    cache.close()


def test_a_head_of_endless_brackets_is_ignored(tmp_path: Path) -> None:
    """It must not end the engine's thread, which reads the heads while it loads."""
    head = struct.pack("<8sIIQ", b"LSPCKV1\n", 4096, 1, 0)
    (tmp_path / ("f" * 16 + "-0.kv")).write_bytes(head + b"[" * 4096 + bytes(4 + 32))
    cache = opened(tmp_path)
    assert cache.enabled and len(cache) == 0
    cache.close()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
def test_a_pipe_is_not_waited_for_and_a_link_not_followed(tmp_path: Path) -> None:
    root = tmp_path / "prompts"
    saved(root, (run(0, 300), b"state"))
    os.mkfifo(root / ("f" * 16 + "-pipe.kv"))
    elsewhere = tmp_path / "elsewhere"
    only_file = next(p for p in root.glob("*.kv") if "pipe" not in p.name)
    only_file.rename(elsewhere)
    only_file.symlink_to(elsewhere)
    cache = opened(root)
    assert len(cache) == 0
    cache.close()


def test_a_file_whose_content_is_anothers_is_not_restored(tmp_path: Path) -> None:
    """Genuine, of this engine, of the same size: but not of these tokens."""
    saved(tmp_path, (run(0, 300), b"state"), (run(1000, 300), b"other"))
    cache = opened(tmp_path)
    found = cache.find(run(0, 300), 300, True)
    other = cache.find(run(1000, 300), 300, True)
    assert found is not None and other is not None
    found[0].path.write_bytes(other[0].path.read_bytes())
    assert cache.load(found[0]) is None and cache.find(run(0, 300), 1, True) is None
    state = cache.load(other[0])
    assert state is not None and bytes(state) == b"other"
    cache.close()


@pytest.mark.parametrize("how", ["readable", "link", "short", "folder"])
def test_a_key_that_may_be_known_or_is_none_vouches_for_nothing(tmp_path: Path, how: str) -> None:
    root = tmp_path / "prompts"
    saved(root, (run(0, 300), b"state"))
    key, elsewhere = root / "key", tmp_path / "elsewhere"
    if how == "readable":
        key.chmod(0o644)
    elif how == "short":
        key.write_bytes(b"")
    else:
        key.rename(elsewhere)
        if how == "link":
            key.symlink_to(elsewhere)
        else:
            key.mkdir()
    cache = opened(root)
    if how == "folder":  # nothing can take its place
        assert not cache.enabled
        return
    found = cache.find(run(0, 300), 1, True)
    assert found is not None and cache.load(found[0]) is None
    assert cache.save(run(0, 300), b"state", "k", wait_s=10)
    cache.close()
    assert stat.S_IMODE(key.lstat().st_mode) == 0o600 and len(key.read_bytes()) == 32 and not key.is_symlink()
    assert sorted(p.name for p in root.iterdir()) == sorted(["key", only(root).name])
    again = opened(root)
    found = again.find(run(0, 300), 1, True)
    assert found is not None and again.load(found[0]) is not None
    again.close()


def test_of_two_keys_made_at_once_the_first_counts(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_bytes(b"1" * 32)
    second.write_bytes(b"2" * 32)
    _name_first(str(first), tmp_path / "key")
    _name_first(str(second), tmp_path / "key")
    assert (tmp_path / "key").read_bytes() == b"1" * 32


def test_another_users_key_is_not_accepted(tmp_path: Path) -> None:
    key = user_key(tmp_path)
    assert user_key(tmp_path) == key and len(key) == 32
    data = build("f" * 32, run(0, 300), b"state", "", b"x" * 32)
    assert not verify(data, key) and verify(data, b"x" * 32)
    path = tmp_path / ("f" * 16 + "-0.kv")
    path.write_bytes(data)
    cache = opened(tmp_path)
    found = cache.find(run(0, 300), 1, True)
    assert found is not None and cache.load(found[0]) is None and not path.exists()
    cache.close()


def test_a_longer_version_replaces_the_shorter_and_a_document_keeps_three(tmp_path: Path) -> None:
    saved(tmp_path, (run(0, 300), b"a"), (run(0, 400), b"b"))
    assert len(list(tmp_path.glob("*.kv"))) == 1
    saved(tmp_path, *((run(1000 * n, 300), b"x") for n in range(1, 6)))
    assert len(list(tmp_path.glob("*.kv"))) == 3


def test_the_byte_limit_and_the_age_limit_hold(tmp_path: Path) -> None:
    for n in range(5):
        path = tmp_path / f"{n}.kv"
        path.write_bytes(bytes(100))
        os.utime(path, (1000.0 + n, 1000.0 + n))
    (tmp_path / ".new-x").write_bytes(bytes(10))
    os.utime(tmp_path / ".new-x", (0, 0))
    enforce(tmp_path, 250, 1.0, 1010.0)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["3.kv", "4.kv"]
    enforce(tmp_path, 250, 1.0, 1003.5 + 86_400)
    assert [p.name for p in tmp_path.iterdir()] == ["4.kv"]


def test_a_file_over_the_limit_goes_alone(tmp_path: Path) -> None:
    for n, size in enumerate((100, 100, 300)):
        path = tmp_path / f"{n}.kv"
        path.write_bytes(bytes(size))
        os.utime(path, (1000.0 + n, 1000.0 + n))
    enforce(tmp_path, 250, 1.0, 1010.0)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["0.kv", "1.kv"]


def test_an_error_of_any_kind_costs_one_prompt_and_not_the_writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache, real, failures = opened(tmp_path), build, [1]

    def fails_once(*a: object) -> bytes:
        if failures:
            failures.pop()
            raise ZeroDivisionError
        return real(*a)  # type: ignore[arg-type]

    monkeypatch.setattr("lsp_complete.engine.diskprompts.build", fails_once)
    assert cache.save(run(0, 300), b"a", "k", wait_s=10) and cache.save(run(1000, 300), b"b", "k", wait_s=10)
    cache.close()
    assert len(list(tmp_path.glob("*.kv"))) == 1


def test_purge_removes_everything(tmp_path: Path) -> None:
    saved(tmp_path, (run(0, 300), b"state"))
    count, freed = purge(str(tmp_path))
    assert count == 2 and freed > 300 and list(tmp_path.iterdir()) == []
    assert purge(str(tmp_path / "nowhere")) == (0, 0)


def test_a_directory_that_cannot_be_used_turns_saving_off(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    cache = opened(tmp_path / "file")
    assert not cache.enabled and not cache.save(run(0, 300), b"s", "k")
    assert cache.find(run(0, 300), 1, True) is None
    cache.close()


def test_a_full_disk_loses_the_prompt_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = opened(tmp_path)

    def full(path: Path, data: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("lsp_complete.engine.diskprompts.write_private", full)
    assert cache.save(run(0, 300), b"s", "k")
    cache.close()
    assert len(cache) == 0 and list(tmp_path.glob("*.kv")) == []


def engine(directory: Path) -> Harness:
    h = Harness(FakeBackend(context=2048), disk_cache_dir=str(directory))
    h.state.rates.prefill_token_ms = 3.0
    return h


def test_a_restarted_engine_restores_a_prompt_and_says_the_same(tmp_path: Path) -> None:
    first = engine(tmp_path)
    first.complete(ask(encode(LONG), key="a"))
    assert save_one(first.state, 0.0, 10) and not save_one(first.state, 0.0, 10)
    assert first.state.disk is not None
    first.state.disk.close()
    second = engine(tmp_path)
    request = ask(encode(LONG + "xy"), key="a")
    answer = second.complete(request)
    assert answer.timing.restored >= len(LONG) and answer.timing.evaluated == 2
    assert answer.candidates[0].text == cold(request)
    assert second.state.counters.restored_from_disk >= len(LONG)


def test_a_prompt_is_not_written_again_for_a_few_more_tokens(tmp_path: Path) -> None:
    h = engine(tmp_path)
    h.complete(ask(encode(LONG), key="a"))
    assert save_one(h.state, 0.0, 10)
    h.complete(ask(encode(LONG + "xy"), key="a"))
    assert not save_one(h.state, 0.0, 10)
    h.complete(ask(encode(LONG + "xy" * 60), key="a"))
    assert not save_one(h.state, 1e9, 10) and save_one(h.state, 0.0, 10)


def test_a_state_that_the_model_refuses_is_dropped(tmp_path: Path) -> None:
    h = engine(tmp_path)
    prompt = np.array(encode(LONG), dtype=np.int32)
    assert h.state.disk is not None and h.state.disk.save(prompt, b"not json", "a", wait_s=10)
    h.state.disk.close()
    again = engine(tmp_path)
    request = ask(encode(LONG), key="a")
    assert again.complete(request).candidates[0].text == cold(request)
    assert again.state.disk is not None and len(again.state.disk) == 0


def test_restoring_that_is_slower_than_evaluating_is_not_used(tmp_path: Path) -> None:
    first = engine(tmp_path)
    first.complete(ask(encode(LONG), key="a"))
    save_one(first.state, 0.0, 10)
    assert first.state.disk is not None
    first.state.disk.close()
    second = engine(tmp_path)
    second.state.rates.disk_mb_ms = 1e9
    with pytest.raises(PromptCold):  # so it does not count as being there
        second.complete(ask(encode(LONG), key="a", evaluate_limit=40))
    assert second.complete(ask(encode(LONG), key="a")).timing.restored == 0


def test_an_entry_is_what_its_head_says(tmp_path: Path) -> None:
    saved(tmp_path, (run(5, 256), b"12345"), key="k")
    entry = read_head(only(tmp_path), "f" * 32)
    assert isinstance(entry, DiskEntry) and entry.size == 5 and entry.tokens.tolist() == list(range(5, 261))
