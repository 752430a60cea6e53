"""Golden outlines: what every sample's outline is and how it is rendered at each level.

python -m tests.syntax.golden_tool           shows which files differ (exit status 1 if any does)
python -m tests.syntax.golden_tool --write   writes the files anew; read the diff
"""

from __future__ import annotations

import sys
from pathlib import Path

from lsp_complete.syntax.outline import (
    Level,
    Outline,
    default_tier,
    focus_for_cursor,
    levels_for_cursor,
    outline_of,
    render,
)
from lsp_complete.text.buffer import TextBuffer
from tests.syntax.helpers import SAMPLES, tree_of

ROOT = Path(__file__).parent / "golden"


def _nodes(outline: Outline) -> str:
    rows = []
    for node in outline.nodes:
        parts = [
            f"{node.span.first_line + 1}-{node.span.last_line + 1}",
            default_tier(node),
            node.role,
            node.kind,
        ]
        parts.append(node.qualified or "-")
        if node.doc:
            parts.append(f"doc={node.doc!r}")
        if node.calls:
            parts.append(f"calls={','.join(node.calls)}")
        if node.binds:
            parts.append(f"binds={','.join(node.binds)}")
        rows.append(" ".join(parts))
    return "\n".join(rows) + "\n"


def cursor_in(outline: Outline) -> int:
    """A place in the body of the longest function, where the golden files have the cursor."""
    functions = [node for node in outline.nodes if node.role == "function" and node.has_body]
    longest = max(functions, key=lambda node: node.span.end - node.span.start, default=None)
    return longest.span.body_start + 1 if longest is not None else 0


def golden(language: str) -> str:
    """The text of one golden file."""
    text = SAMPLES[language]
    buffer = TextBuffer.from_text(text)
    outline = outline_of(tree_of(language, text))
    offset = cursor_in(outline)
    parts = ["== nodes", _nodes(outline)]
    for level in (Level.HEAD, Level.SIGNATURE, Level.LINE, Level.PLACEHOLDER):
        parts += [f"== {level.name.lower()}", render(outline, buffer, default=level)]
    line = buffer.position(offset)[0]
    shown = render(outline, buffer, levels_for_cursor(outline, offset))
    parts += [f"== signature only outside the cursor's function (line {line + 1})", shown]
    if not outline.enclosing(offset, "function"):
        parts += [
            "== focus",
            render(outline, buffer, default=Level.OMIT, focus=focus_for_cursor(buffer, offset)),
        ]
    return "\n".join(part.rstrip("\n") for part in parts) + "\n"


def main(write: bool) -> int:
    """Compare or write all files; exit status."""
    ROOT.mkdir(exist_ok=True)
    differing = []
    for language in SAMPLES:
        path = ROOT / f"{language}.txt"
        made = golden(language)
        if not path.is_file() or path.read_text(encoding="utf-8") != made:
            differing.append(language)
            if write:
                path.write_text(made, encoding="utf-8")
    print("differ:", ", ".join(differing) or "none")
    return int(bool(differing) and not write)


if __name__ == "__main__":
    sys.exit(main("--write" in sys.argv))
