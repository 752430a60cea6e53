"""Between LSP values and our own. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import unquote, urlparse

from lsprotocol import types

from ..service.types import Considered, Suggestion
from ..text.document import to_point
from ..text.edits import Change
from ..text.positions import Encoding

ACCEPT = "lsp-complete.accept"


def changes_of(changes: Iterable[Any]) -> list[Change]:
    """Content changes as plain values, in order."""
    out: list[Change] = []
    for change in changes:
        where = getattr(change, "range", None)
        if where is None:
            out.append(Change(None, change.text))
        else:
            start, end = where.start, where.end
            out.append(Change(((start.line, start.character), (end.line, end.character)), change.text))
    return out


def range_of(buffer: Any, start: int, end: int, encoding: Encoding) -> types.Range:
    """An LSP range of two code-point offsets."""
    first, last = to_point(buffer, start, encoding), to_point(buffer, end, encoding)
    return types.Range(types.Position(*first), types.Position(*last))


def inline_items(
    suggestions: Sequence[Suggestion], buffer: Any, encoding: Encoding
) -> list[types.InlineCompletionItem]:
    """Ghost text items: always with an explicit range (clients differ on what a missing one means)."""
    return [
        types.InlineCompletionItem(
            insert_text=s.text,
            range=range_of(buffer, s.start, s.end, encoding),
            filter_text=None,
            command=types.Command(title="accepted", command=ACCEPT, arguments=[s.id]),
        )
        for s in suggestions
    ]


def considered(what: Considered) -> dict[str, Any]:
    """What the model said, as plain JSON values. Bytes that are no whole character at a text's end are left off."""
    return {
        "typed": what.typed,
        "mode": what.mode,
        "base_indent": what.base_indent,
        "frozen_suffix": what.frozen_suffix,
        "candidates": [
            {
                "text": c.text.decode("utf-8", "ignore"),
                "logprobs": [round(x, 5) for x in c.logprobs],
                "masses": [round(x, 5) for x in c.masses],
                "offsets": list(c.offsets),
                "stop": c.stop,
            }
            for c in what.candidates
        ],
    }


def menu_items(
    suggestions: Sequence[Suggestion], buffer: Any, encoding: Encoding, language_id: str
) -> list[types.CompletionItem]:
    """Items for a completion menu, in the form that Helix, Eglot and others insert unchanged."""
    items: list[types.CompletionItem] = []
    for rank, suggestion in enumerate(suggestions):
        line, column = buffer.position(suggestion.start)
        before = buffer.line_content(line)[:column]
        word = _trailing_word(before)
        start = suggestion.start - len(word)
        first = (word + suggestion.text).splitlines()[0] if suggestion.text.strip() else word + suggestion.text
        items.append(
            types.CompletionItem(
                label=_label(first, many="\n" in suggestion.text or "\r" in suggestion.text),
                kind=types.CompletionItemKind.Text,
                detail="lsp-complete",
                documentation=types.MarkupContent(
                    types.MarkupKind.Markdown, _fenced(word + suggestion.text, language_id)
                ),
                preselect=rank == 0,
                sort_text=f"\u0020{rank}",
                filter_text=first.strip() or word or " ",
                insert_text_mode=types.InsertTextMode.AsIs,
                insert_text_format=types.InsertTextFormat.PlainText,
                text_edit=types.TextEdit(
                    range=range_of(buffer, start, suggestion.end, encoding), new_text=word + suggestion.text
                ),
                command=types.Command(title="accepted", command=ACCEPT, arguments=[suggestion.id]),
            )
        )
    return items


def _trailing_word(before: str) -> str:
    end = len(before)
    while end and (before[end - 1].isalnum() or before[end - 1] == "_"):
        end -= 1
    return before[end:]


def _label(first: str, *, many: bool) -> str:
    text = " ".join(first.split())
    return f"{text[:77]}…" if many or len(text) > 78 else (text or "…")


def _fenced(text: str, language_id: str) -> str:
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{language_id}\n{text}\n{fence}"


def path_of(uri: str) -> str | None:
    """The file path of a `file:` URI, or None (untitled documents, notebook cells, remote schemes, what is no URI)."""
    try:
        parsed = urlparse(uri)
    except ValueError:
        return None
    if parsed.scheme != "file":
        return None
    path = unquote(parsed.path)
    if "\0" in path:  # names no file; the system's calls would raise
        return None
    if len(path) > 2 and path[0] == "/" and path[2] == ":":
        path = path[1:]
    return f"//{parsed.netloc}{path}" if parsed.netloc and parsed.netloc != "localhost" else path
