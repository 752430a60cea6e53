"""A tiny LSP server for the benchmark's own tests: it keeps documents exactly and suggests from a crib.

The crib (environment FAKE_CRIB: a JSON list of lines) is what it "knows": where the cursor's line begins like a crib line,
the rest of that line is suggested, and found likelier than anything else. FAKE_REFUSE=N answers the first N requests "unavailable". A document whose
text holds SLOW gets no answer until the next message arrives; cancelled requests are answered with -32800.
"""

from __future__ import annotations

import json
import os
import sys

sys.path.insert(0, os.environ["FAKE_PATH"])
from lsp_complete.measure.edits import Edit, Position, apply_edits, column_index, split_lines

CRIB = json.loads(os.environ.get("FAKE_CRIB", "[]"))
REFUSE = int(os.environ.get("FAKE_REFUSE", "0"))
documents: dict[str, str] = {}
requests = 0
waiting: list[dict] = []


def send(message: dict) -> None:
    data = json.dumps({"jsonrpc": "2.0", **message}).encode()
    sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n" % len(data) + data)
    sys.stdout.buffer.flush()


def read() -> dict | None:
    length = 0
    while True:
        line = sys.stdin.buffer.readline()
        if not line:
            return None
        if not line.strip():
            break
        if line.lower().startswith(b"content-length:"):
            length = int(line.split(b":")[1])
    return json.loads(sys.stdin.buffer.read(length))


def complete(message: dict) -> None:
    global requests
    requests += 1
    params = message["params"]
    uri, at = params["textDocument"]["uri"], params["position"]
    line = split_lines(documents[uri])[at["line"]]
    left = line[: column_index(line, at["character"])]
    items, outcome = [], "empty"
    if requests <= REFUSE:
        outcome = "unavailable"
    else:
        known = next((c for c in CRIB if c.startswith(left) and len(c) > len(left)), None)
        if known is not None:
            items, outcome = [{"insertText": known[len(left) :], "range": {"start": at, "end": at}}], "shown"
    stages = {"outcome": outcome, "source": "model", "evaluated": 2, "prompt_tokens": 50, "decoded": 5}
    answer = {"uri": uri, "version": 1, "requestId": message["id"], "stages": stages}
    if requests % 2:  # either order must do
        send({"method": "lsp-complete/didAnswer", "params": answer})
        send({"id": message["id"], "result": {"items": items}})
    else:
        send({"id": message["id"], "result": {"items": items}})
        send({"method": "lsp-complete/didAnswer", "params": answer})


def change(params: dict) -> None:
    uri = params["textDocument"]["uri"]
    for entry in params["contentChanges"]:
        ends = [Position(**entry["range"][k]) for k in ("start", "end")]
        documents[uri] = apply_edits(documents[uri], [Edit(ends[0], ends[1], entry["text"])])


while (message := read()) is not None:
    method = message.get("method")
    for late in waiting:
        if method == "$/cancelRequest" and message["params"]["id"] == late["id"]:
            send({"id": late["id"], "error": {"code": -32800, "message": "cancelled"}})
        else:
            complete(late)
    waiting.clear()
    if method == "initialize":
        send({"id": 900, "method": "workspace/configuration", "params": {"items": [{"section": "x"}]}})
        send({"method": "window/showMessage", "params": {"type": 3, "message": "hello"}})
        send(
            {
                "id": message["id"],
                "result": {"capabilities": {"echo": message["params"]["initializationOptions"]}},
            }
        )
    elif method == "textDocument/didOpen":
        documents[message["params"]["textDocument"]["uri"]] = message["params"]["textDocument"]["text"]
    elif method == "textDocument/didChange":
        change(message["params"])
    elif method == "textDocument/didClose":
        documents.pop(message["params"]["textDocument"]["uri"])
    elif method == "textDocument/inlineCompletion":
        if "SLOW" in documents[message["params"]["textDocument"]["uri"]]:
            waiting.append(message)
        else:
            complete(message)
    elif method == "lsp-complete/likelihood":
        params = message["params"]
        at, text = params["position"], params["text"]
        line = split_lines(documents[params["textDocument"]["uri"]])[at["line"]]
        known = line[: column_index(line, at["character"])] + text.rstrip("\r\n") in CRIB
        found = {"logprob": -len(text) * (0.5 if known else 2.0), "bytes": len(text.encode()), "tokens": 1}
        send({"id": message["id"], "result": found})
    elif method == "workspace/executeCommand":
        if message["params"]["command"] == "text":
            send({"id": message["id"], "result": documents[message["params"]["arguments"][0]]})
        elif message["params"]["command"] == "lsp-complete.stats":
            send({"id": message["id"], "result": {"engine": {"model": "/somewhere/fake.gguf"}}})
        elif message["params"]["command"] == "environment":
            send({"id": message["id"], "result": dict(os.environ)})
        else:
            send({"id": message["id"], "error": {"code": -32601, "message": "no such command"}})
    elif method == "shutdown":
        send({"id": message["id"], "result": None})
    elif method == "exit":
        break
    elif method is None and message["id"] == 900:
        assert message["result"] == [None], message
