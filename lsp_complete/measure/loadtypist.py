"""A typist for load: types line after line for so many seconds in the rhythm of real typing, and says what became of each request.

Strategy: as an editor does it (see `rhythm`), but what counts here is how long each request took and whether any was
lost, not what stood on the screen.

Rules:
- Every key asks, as in an editor, the line's last one too: nothing overtakes that one while the person looks, so long waits are seen to
  their end as well.
- Lines are typed to their end, so the document is whole in between; the time may run over by one line.
- A request is "answered", "overtaken" (cancelled by the next key, or superseded), "refused" (an error, or no engine) or
  "lost" (no reply at all). Its time runs until the answer, or until it was overtaken.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle
from time import perf_counter

from .client import CANCELLED, LspClient
from .corpus import Place
from .edits import Position, apply_edits
from .jsonrpc import Call
from .typist import Key, script_for

Pause = Callable[[float], Awaitable[object]]

LOOK_S = (0.6, 2.0)
"""Between two lines a person looks for so long, at least and at most."""

REPLY_LIMIT_S = 30.0
"""A request without a reply so long after the typing ended is lost."""

FAILED = frozenset({"unavailable", "error"})
OVERTAKEN = frozenset({"superseded", "cancelled"})


@dataclass(frozen=True, slots=True)
class Asked:
    """One request. at: seconds since the typing began. waited_ms: see the module's rules (of a lost one: until it was given up)."""

    at: float
    waited_ms: float
    state: str
    source: str = ""


@dataclass(slots=True)
class _Open:
    call: Call
    cursor: Position
    cancelled: float | None = None


class LoadTypist:
    """One person at one window. Event loop. The file is opened at the first line typed."""

    def __init__(
        self,
        client: LspClient,
        places: Sequence[Place],
        delays: Iterator[float],
        rng: random.Random,
        pause: Pause = asyncio.sleep,
        reply_limit_s: float = REPLY_LIMIT_S,
    ) -> None:
        if not places:
            raise ValueError("A typist needs at least one line to type.")
        self._client, self._places, self._delays, self._rng = client, cycle(places), delays, rng
        self._pause, self._limit_s = pause, reply_limit_s
        self._asked: list[_Open] = []
        self._last: _Open | None = None
        self._opened: set[str] = set()

    async def type_for(self, seconds: float) -> list[Asked]:
        """Type for so long (one line at least), then wait for the replies. Raises ConnectionError if the server went away."""
        began = perf_counter()
        self._asked, due = [], began
        while not self._asked or perf_counter() - began < seconds:
            due = await self._type_line(next(self._places), due)
            due += self._rng.uniform(*LOOK_S)
            await self._pause(max(0.0, due - perf_counter()))
        return list(await asyncio.gather(*(self._became(open_, began) for open_ in self._asked)))

    async def _type_line(self, place: Place, due: float) -> float:
        source = place.source
        script = script_for(source.text, place.line, source.language_id)
        uri = source.path.as_uri()
        if uri in self._opened:
            self._client.change(uri, [script.removal])
        else:
            self._opened.add(uri)
            self._client.open(uri, source.language_id, apply_edits(source.text, [script.removal]))
        due = max(due, perf_counter() - 0.2)  # after a stall of this program itself keys do not come in a heap
        for key in script.keys:
            self._press(uri, key)
            due += next(self._delays) / 1000
            await self._pause(max(0.0, due - perf_counter()))
        return due

    def _press(self, uri: str, key: Key) -> None:
        self._client.change(uri, key.edits)
        last = self._last
        if last is not None and not last.call.reply.done():
            self._client.cancel(last.call)
            last.cancelled = perf_counter()
        self._last = _Open(self._client.ask(uri, key.cursor), key.cursor)
        self._asked.append(self._last)

    async def _became(self, asked: _Open, began: float) -> Asked:
        call = asked.call
        at = call.sent - began
        try:
            answer = await self._client.answer(call, asked.cursor, self._limit_s)
        except (TimeoutError, asyncio.TimeoutError):
            return Asked(at, (perf_counter() - call.sent) * 1000, "lost")
        end = asked.cancelled or answer.received
        outcome = str(answer.stages.get("outcome", ""))
        source = str(answer.stages.get("source", ""))
        if answer.code == CANCELLED or outcome in OVERTAKEN:
            return Asked(at, (min(end, answer.received) - call.sent) * 1000, "overtaken", source)
        state = "refused" if answer.code or outcome in FAILED else "answered"
        return Asked(at, (answer.received - call.sent) * 1000, state, source)
