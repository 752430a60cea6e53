"""Golden files of the filters: read them, run them, write them again.

    python tests/suggest/golden_tool.py           shows what differs (exit status 1 if anything does)
    python tests/suggest/golden_tool.py --write   writes the results of now into the files; read the diff

A file holds cases:

    === title [| key=value …]          mode=line|block base=N tabs=0|1 width=N explicit=1 min=N stop=… newline=crlf
    text before the cursor‸text after it
    --- suggestion
    --- filter          result of the filter alone, or (dropped: reason)
    --- polished        result of the whole pipeline, or (dropped: reason)

`␠` stands for a blank at a line's end, `␍` for a carriage return; section texts have no final line end of their own.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from lsp_complete.suggest.filters import base, clean, extent, indent, repeat, worth
from lsp_complete.suggest.filters.base import Drop, Suggestion
from lsp_complete.suggest.lines import IndentStyle, to_lf
from lsp_complete.suggest.pipeline import PolishContext, RawCandidate, context_of, polish

ROOT = Path(__file__).parent / "golden"
CURSOR = "‸"
MODULES = (clean, extent, indent, repeat, worth)
SPECIAL = ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|endoftext|>", "<|file_sep|>", "<|repo_name|>")


@dataclass(frozen=True, slots=True)
class Case:
    """One case of a golden file."""

    title: str
    options: dict[str, str]
    place: str
    suggestion: str
    filtered: str
    polished: str


def _visible(text: str) -> str:
    lines = []
    for line in text.split("\n"):
        body = line.rstrip(" ")
        lines.append(body + "␠" * (len(line) - len(body)))
    return "\n".join(lines).replace("\r", "␍")


def _plain(text: str) -> str:
    return text.replace("␠", " ").replace("␍", "\r")


def read(path: Path) -> list[Case]:
    """The cases of one file."""
    cases = []
    for block in path.read_text("utf-8").split("=== ")[1:]:
        head, _, body = block.partition("\n")
        title, _, options = head.partition(" | ")
        parts = body.removesuffix("\n").split("\n--- ")
        named = dict(p.partition("\n")[::2] for p in parts[1:])
        pairs = dict(x.split("=", 1) for x in options.split())
        texts = {k: _plain(v) for k, v in named.items()}
        cases.append(
            Case(title, pairs, _plain(parts[0]), texts["suggestion"], texts["filter"], texts["polished"])
        )
    return cases


def write(path: Path, cases: list[Case]) -> None:
    """Write the cases back in the same form."""
    out = []
    for c in cases:
        options = " ".join(f"{k}={v}" for k, v in c.options.items())
        out.append(f"=== {c.title}" + (f" | {options}" if options else "") + "\n")
        out.append(_visible(c.place) + "\n")
        for name, text in (("suggestion", c.suggestion), ("filter", c.filtered), ("polished", c.polished)):
            out.append(f"--- {name}\n{_visible(text)}\n")
    path.write_text("".join(out), "utf-8")


def polish_context(case: Case, language: str) -> PolishContext:
    """The place of a case."""
    before, cursor, after = case.place.partition(CURSOR)
    assert cursor, f"no cursor mark in {case.title!r}"
    o = case.options
    newline = "\r\n" if o.get("newline") == "crlf" else "\n"
    tabs = o.get("tabs") == "1"
    parses = {"no": False, "yes": True}.get(o.get("parses", ""))
    return PolishContext(
        language_id=language,
        before=before.replace("\n", newline),
        after=after.replace("\n", newline),
        newline=newline,
        indent=IndentStyle(tabs, int(o.get("width", "4")), 4),
        mode=o.get("mode", "line"),
        base_indent=int(o.get("base", "0")),
        explicit=o.get("explicit") == "1",
        min_chars=int(o.get("min", "2")),
        in_strings=o.get("strings", "1") == "1",
        in_comments=o.get("comments", "1") == "1",
        special=SPECIAL,
        parses_ok=(lambda text: parses) if parses is not None else None,
    )


def filter_named(name: str) -> base.Filter:
    """A filter function by its name."""
    for module in MODULES:
        found: base.Filter | None = getattr(module, name, None)
        if found is not None:
            return found
    raise KeyError(name)


def run(case: Case, language: str, name: str) -> Case:
    """The case with the results of now. `newlines` is no filter but the pipeline's own last step."""
    ctx = polish_context(case, language)
    stop = case.options.get("stop", "eog")
    if name == "newlines":
        filtered = repr(polish(RawCandidate(case.suggestion.encode(), stop), ctx).text)
    else:
        result = filter_named(name)(Suggestion(to_lf(case.suggestion), stop), context_of(ctx))
        filtered = f"(dropped: {result.reason})" if isinstance(result, Drop) else result.text
    done = polish(RawCandidate(case.suggestion.encode(), stop), ctx)
    polished = to_lf(done.text) if not done.reason else f"(dropped: {done.reason})"
    return Case(case.title, case.options, case.place, case.suggestion, filtered, polished)


def files() -> list[tuple[str, str, Path]]:
    """(language, filter, path) of every golden file."""
    return [(p.parent.name, p.stem, p) for p in sorted(ROOT.glob("*/*.txt"))]


def main(argv: list[str]) -> int:
    """See the module's text."""
    differing = 0
    for language, name, path in files():
        cases = read(path)
        now = [run(c, language, name) for c in cases]
        if now != cases:
            differing += 1
            print(f"{path.relative_to(ROOT)}: differs")
            if "--write" in argv:
                write(path, now)
    return 0 if "--write" in argv or not differing else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
