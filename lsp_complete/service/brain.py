"""The engine's life as the service sees it: started at the first document, replaced when settings change.

Rules:
- With no model the server runs on, says so once with the exact command, and answers nothing.
- A model file's fingerprint is validated by the engine before this process maps its vocabulary.
- Thread: the event loop; the vocabulary is read in a worker thread.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from ..config import Settings
from ..engine.api import Engine, ModelInfo
from ..errors import EngineUnavailable, LspCompleteError, MemoryPlanError
from .planning import LoadedModel

logger = logging.getLogger(__name__)

Show = Callable[[str, str], None]
"""(level, message): level is "error" | "warning" | "info"."""


MEMORY_RETRY_S = 60.0
"""After so long a model that did not fit the memory may be tried again: other programs may have ended."""


class Status(Protocol):
    """kind: "Normal" | "Warning" | "Error" | "Inactive", as Copilot's server names them."""

    def __call__(self, kind: str, message: str, busy: bool = False) -> None: ...


@dataclass(frozen=True, slots=True)
class Opened:
    """An engine being started, and how to read its model's vocabulary once it is there."""

    engine: Engine
    load: Callable[[ModelInfo], LoadedModel]


Opener = Callable[[Settings, Callable[[str, str], None]], Awaitable[Opened]]
"""Find the model and start or join its engine. Raises ModelError with the command to run if there is none."""


class Brain:
    """At most one engine at a time, and its loaded model."""

    def __init__(
        self, opener: Opener, show: Show, status: Status, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._opener, self._show, self._status, self._clock = opener, show, status, clock
        self._retry_at = math.inf
        self._task: asyncio.Task[None] | None = None
        self.engine: Engine | None = None
        self.model: LoadedModel | None = None
        self.info: ModelInfo | None = None
        self.problem = ""

    @property
    def ready(self) -> bool:
        return self.engine is not None and self.model is not None

    def start(self, settings: Settings, then: Callable[[], None]) -> None:
        """Begin starting unless that has begun. `then` runs on the loop once the model is ready. A model that did not fit the
        memory is tried again after a while, without another message."""
        if self._task is None or (self._task.done() and self._clock() >= self._retry_at):
            self._retry_at = math.inf
            self._task = asyncio.ensure_future(self._start(settings, then))

    async def soon(self, overtaken: asyncio.Future[None], limit_s: float) -> None:
        """Wait until what is being started is ready or has failed, the future is done, or the time is over: who types into a file that was
        just opened shall get a suggestion without another key."""
        if self._task is not None and not self._task.done():
            await asyncio.wait({self._task, overtaken}, timeout=limit_s, return_when=asyncio.FIRST_COMPLETED)

    async def _start(self, settings: Settings, then: Callable[[], None]) -> None:
        self._status("Normal", "starting the engine", busy=True)
        try:
            opened = await self._opener(settings, self._on_state)
            self.engine = opened.engine
            self.info = await opened.engine.info()
            self.model = await asyncio.to_thread(opened.load, self.info)
        except LspCompleteError as error:
            told = bool(self.problem) and isinstance(error, MemoryPlanError)
            self.problem = str(error)
            self._status("Error", str(error))
            if isinstance(error, MemoryPlanError):
                self._retry_at = self._clock() + MEMORY_RETRY_S
            if self.engine is not None and self._retry_at < math.inf:
                await self.engine.close()
            if told:
                return
            self._show("error" if not isinstance(error, EngineUnavailable) else "warning", f"lsp-complete: {error}")
            return
        except Exception as error:
            self.problem = f"the engine could not be started ({type(error).__name__})"
            logger.exception("starting the engine failed")
            self._status("Error", self.problem)
            self._show("error", f"lsp-complete: {self.problem}; see `lsp-complete engine logs` and `lsp-complete doctor`")
            return
        self.problem = ""
        self._status("Normal", f"ready: {self.model.name}")
        then()

    def _on_state(self, state: str, message: str) -> None:
        if state == "restarting":
            self._status("Warning", message, busy=True)
            self._show("warning", f"lsp-complete: {message}")
        elif state == "failed":
            self.problem = message
            self._status("Error", message)
            self._show("error", f"lsp-complete: {message}")
        elif state == "ready" and self.model is not None:
            self.problem = ""
            self._status("Normal", f"ready: {self.model.name}")

    async def stop(self) -> None:
        """Let go of the engine; a later `start` begins anew."""
        task, engine = self._task, self.engine
        self._task = self.engine = self.model = self.info = None
        if task is not None and not task.done():
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        if engine is not None:
            await engine.close()
