"""Listening, dialling, locking, and knowing who is at the other end.

Strategy: one place for what differs between systems. Unix: a socket file, `flock`, and the kernel's word for the
peer's user id. Windows: loopback TCP, `msvcrt` locking, and a secret in a file that only the user can read,
proven both ways by challenge without being sent.

Rules:
- Only the holder of the lock may create or remove the socket, so a dying engine never removes its successor's.
- The lock counts only if the file at its path is still the one that was locked.
- A peer whose user id is not ours, or cannot be learned on a Unix socket, is refused.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import socket
import struct
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

from lsp_complete.engine.paths import Endpoint
from lsp_complete.errors import EngineUnavailable

PeerCheck = Callable[[socket.socket], "Peer"]
_BACKLOG = 64
_LOCK_POLL_S = 0.03


class NotListening(EngineUnavailable):
    """Nothing listens at this endpoint; an engine may be started there."""


_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


@dataclass(frozen=True, slots=True)
class Peer:
    """Who is at the other end. pid 0: the system does not say."""

    uid: int
    pid: int = 0


def peer_of(sock: socket.socket) -> Peer:
    """The kernel's word for the other end of a connected Unix socket. Raises EngineUnavailable if it has none."""
    try:
        if sys.platform == "darwin":  # struct xucred: version, uid, group count, groups
            raw = sock.getsockopt(0, 0x001, 76)
            return Peer(uid=struct.unpack_from("=II", raw)[1])
        if hasattr(socket, "SO_PEERCRED"):
            pid, uid, _gid = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
            return Peer(uid=uid, pid=pid)
    except (OSError, struct.error):
        pass
    raise EngineUnavailable("the system does not tell who is at the other end of the engine's socket")


def check_peer(sock: socket.socket, peer_check: PeerCheck) -> Peer:
    """The peer, if it is our own user. Raises EngineUnavailable otherwise. TCP peers prove a secret instead."""
    if sock.family != getattr(socket, "AF_UNIX", None):
        return Peer(uid=-1)
    peer = peer_check(sock)
    if peer.uid != os.getuid():
        raise EngineUnavailable(f"user {peer.uid} is not the user of this engine")
    return peer


class Lock:
    """An exclusive lock on a file, held until `release` or the end of the process."""

    def __init__(self, fd: int, endpoint: Endpoint) -> None:
        self._fd = fd
        self._path = endpoint.lock

    def still_ours(self) -> bool:
        """False if the lock file at its path was removed or replaced: another engine may have started."""
        return self._fd >= 0 and _same_file(self._fd, str(self._path))

    def release(self) -> None:
        """Remove the file (while it is still ours) and unlock. Idempotent."""
        if self._fd < 0:
            return
        if self.still_ours():
            with contextlib.suppress(OSError):
                self._path.unlink()
        os.close(self._fd)
        self._fd = -1


def _same_file(fd: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), os.stat(path, follow_symlinks=False))
    except OSError:
        return False


def _try_lock(fd: int) -> bool:
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except PermissionError:  # how Windows says that someone else holds it
        return False
    return True


def acquire(endpoint: Endpoint) -> Lock | None:
    """The engine lock, or None if another process holds it. Raises EngineUnavailable if locking fails otherwise."""
    while True:
        try:
            fd = os.open(endpoint.lock, os.O_RDWR | os.O_CREAT | _NOFOLLOW, 0o600)
        except OSError as error:
            raise EngineUnavailable(f"{endpoint.lock} cannot be opened ({error.strerror})") from None
        try:
            held = _try_lock(fd)
        except OSError as error:
            os.close(fd)
            raise EngineUnavailable(f"{endpoint.lock} cannot be locked ({error.strerror})") from None
        if not held:
            os.close(fd)
            return None
        if _same_file(fd, str(endpoint.lock)):
            with contextlib.suppress(OSError):  # a full disk must not keep the engine from starting
                os.ftruncate(fd, 0)
                os.pwrite(fd, str(os.getpid()).encode(), 0) if hasattr(os, "pwrite") else None
            return Lock(fd, endpoint)
        os.close(fd)  # the previous holder removed the file between our open and our lock


