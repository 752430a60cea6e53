"""`serve-http` over a real socket, with the scripted engine."""

from __future__ import annotations

import asyncio
import json
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from lsp_complete.commands.http_completions import taken_apart
from lsp_complete.commands.serve_http import serve, token_in
from lsp_complete.config import gather, load
from lsp_complete.engine.fake import ScriptedEngine
from lsp_complete.errors import LspCompleteError
from lsp_complete.models.formats import formats
from lsp_complete.service.brain import Opened
from tests.lsp.harness import MODEL, prompt_text

TOKEN = "secret"


@asynccontextmanager
async def api(engine: ScriptedEngine) -> AsyncIterator[int]:
    """A listening server; gives its port."""
    port: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def opener(_settings: Any, _on_state: Any) -> Opened:
        return Opened(engine, lambda _info: MODEL)

    settings = load(gather()).settings
    task = asyncio.ensure_future(serve(0, TOKEN, settings, opener, port.set_result))
    try:
        yield await port
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def send(port: int, raw: bytes) -> tuple[int, dict[str, Any] | str]:
    """Status and body of one answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(raw)
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
    body = (await reader.readexactly(length)).decode()
    writer.close()
    return int(head.split()[1]), json.loads(body) if b"application/json" in head else body


def request(port: int, body: object, **changed: str) -> bytes:
    data = json.dumps(body).encode() if not isinstance(body, bytes) else body
    headers = {"Host": f"127.0.0.1:{port}", "Authorization": f"Bearer {TOKEN}", "Content-Length": str(len(data))}
    headers |= {key.replace("_", "-"): value for key, value in changed.items()}
    lines = "".join(f"{key}: {value}\r\n" for key, value in headers.items())
    return f"POST /v1/completions HTTP/1.1\r\n{lines}\r\n".encode() + data


async def ask(port: int, body: object, **changed: str) -> tuple[int, Any]:
    """As `send`, again while the model is being loaded."""
    while True:
        status, answer = await send(port, request(port, body, **changed))
        if status != 503:
            return status, answer


QWEN = "<|fim_prefix|>def f(a):\n    return <|fim_suffix|>\nprint(f(1))\n<|fim_middle|>"


async def test_a_prompt_with_fill_in_tokens_becomes_an_anchored_prompt() -> None:
    engine = ScriptedEngine([b"a + 1"])
    async with api(engine) as port:
        status, answer = await ask(port, {"model": "x", "prompt": QWEN, "max_tokens": 64})
    assert status == 200
    assert answer["choices"][0]["text"] == "a + 1"
    assert answer["object"] == "text_completion"
    prompt = prompt_text(engine.requests[-1].prompt)
    assert "fim_prefix" not in prompt and "<S>print(f(1))\n<M>" in prompt.replace("\n<M>", "\n<M>")


async def test_text_with_a_suffix_and_a_stream() -> None:
    async with api(ScriptedEngine([b"a + 1"])) as port:
        status, answer = await ask(port, {"prompt": "def f(a):\n    return ", "suffix": "\nf(1)\n", "stream": True})
    assert status == 200
    events = [line.removeprefix("data: ") for line in answer.splitlines() if line]
    assert events[-1] == "[DONE]"
    assert "".join(json.loads(e)["choices"][0]["text"] for e in events[:-1]) == "a + 1"


async def test_without_the_token_or_by_another_name_nothing_is_answered() -> None:
    engine = ScriptedEngine([b"a"])
    async with api(engine) as port:
        assert (await ask(port, {"prompt": "x = "}, Authorization="Bearer wrong"))[0] == 401
        assert (await ask(port, {"prompt": "x = "}, Authorization=""))[0] == 401
        assert (await ask(port, {"prompt": "x = "}, Host="evil.example"))[0] == 403
    assert not [r for r in engine.requests if r.max_tokens]


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"POST /v1/completions HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 411),
        (b"POST /v1/completions HTTP/1.1\r\nContent-Length: 999999999\r\n\r\n", 413),
        (b"POST /v1/completions HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 413),
        (b"POST / HTTP/1.1\r\nno colon\r\n\r\n", 400),
    ],
)
async def test_what_is_no_request_is_refused(raw: bytes, status: int) -> None:
    async with api(ScriptedEngine()) as port:
        assert (await send(port, raw))[0] == status


@pytest.mark.parametrize("body", [b"{", b"[]", b'{"prompt": 1}', b"null"])
async def test_a_wrong_body_is_named(body: bytes) -> None:
    async with api(ScriptedEngine()) as port:
        status, answer = await ask(port, body)
        assert status == 400 and answer["error"]["message"]


async def test_a_client_that_leaves_cancels_its_work() -> None:
    engine = ScriptedEngine(hold=True)

    def outcomes() -> list[str]:
        return [call.outcome for call in engine.calls if call.request.max_tokens]  # the others warm up

    async with api(engine) as port:
        while not outcomes():
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(request(port, {"prompt": "def f(a):\n    return ", "suffix": "\n"}))
            held = asyncio.ensure_future(engine.wait_for(lambda: bool(outcomes())))
            early = asyncio.ensure_future(reader.readline())  # 503 while the model is being loaded
            await asyncio.wait({held, early}, return_when=asyncio.FIRST_COMPLETED)
            early.cancel()
            held.cancel()
        writer.close()
        await engine.wait_for(lambda: outcomes()[-1] == "cancelled")


def test_prompts_are_taken_apart_at_the_first_of_each_token() -> None:
    families = formats()
    nasty = "<|fim_prefix|>a<|fim_suffix|>b<|fim_suffix|>c<|fim_middle|>"
    assert taken_apart(nasty, families) == ("a", "b<|fim_suffix|>c")
    assert taken_apart("<|repo_name|>r\n<|file_sep|>x\n<|fim_prefix|>a<|fim_suffix|>b<|fim_middle|>", families) == ("a", "b")
    assert taken_apart("plain <|fim_middle|>", families) == ("plain <|fim_middle|>", "")
    assert taken_apart("", families) == ("", "")


def test_the_token_is_made_once_and_private(tmp_path: Path) -> None:
    path = tmp_path / "x" / "http-token"
    token = token_in(path)
    assert len(token) >= 24 and token_in(path) == token
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o644)
    with pytest.raises(LspCompleteError, match="chmod 600"):
        token_in(path)
