"""Builds what the tests need: GGUF files, part wheels, catalogue entries, and a small hub over HTTP."""

from __future__ import annotations

import hashlib
import http.server
import re
import struct
import threading
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lsp_complete.models.catalogue import CatalogueModel, HubSource, Licence, ModelFile, RegistrySource
from lsp_complete.models.shape import ModelShape

SHAPE = ModelShape(24, 14, 2, 64, 896, 4864, 151_936, 32_768)
FREE = Licence("apache-2.0", "Apache License 2.0", "https://example.org/licence", True, "")
_KINDS: Mapping[type, tuple[int, str]] = {bool: (7, "<?"), int: (4, "<I"), float: (6, "<f")}


def string(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def value(item: Any) -> bytes:
    if isinstance(item, str):
        return struct.pack("<I", 8) + string(item)
    if isinstance(item, (list, tuple)):
        if item and isinstance(item[0], str):
            return struct.pack("<IIQ", 9, 8, len(item)) + b"".join(string(text) for text in item)
        return struct.pack("<IIQ", 9, 4, len(item)) + b"".join(struct.pack("<I", number) for number in item)
    kind, layout = _KINDS[type(item)]
    return struct.pack("<I", kind) + struct.pack(layout, item)


def gguf(
    metadata: Mapping[str, Any],
    tensors: Sequence[tuple[str, tuple[int, ...], int]] = (),
    version: int = 3,
    content: Callable[[str, int], bytes] | None = None,
) -> bytes:
    """A whole GGUF file; tensors are (name, dimensions, type) of F32 (0) or F16 (1) data.

    content: (name, number of values) → a tensor's bytes; without it every byte is 1.
    """
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(metadata))
    head += b"".join(string(key) + value(item) for key, item in metadata.items())
    data = b""
    for name, dims, kind in tensors:
        count = 1
        for dim in dims:
            count *= dim
        head += (
            string(name)
            + struct.pack("<I", len(dims))
            + struct.pack(f"<{len(dims)}Q", *dims)
            + struct.pack("<IQ", kind, len(data))
        )
        data += content(name, count) if content else b"\x01" * (count * (4 if kind == 0 else 2))
        data += b"\x00" * (-len(data) % 32)
    return head + b"\x00" * (-len(head) % 32) + data


QWEN_TOKENS = (
    "a",
    "b",
    "<|endoftext|>",
    "<|fim_prefix|>",
    "<|fim_suffix|>",
    "<|fim_middle|>",
    "<|fim_pad|>",
    "<|repo_name|>",
    "<|file_sep|>",
)


def tiny_metadata(**changes: Any) -> dict[str, Any]:
    """Metadata of a tiny Qwen-like model."""
    base: dict[str, Any] = {
        "general.architecture": "qwen2",
        "general.name": "Tiny Coder",
        "qwen2.block_count": 2,
        "qwen2.embedding_length": 64,
        "qwen2.attention.head_count": 4,
        "qwen2.attention.head_count_kv": 2,
        "qwen2.feed_forward_length": 128,
        "qwen2.context_length": 512,
        "tokenizer.ggml.pre": "qwen2",
        "tokenizer.ggml.tokens": QWEN_TOKENS,
    }
    return {key: item for key, item in {**base, **changes}.items() if item is not None}


def tiny_gguf(**changes: Any) -> bytes:
    return gguf(
        tiny_metadata(**changes), [("token_embd.weight", (64, 9), 0), ("blk.0.attn_q.weight", (64, 64), 1)]
    )


def model(
    content: bytes, *, digest: bool = True, parts: int = 0, hub: bool = True, size: int | None = None
) -> CatalogueModel:
    """A catalogue entry called `tiny-coder` whose file is `content`."""
    sha256 = hashlib.sha256(content).hexdigest() if digest else None
    return CatalogueModel(
        name="tiny-coder",
        title="Tiny Coder",
        aliases=("tiny",),
        family="qwen2.5-coder",
        kind="base",
        roles=("main",),
        licence=FREE,
        parameters=100_000,
        shape=SHAPE,
        file=ModelFile("tiny-coder.gguf", size or len(content), True, sha256, "F16"),
        hub=HubSource("someone/Tiny-Coder-GGUF", "main", "tiny-coder.gguf") if hub else None,
        registry=RegistrySource("tiny-coder-part{n}", "1.0", parts) if parts else None,
        verified=False,
        note="",
    )


