"""Two engines at one endpoint, where the first is just ending, just starting, or was killed. Time is given."""

from __future__ import annotations

import os
import socket
from pathlib import Path

from lsp_complete.engine.paths import Endpoint
from lsp_complete.engine.transport import (
    acquire,
    acquire_or_join,
    listen,
    listens,
    remove_listener,
    wait_until_free,
)

from .conftest import Clock


class Sleeps:
    """A `sleep` that moves the clock and, at the given call, does something."""

    def __init__(self, clock: Clock) -> None:
        self.clock, self.count, self.then = clock, 0, {}

    def __call__(self, seconds: float) -> None:
        self.clock.now += seconds
        self.count += 1
        self.then.get(self.count, lambda: None)()


def test_the_lock_of_an_engine_that_is_ending_is_waited_for(run_dir: Path) -> None:
    endpoint, clock = Endpoint(run_dir, "e-test", False), Clock()
    old, sleeps = acquire(endpoint), Sleeps(clock)
    assert old is not None
    sleeps.then[3] = old.release
    new = acquire_or_join(endpoint, 15.0, sleep=sleeps, clock=clock)
    assert new is not None and new.still_ours() and sleeps.count == 3
    new.release()


def test_an_engine_that_begins_to_listen_is_joined(run_dir: Path) -> None:
    endpoint, clock = Endpoint(run_dir, "e-test", False), Clock()
    holder, sleeps = acquire(endpoint), Sleeps(clock)
    assert holder is not None
    opened: list[socket.socket] = []
    sleeps.then[2] = lambda: opened.append(listen(endpoint)[0])
    assert acquire_or_join(endpoint, 15.0, sleep=sleeps, clock=clock) is None
    assert sleeps.count == 2 and holder.still_ours()
    opened[0].close()
    holder.release()


def test_a_holder_that_does_neither_is_not_waited_for_for_ever(run_dir: Path) -> None:
    endpoint, clock = Endpoint(run_dir, "e-test", False), Clock()
    holder, sleeps = acquire(endpoint), Sleeps(clock)
    assert holder is not None
    began = clock.now
    assert acquire_or_join(endpoint, 15.0, sleep=sleeps, clock=clock) is None
    assert 15.0 <= clock.now - began < 15.1
    holder.release()


def test_the_socket_file_of_a_killed_engine_is_no_listener(run_dir: Path) -> None:
    endpoint = Endpoint(run_dir, "e-test", False)
    assert not listens(endpoint)
    sock, _ = listen(endpoint)
    assert listens(endpoint)
    sock.close()
    assert endpoint.socket.exists() and not listens(endpoint)
    remove_listener(endpoint)


def test_the_end_of_an_engine_is_waited_for(run_dir: Path) -> None:
    endpoint, clock = Endpoint(run_dir, "e-test", False), Clock()
    assert wait_until_free(endpoint, 0.0)
    holder, sleeps = acquire(endpoint), Sleeps(clock)
    assert holder is not None
    sleeps.then[3] = holder.release
    assert wait_until_free(endpoint, 20.0, sleep=sleeps, clock=clock) and sleeps.count == 3
    holder = acquire(endpoint)
    assert holder is not None and holder.still_ours()
    assert not wait_until_free(endpoint, 1.0, pid=os.getpid(), sleep=Sleeps(clock), clock=clock)
    assert wait_until_free(endpoint, 0.0, pid=os.getpid() + 1)  # it has a successor by now
    assert holder.still_ours()
    holder.release()


def test_over_tcp_too(run_dir: Path) -> None:
    endpoint = Endpoint(run_dir, "e-test", True)
    assert not listens(endpoint)
    sock, _ = listen(endpoint)
    assert listens(endpoint)
    sock.close()
    assert not listens(endpoint)
