"""The log: private, rotated, without user text, and never the reason that anything fails."""

from __future__ import annotations

import logging
import os
import stat
from pathlib import Path

from lsp_complete.engine.logs import PrivateLog, open_private, remove_stale, tail
from lsp_complete.errors import ModelError


def logger_of(handler: PrivateLog) -> logging.Logger:
    logger = logging.Logger("test")
    logger.addHandler(handler)
    return logger


def test_file_is_private(run_dir: Path) -> None:
    handler = PrivateLog(run_dir / "logs" / "e-1.log")
    logger_of(handler).warning("hello")
    handler.close()
    assert stat.S_IMODE(handler.path.stat().st_mode) == 0o600
    assert "hello" in handler.path.read_text()


def test_rotation_keeps_so_many_files(run_dir: Path) -> None:
    handler = PrivateLog(run_dir / "e-1.log", max_bytes=200, keep=2)
    for n in range(30):
        logger_of(handler).warning("line %d %s", n, "x" * 60)
    handler.close()
    assert sorted(p.name for p in run_dir.iterdir()) == ["e-1.log", "e-1.log.1", "e-1.log.2"]
    assert all(p.stat().st_size <= 300 for p in run_dir.iterdir())
    assert "line 29" in handler.path.read_text() and handler.dropped == 0


def test_full_disk_costs_lines_only(run_dir: Path) -> None:
    handler = PrivateLog(run_dir / "e-1.log", opener=lambda path: os.open("/dev/full", os.O_WRONLY))
    for _ in range(3):
        logger_of(handler).error("lost")
    assert handler.dropped == 3
    handler.close()


def test_forbidden_directory_costs_lines_only(run_dir: Path) -> None:
    (run_dir / "file").write_text("")
    handler = PrivateLog(run_dir / "file" / "e-1.log")
    logger_of(handler).error("lost")
    assert handler.fileno() == -1 and handler.dropped == 1
    handler.close()


def test_writing_goes_on_once_there_is_room_again(run_dir: Path) -> None:
    full = [True]

    def opener(path: Path) -> int:
        if full[0]:
            raise OSError(28, "No space left on device")
        return open_private(path)

    handler = PrivateLog(run_dir / "e-1.log", opener=opener)
    logger_of(handler).error("lost")
    full[0] = False
    logger_of(handler).error("lost too, but the file is opened")
    logger_of(handler).error("kept")
    handler.close()
    assert "kept" in handler.path.read_text()


def test_a_link_is_not_followed(run_dir: Path) -> None:
    (run_dir / "e-1.log").symlink_to(run_dir / "target")
    handler = PrivateLog(run_dir / "e-1.log")
    logger_of(handler).error("x")
    assert not (run_dir / "target").exists() and handler.dropped == 1
    handler.close()


def test_exceptions_show_their_place_but_not_their_words(run_dir: Path) -> None:
    handler = PrivateLog(run_dir / "e-1.log")
    logger = logger_of(handler)
    for error in (KeyError("def secret_function():"), ModelError("file is too short")):
        try:
            raise error
        except Exception:
            logger.exception("failed")
    handler.close()
    text = handler.path.read_text()
    assert "KeyError" in text and "test_logs.py" in text and "file is too short" in text
    assert "secret_function" not in text


def test_stale_logs_go(run_dir: Path) -> None:
    for name, age in (("e-1.log", 20), ("e-2.log.1", 20), ("e-3.log", 1), ("notes.log", 99)):
        (run_dir / name).write_text("")
        os.utime(run_dir / name, (1e9 - age * 86400,) * 2)
    remove_stale(run_dir, now=1e9)
    assert sorted(p.name for p in run_dir.iterdir()) == ["e-3.log", "notes.log"]
    remove_stale(run_dir / "none")


def test_tail_reads_the_newest(run_dir: Path) -> None:
    assert tail(run_dir) == "" and tail(run_dir / "none") == ""
    (run_dir / "e-1.log").write_text("old\n")
    os.utime(run_dir / "e-1.log", (1, 1))
    (run_dir / "e-2.log").write_bytes(b"".join(b"line %d\n" % n for n in range(500)) + b"\xff\n")
    assert tail(run_dir, 2) == "line 499\n�"