def split(content: bytes, parts: int) -> list[bytes]:
    step = -(-len(content) // parts)
    return [content[at : at + step] for at in range(0, len(content), step)]


def write_wheel(folder: Path, number: int, pieces: Mapping[str, bytes]) -> Path:
    """A wheel `tiny-coder-partN` 1.0 that carries `pieces` (name in its data folder → bytes)."""
    name = f"tiny_coder_part{number}"
    path = folder / f"{name}-1.0-py3-none-any.whl"
    info = f"{name}-1.0.dist-info"
    files = {f"{name}/data/{piece}": data for piece, data in pieces.items()} | {
        f"{name}/__init__.py": b"raise SystemExit('a part package was run')\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: tiny-coder-part{number}\nVersion: 1.0\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{file},,\n" for file in files) + f"{info}/RECORD,,\n"
    with zipfile.ZipFile(path, "w") as archive:
        for file, data in files.items():
            archive.writestr(file, data)
        archive.writestr(f"{info}/RECORD", record)
    return path


@dataclass
class Hub:
    """A hub that has one file. What it does wrong is set by its fields; what it was asked is in `requests`.

    etag: digest header (None sends none). breaks: for each GET, after how many bytes the connection ends (None:
    not). ranges: whether range requests are honoured. status: answer to HEAD. elsewhere: address that HEAD redirects to.
    """

    content: bytes
    etag: str | None = None
    breaks: list[int | None] = field(default_factory=list)
    ranges: bool = True
    status: int = 200
    body: bytes | None = None
    elsewhere: str = ""
    requests: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    address: str = ""

    def __enter__(self) -> Hub:
        hub = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args: object) -> None:
                return

            def do_HEAD(self) -> None:
                hub.head(self)

            def do_GET(self) -> None:
                hub.get(self)

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.address = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        )
        self._thread.start()
        return self

    def __exit__(self, *args: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _note(self, handler: http.server.BaseHTTPRequestHandler) -> None:
        self.requests.append(
            (handler.command, handler.path, {key.lower(): item for key, item in handler.headers.items()})
        )

    def head(self, handler: http.server.BaseHTTPRequestHandler) -> None:
        self._note(handler)
        handler.send_response(302 if self.elsewhere and self.status == 200 else self.status)
        if self.etag is not None:
            handler.send_header("X-Linked-Etag", f'"{self.etag}"')
        handler.send_header("X-Linked-Size", str(len(self.content)))
        handler.send_header("X-Repo-Commit", "c0ffee" + "0" * 34)
        if self.elsewhere:
            handler.send_header("Location", self.elsewhere)
        handler.send_header("Content-Length", "0" if self.status != 200 else str(len(self.content)))
        handler.end_headers()

    def get(self, handler: http.server.BaseHTTPRequestHandler) -> None:
        self._note(handler)
        body = self.body if self.body is not None else self.content
        match = re.match(r"bytes=(\d+)-", handler.headers.get("Range", ""))
        start = int(match.group(1)) if match and self.ranges else 0
        handler.send_response(206 if match and self.ranges else 200)
        if match and self.ranges:
            handler.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        handler.send_header("Content-Length", str(len(body) - start))
        handler.end_headers()
        stop = self.breaks.pop(0) if self.breaks else None
        handler.wfile.write(body[start:] if stop is None else body[start : start + stop])
        if stop is not None:
            handler.wfile.flush()
            handler.close_connection = True

    def gets(self) -> list[dict[str, str]]:
        """Headers of the GET requests, in order."""
        return [headers for method, _, headers in self.requests if method == "GET"]
