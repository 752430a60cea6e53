"""The private directory, names of endpoints, locks and sockets."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from lsp_complete.engine import paths, transport
from lsp_complete.engine.control import _endpoints
from lsp_complete.engine.paths import (
    Endpoint,
    check_private,
    endpoint_name,
    make_private,
    private_directories,
    runtime_directory,
)
from lsp_complete.engine.transport import NotListening, acquire, listen, remove_listener, where
from lsp_complete.errors import EngineUnavailable


def test_directory_is_made_private(run_dir: Path) -> None:
    made = make_private(run_dir / "a" / "b")
    assert stat.S_IMODE(made.stat().st_mode) == 0o700
    assert make_private(made) == made


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o701])
def test_wider_mode_is_refused(run_dir: Path, mode: int) -> None:
    (run_dir / "d").mkdir()
    (run_dir / "d").chmod(mode)
    with pytest.raises(EngineUnavailable, match="other users"):
        make_private(run_dir / "d")
    assert stat.S_IMODE((run_dir / "d").stat().st_mode) == mode  # refused, not mended


def test_symbolic_link_is_refused(run_dir: Path) -> None:
    (run_dir / "real").mkdir(mode=0o700)
    (run_dir / "link").symlink_to(run_dir / "real")
    with pytest.raises(EngineUnavailable, match="symbolic link"):
        make_private(run_dir / "link")


def test_file_and_missing_are_refused(run_dir: Path) -> None:
    (run_dir / "f").write_text("")
    with pytest.raises(EngineUnavailable, match="not a directory"):
        make_private(run_dir / "f")
    with pytest.raises(EngineUnavailable):
        check_private(run_dir / "none")
    with pytest.raises(EngineUnavailable):
        make_private(run_dir / "f" / "below" / "it")


def test_foreign_owner_is_refused(run_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    owner = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: owner + 1)
    with pytest.raises(EngineUnavailable, match="another user"):
        check_private(run_dir)


def test_the_first_usable_candidate_is_taken(run_dir: Path) -> None:
    (run_dir / "bad").mkdir()
    (run_dir / "bad").chmod(0o777)
    long = run_dir / ("x" * 100)
    assert runtime_directory([long, run_dir / "bad", run_dir / "good", run_dir / "never"]) == run_dir / "good"
    assert not long.exists() and not (run_dir / "never").exists()


def test_no_candidate_left_says_why_for_each(run_dir: Path) -> None:
    (run_dir / "bad").symlink_to(run_dir)
    with pytest.raises(EngineUnavailable, match=r"too long.*symbolic link"):
        runtime_directory([run_dir / ("x" * 100), run_dir / "bad"])


def test_engines_are_looked_for_wherever_they_may_be(run_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which directory an engine uses depends on the environment of the editor that started it."""
    for name, mode in (("a", 0o700), ("open", 0o755), ("b", 0o700)):
        (run_dir / name).mkdir()
        (run_dir / name).chmod(mode)
        (run_dir / name / f"e-{name}.lock").write_text("")
    places = [run_dir / name for name in ("a", "open", "missing", "b")]
    monkeypatch.setattr("lsp_complete.engine.paths.runtime_candidates", lambda: places)
    assert private_directories() == [run_dir / "a", run_dir / "b"]
    assert [e.name for e in _endpoints(None, False)] == ["e-a", "e-b"]


def test_socket_paths_are_short_enough() -> None:
    name = endpoint_name("m", {})
    length = paths.MAX_SOCKET_PATH - paths._LONGEST_NAME
    directory = Path("/" + "d" * (length - 1))
    assert paths.fits(directory) and not paths.fits(Path(str(directory) + "d"))
    assert len(os.fsencode(Endpoint(directory, name).socket)) == paths.MAX_SOCKET_PATH < 108


def test_candidates_begin_with_the_session_directory(monkeypatch: pytest.MonkeyPatch, run_dir: Path) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(run_dir))
    assert paths.runtime_candidates()[0] == run_dir / "lsp-complete"
    monkeypatch.setenv("XDG_RUNTIME_DIR", "relative/path")
    assert all(p.is_absolute() for p in paths.runtime_candidates())


def test_a_full_disk_leaves_the_session_directory(monkeypatch: pytest.MonkeyPatch, run_dir: Path) -> None:
    """Python tries a temporary directory by writing to it, and raises if it finds none."""

    def none_usable() -> str:
        raise FileNotFoundError("No usable temporary directory found")

    monkeypatch.setenv("XDG_RUNTIME_DIR", str(run_dir))
    monkeypatch.setattr(paths.tempfile, "gettempdir", none_usable)
    assert paths.runtime_candidates()[0] == run_dir / "lsp-complete"
    assert len(paths.runtime_candidates()) == 2


