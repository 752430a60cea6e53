"""`POST /v1/completions`: a fill-in request of an editor that does not speak LSP, answered by the service.

Strategy: the text before and after the cursor becomes an open document, and the request an ordinary query on it. So such an editor gets the
anchored prompt, healing, filters and typed-through answers too, not a bare model.

Rules:
- A prompt may be text with a `suffix`, or hold a family's fill-in tokens once each, in their order (`prompt_format` in Zed). Their text is
  taken apart here and never parsed as special tokens; only the first of each counts.
- One document for all requests: the newest request wins. A client that leaves cancels its work.
- Nothing of the text is kept or logged.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import itertools
import json
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ..config import Settings
from ..models.formats import FimFormat, formats
from ..service import Query, Service
from ..text.document import Document
from . import http_wire
from .http_wire import BadRequest, Request

URI = "untitled:lsp-complete-http"
MODEL = "lsp-complete"


@dataclass(frozen=True, slots=True)
class Fill:
    """What is asked for. max_tokens: 0 leaves it to the settings."""

    before: str
    after: str
    max_tokens: int = 0
    stream: bool = False


def parsed(body: bytes) -> Fill:
    """A request's body. Raises BadRequest with a sentence for the client."""
    try:
        data = json.loads(body)
    except ValueError:
        raise BadRequest(400, "the body is no JSON") from None
    prompt = data.get("prompt") if isinstance(data, dict) else None
    if isinstance(prompt, list) and len(prompt) == 1:
        prompt = prompt[0]
    if not isinstance(prompt, str):
        raise BadRequest(400, "`prompt` must be a text")
    suffix, most = data.get("suffix"), data.get("max_tokens")
    before, after = (prompt, suffix) if isinstance(suffix, str) else taken_apart(prompt, formats())
    limit = most if isinstance(most, int) and not isinstance(most, bool) and most > 0 else 0
    return Fill(before, after, min(limit, 512), data.get("stream") is True)


def taken_apart(prompt: str, families: Iterable[FimFormat]) -> tuple[str, str]:
    """Text before and after the cursor of a prompt in one of the families' formats; else all of it is before.

    What stands before the prefix token (other files, a repository's name) is left out: the text is one document.
    """
    for family in families:
        if not (family.prefix and family.suffix and family.middle) or not prompt.endswith(family.middle):
            continue
        inner = prompt[: -len(family.middle)]
        first = inner.find(family.prefix if family.order == "psm" else family.suffix)
        if first < 0:
            continue
        opening, cut = (family.prefix, family.suffix) if family.order == "psm" else (family.suffix, family.prefix)
        left, found, right = inner[first + len(opening) :].partition(cut)
        if found:
            return (left, right) if family.order == "psm" else (right, left)
    return prompt, ""


class Completions:
    """The API over one service. Event loop."""

    def __init__(self, service: Service, token: str, hosts: Callable[[], frozenset[str]]) -> None:
        self._service, self._token, self._hosts = service, token, hosts
        self._settings: Settings = service.settings
        self._numbers = itertools.count(1)
        service.open(Document.open(URI, "plaintext", 0, ""))  # starts the engine

    async def connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection until it ends."""
        try:
            keep = True
            while keep:
                try:
                    request = await http_wire.read_request(reader, 300.0)
                    if request is None:
                        return
                    keep = request.keep
                    answer = await self._unless_gone(request, reader)
                except BadRequest as problem:
                    keep, answer = False, http_wire.error(problem.status, str(problem))
                if answer is None:
                    return
                writer.write(answer)
                await writer.drain()
        except (ConnectionError, TimeoutError, asyncio.TimeoutError):
            return
        finally:
            writer.close()

    async def _unless_gone(self, request: Request, reader: asyncio.StreamReader) -> bytes | None:
        """The answer; None, with the work cancelled, if the client leaves before it."""
        work = asyncio.ensure_future(self.answer(request))
        gone = asyncio.ensure_future(reader.read(1))
        await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
        if work.done():
            gone.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                if await gone:  # a second request behind the first: answered on a connection of its own
                    return work.result().replace(b"keep-alive", b"close", 1)
            return work.result()
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
        return None

    async def answer(self, request: Request) -> bytes:
        """The answer to one request. Raises BadRequest."""
        self._check(request)
        if request.path == "/v1/models":
            return http_wire.response(200, {"object": "list", "data": [{"id": MODEL, "object": "model"}]})
        if request.path != "/v1/completions":
            raise BadRequest(404, "there are /v1/completions and /v1/models")
        if request.method != "POST":
            raise BadRequest(405, "completions are asked for by POST")
        fill = parsed(request.body)
        text, tokens = await self._fill(fill)
        return self._worded(text, tokens, fill.stream)

    def _check(self, request: Request) -> None:
        """A web page can reach loopback too: the host must be ours and the token right."""
        if request.headers.get("host", "") not in self._hosts():
            raise BadRequest(403, "this server answers on loopback only")
        given = request.headers.get("authorization", "").removeprefix("Bearer ").strip()
        if not hmac.compare_digest(given.encode(), self._token.encode()):
            raise BadRequest(401, "the token is wrong or missing; `lsp-complete serve-http` prints it")

    async def _fill(self, fill: Fill) -> tuple[str, tuple[int, int]]:
        document = Document.open(URI, "plaintext", 1, fill.before + fill.after)
        suggest = self._settings.suggest
        most = min(suggest.max_tokens, fill.max_tokens) if fill.max_tokens else suggest.max_tokens
        self._service.configure(
            self._settings.model_copy(update={"suggest": suggest.model_copy(update={"max_tokens": most})})
        )
        self._service.open(document)
        answer = await self._service.answer(Query(document, len(fill.before), time.perf_counter(), "automatic"))
        stages = answer.stages
        if stages.outcome in ("unavailable", "error"):
            raise BadRequest(503, f"no suggestion: {stages.reason or stages.outcome}")
        text = answer.suggestions[0].text if answer.suggestions else ""
        return text, (stages.prompt_tokens, stages.decoded)

    def _worded(self, text: str, tokens: tuple[int, int], stream: bool) -> bytes:
        choice = {"index": 0, "text": text, "logprobs": None, "finish_reason": "stop"}
        body = {
            "id": f"cmpl-{next(self._numbers)}",
            "object": "text_completion",
            "created": int(time.time()),
            "model": MODEL,
            "choices": [choice],
            "usage": {"prompt_tokens": tokens[0], "completion_tokens": tokens[1], "total_tokens": sum(tokens)},
        }
        if not stream:
            return http_wire.response(200, body)
        events = f"data: {json.dumps(body, ensure_ascii=False)}\n\ndata: [DONE]\n\n"
        return http_wire.response(200, events, kind="text/event-stream")
