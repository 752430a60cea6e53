"""The scripted engine of the editor tests: it knows a few snippets by heart and goes on with the one that was begun.

Runs in a real engine process (`--factory tests.editors.crib:engine`), one token per byte.
"""

from __future__ import annotations

from typing import Any

from lsp_complete.engine.api import CompletionRequest
from lsp_complete.engine.fake import ScriptedEngine
from tests.lsp.harness import prompt_text

SNIPPETS = (
    "def area(width, height):\n    return width * height\n",
    "total = price * quantity + shipping_cost\n",
    'label = "\U0001f600 \u00fc" + name_of_user\n',
    "int main(void) {\n    return run_all_tests();\n}\n",
    "function greet(name) {\n    return `Hello, ${name}`;\n}\n",
    "for item in basket:\n    total += item.price * item.count\n    seen.add(item.name)\n",
)
"""Each begins at the start of a line."""

LEAST = 4


def continuation(before: str) -> str:
    """How the snippet that `before` ends in goes on; "" if it ends in none. Lines end at `\\n` here."""
    best = ""
    longest = LEAST - 1
    for snippet in SNIPPETS:
        for length in range(len(snippet) - 1, longest, -1):
            begun = snippet[:length]
            if before.endswith(begun) and (len(before) == length or before[-length - 1] == "\n"):
                best, longest = snippet[length:], length
                break
    return best


def answer(request: CompletionRequest) -> bytes:
    """The continuation, cut by the request's stop rules as a real engine would."""
    text = prompt_text(request.prompt).replace("\r\n", "\n")
    prefix, _, rest = text.partition("<S>")
    tail = rest.partition("<M>")[2]
    before = prefix.removeprefix("<P>") + tail + request.forced.decode("utf-8", "replace").replace("\r\n", "\n")
    found = continuation(before)
    if request.stop.mode == "line":
        lead = len(found) - len(found.lstrip("\n"))
        found = found[: lead + len(found[lead:].split("\n", 1)[0])]
    return found.rstrip("\n").encode()


def engine(_options: dict[str, Any]) -> ScriptedEngine:
    """The factory."""
    return ScriptedEngine(answer)