def test_name_tells_engines_apart(run_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = run_dir / "m.gguf"
    model.write_bytes(b"1")
    base = endpoint_name(str(model), {"context": 1})
    assert base == endpoint_name(str(run_dir / "." / "m.gguf"), {"context": 1})
    names = {base, endpoint_name(str(model), {"context": 2}), endpoint_name(str(model), {"context": 1}, salt=1)}
    names.add(endpoint_name(str(run_dir / "other.gguf"), {"context": 1}))
    monkeypatch.setattr(paths, "__version__", "999")
    names.add(endpoint_name(str(model), {"context": 1}))
    monkeypatch.undo()
    model.write_bytes(b"22")  # replaced under the same name
    names.add(endpoint_name(str(model), {"context": 1}))
    assert len(names) == 6 and "m.gguf" not in "".join(names)


def test_one_lock_holder_at_a_time(run_dir: Path) -> None:
    endpoint = Endpoint(run_dir, "e-1")
    first = acquire(endpoint)
    assert first is not None and acquire(endpoint) is None
    assert endpoint.lock.read_text() == str(os.getpid())
    assert stat.S_IMODE(endpoint.lock.stat().st_mode) == 0o600
    first.release()
    first.release()
    second = acquire(endpoint)
    assert second is not None and second.still_ours()
    second.release()
    assert not endpoint.lock.exists()


def test_a_removed_lock_file_is_noticed_and_its_successor_left_alone(run_dir: Path) -> None:
    endpoint = Endpoint(run_dir, "e-1")
    old = acquire(endpoint)
    assert old is not None
    endpoint.lock.unlink()
    new = acquire(endpoint)
    assert new is not None and new.still_ours() and not old.still_ours()
    old.release()
    assert new.still_ours()
    new.release()


def test_a_lock_file_removed_between_opening_and_locking_does_not_count(
    run_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The dying holder removes its file while the next engine already waits for it."""
    endpoint, real = Endpoint(run_dir, "e-1"), transport._try_lock

    def late(fd: int) -> bool:
        monkeypatch.setattr(transport, "_try_lock", real)
        endpoint.lock.unlink()
        return real(fd)

    monkeypatch.setattr(transport, "_try_lock", late)
    lock = acquire(endpoint)
    assert lock is not None and lock.still_ours() and acquire(endpoint) is None
    lock.release()


def test_a_lock_path_that_is_a_link_is_refused(run_dir: Path) -> None:
    endpoint = Endpoint(run_dir, "e-1")
    endpoint.lock.symlink_to(run_dir / "elsewhere")
    with pytest.raises(EngineUnavailable, match="cannot be opened"):
        acquire(endpoint)
    assert not (run_dir / "elsewhere").exists()


def test_a_stale_socket_file_is_replaced(run_dir: Path) -> None:
    endpoint = Endpoint(run_dir, "e-1", tcp=False)
    listen(endpoint)[0].close()
    assert endpoint.socket.exists()
    sock, secret = listen(endpoint)
    assert secret == b"" and stat.S_IMODE(endpoint.socket.stat().st_mode) == 0o600
    sock.close()
    remove_listener(endpoint)
    remove_listener(endpoint)
    assert not endpoint.socket.exists()


def test_tcp_address_file_is_private_and_checked(run_dir: Path) -> None:
    endpoint = Endpoint(run_dir, "e-1", tcp=True)
    sock, secret = listen(endpoint)
    address = sock.getsockname()
    assert address[0] == "127.0.0.1" and where(endpoint) == (("127.0.0.1", address[1]), secret)
    assert stat.S_IMODE(endpoint.address.stat().st_mode) == 0o600
    sock.close()
    for text in ("", "{}", "[]", '{"port": 0, "secret": "00"}', '{"port": true, "secret": "zz"}', "é"):
        endpoint.address.write_text(text, encoding="utf-8")
        with pytest.raises(NotListening):
            where(endpoint)


def test_listening_in_a_lost_directory_is_a_clear_error(run_dir: Path) -> None:
    with pytest.raises(EngineUnavailable, match="cannot listen"):
        listen(Endpoint(run_dir / "gone", "e-1", tcp=False))
