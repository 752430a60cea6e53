"""Drives the engine's core by hand over the fake backend: no threads, a clock that the test moves."""

from __future__ import annotations

from collections.abc import Callable

from lsp_complete.engine.api import Completion, CompletionRequest
from lsp_complete.engine.core import Step, add_job, execute, prepare
from lsp_complete.engine.job import Job
from lsp_complete.engine.options import EngineOptions
from lsp_complete.engine.proposer import Proposer
from lsp_complete.engine.state import integrity, make_state
from tests.engine.fake_backend import FakeBackend


class Harness:
    """One engine core. `now` is in seconds; every step takes base_ms + token_ms per token."""

    def __init__(
        self,
        backend: FakeBackend | None = None,
        proposer: Proposer | None = None,
        base_ms: float = 0.0,
        token_ms: float = 1.0,
        **options: object,
    ) -> None:
        self.now = 0.0
        self.base_ms, self.token_ms = base_ms, token_ms
        self.backend = backend or FakeBackend()
        values = {
            "context": self.backend.info.context,
            "slots": self.backend.info.slots,
            "n_batch": 64,
            **options,
        }
        self.options = EngineOptions("fake", **values)  # type: ignore[arg-type]
        self.state = make_state(self.options, self.backend, lambda: self.now, proposer)
        self.results: dict[int, Completion | BaseException] = {}
        self.shown: dict[int, bytes] = {}
        self._next = 0

    def add(self, request: CompletionRequest, client: str = "") -> Job:
        self._next += 1
        number = self._next

        def emit(text: bytes) -> None:
            self.shown[number] = self.shown.get(number, b"") + text

        job = Job(
            number,
            request,
            client,
            self.now,
            self.now + request.time_limit_ms / 1e3,
            lambda r: self.results.__setitem__(number, r),
            emit,
        )
        add_job(self.state, job)
        return job

    def step(self, during: Callable[[Step], None] | None = None) -> Step | None:
        step = prepare(self.state)
        if step is not None:
            self.backend.clear_abort()
            if during is not None:
                during(step)
            execute(self.state, step)
            self.now += (self.base_ms + self.token_ms * step.tokens) * 1e-3
        return step

    def run(self, limit: int = 2000) -> None:
        """Until nothing is left to do; then the books must be right."""
        for _ in range(limit):
            if self.step() is None:
                break
        else:
            raise AssertionError("the engine did not come to rest")
        assert integrity(self.state, count_cells=True) == []

    def complete(self, request: CompletionRequest, client: str = "") -> Completion:
        job = self.add(request, client)
        self.run()
        result = self.results[job.id]
        if isinstance(result, BaseException):
            raise result
        return result


def cold(request: CompletionRequest, backend: FakeBackend | None = None) -> bytes:
    """The text that an untouched engine gives."""
    return Harness(backend or FakeBackend(context=4096)).complete(request).candidates[0].text