def listens(endpoint: Endpoint) -> bool:
    """Whether somebody takes connections there. A socket file alone says nothing: a killed engine leaves its own behind."""
    try:
        address, _ = where(endpoint)
        family = socket.AF_INET if endpoint.tcp else socket.AF_UNIX
        with socket.socket(family, socket.SOCK_STREAM) as sock:
            sock.settimeout(1.0)
            sock.connect(address)
    except (OSError, NotListening):
        return False
    return True


def acquire_or_join(
    endpoint: Endpoint,
    limit_s: float,
    *,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Lock | None:
    """The engine lock as soon as it is free, or None as soon as its holder listens (or the time is up). Blocks.

    The holder may just be ending: it has stopped to listen and still holds the lock. Whoever starts then waits here for its end,
    which is quicker than to give up and be started again.
    """
    until = clock() + limit_s
    while True:
        lock = acquire(endpoint)
        if lock is not None or listens(endpoint) or clock() >= until:
            return lock
        sleep(_LOCK_POLL_S)


def _is_held(endpoint: Endpoint, pid: int) -> bool:
    try:
        fd = os.open(endpoint.lock, os.O_RDWR | _NOFOLLOW)
    except OSError:
        return False
    try:
        if pid and sys.platform != "win32" and os.pread(fd, 32, 0) not in (b"", str(pid).encode()):
            return False
        return not _try_lock(fd)
    except OSError:
        return False
    finally:
        os.close(fd)


def wait_until_free(
    endpoint: Endpoint,
    limit_s: float,
    *,
    pid: int = 0,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> bool:
    """Wait until nobody (or, with `pid`, not this process) holds the engine lock: an engine lets go of it last of all. False: the
    time was up. Blocks; keeps no lock."""
    until = clock() + limit_s
    while _is_held(endpoint, pid):
        if clock() >= until:
            return False
        sleep(_LOCK_POLL_S)
    return True


def listen(endpoint: Endpoint) -> tuple[socket.socket, bytes]:
    """A listening socket and its secret (b"" for a Unix socket). Only for the holder of the lock.

    Raises EngineUnavailable with the system's reason.
    """
    try:
        return _listen_tcp(endpoint) if endpoint.tcp else (_listen_unix(endpoint), b"")
    except OSError as error:
        raise EngineUnavailable(f"the engine cannot listen at {endpoint.listening_file()} ({error.strerror})") from None


def _listen_unix(endpoint: Endpoint) -> socket.socket:
    with contextlib.suppress(FileNotFoundError):
        endpoint.socket.unlink()
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.bind(str(endpoint.socket))
        os.chmod(endpoint.socket, 0o600)
        sock.listen(_BACKLOG)
    except OSError:
        sock.close()
        raise
    sock.setblocking(False)
    return sock


def _listen_tcp(endpoint: Endpoint) -> tuple[socket.socket, bytes]:
    secret = secrets.token_bytes(32)
    sock = socket.create_server(("127.0.0.1", 0), backlog=_BACKLOG)
    temporary = endpoint.directory / f".{endpoint.name}.{secrets.token_hex(4)}"
    try:
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NOFOLLOW, 0o600)
        with os.fdopen(fd, "w", encoding="ascii") as out:
            json.dump({"port": sock.getsockname()[1], "secret": secret.hex()}, out)
        os.replace(temporary, endpoint.address)
    except OSError:
        sock.close()
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    sock.setblocking(False)
    return sock, secret


def remove_listener(endpoint: Endpoint) -> None:
    """Remove the socket or address file. Only for the holder of the lock."""
    with contextlib.suppress(OSError):
        endpoint.listening_file().unlink()


def where(endpoint: Endpoint) -> tuple[tuple[str, int] | str, bytes]:
    """What to dial, and the secret. Raises NotListening if there is no address file or a damaged one."""
    if not endpoint.tcp:
        return str(endpoint.socket), b""
    try:
        data = json.loads(endpoint.address.read_text(encoding="ascii"))
        port, secret = data["port"], bytes.fromhex(data["secret"])
        if type(port) is not int or not 0 < port < 65536 or len(secret) != 32:
            raise ValueError("out of range")
    except (OSError, ValueError, KeyError, TypeError):
        raise NotListening("no engine is listening") from None
    return ("127.0.0.1", port), secret
