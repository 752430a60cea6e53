"""Running a generated program under limits: own process, own folder, no network, bounded time, memory and output.

Strategy: this file runs itself as the child (`python -I sandbox.py program`), sets its limits there and then executes
the program, so the parent needs no hook between fork and exec. Where Linux allows it the child leaves the network
namespace; everywhere it makes sockets and new processes fail.

Rules: the verdict is the exit status; the program's output is thrown away. This guards against a model's accidents, not against an attacker.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

CPU_S = 5
WALL_S = 15.0
MEMORY_BYTES = 1 << 30
FILE_BYTES = 1 << 20
_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000


def passes(program: str, wall_s: float = WALL_S) -> bool:
    """True if the program ends with status 0 within its limits. Blocks; may run in any thread."""
    with tempfile.TemporaryDirectory(prefix="lspc-run-") as folder:
        path = Path(folder) / "program.py"
        path.write_text(program, encoding="utf-8")
        command = [sys.executable, "-I", "-S", str(Path(__file__).resolve()), str(path)]
        try:
            done = subprocess.run(
                command,
                cwd=folder,
                env={"PATH": os.defpath, "HOME": folder, "TMPDIR": folder},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=wall_s,
                start_new_session=True,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return False
        return done.returncode == 0


def _limit() -> None:
    try:
        import resource
    except ImportError:  # Windows: time limit only
        return
    for what, amount in (
        (resource.RLIMIT_CPU, CPU_S),
        (resource.RLIMIT_AS, MEMORY_BYTES),
        (resource.RLIMIT_FSIZE, FILE_BYTES),
        (resource.RLIMIT_CORE, 0),
    ):
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(what, (amount, amount))


def _leave_network() -> None:
    import ctypes

    with contextlib.suppress(OSError, AttributeError):
        library = ctypes.CDLL(None, use_errno=True)
        if library.unshare(_CLONE_NEWUSER | _CLONE_NEWNET) != 0:
            library.unshare(_CLONE_NEWNET)


_REFUSED = frozenset(
    {"socket.__new__", "socket.connect", "socket.bind", "socket.getaddrinfo", "subprocess.Popen", "os.system",
     "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.kill", "shutil.rmtree", "ctypes.dlopen"}
)  # fmt: skip


def _refuse(event: str, _arguments: object) -> None:
    if event in _REFUSED:
        raise PermissionError(f"{event} is not allowed here")


def _child(path: str) -> None:
    source = Path(path).read_text(encoding="utf-8")
    _leave_network()
    _limit()
    sys.addaudithook(_refuse)
    exec(compile(source, "program.py", "exec"), {"__name__": "__main__"})  # noqa: S102 (this is the sandbox)


if __name__ == "__main__":
    _child(sys.argv[1])
