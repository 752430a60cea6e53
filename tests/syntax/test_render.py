"""Golden outlines, and what holds for every rendering."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lsp_complete.syntax.outline import Level, levels_for_cursor, outline_of, render, render_node
from lsp_complete.text.buffer import TextBuffer
from tests.syntax import golden_tool
from tests.syntax.helpers import SAMPLES, tree_of


@pytest.mark.parametrize("language", sorted(SAMPLES))
def test_golden(language: str) -> None:
    expected = (golden_tool.ROOT / f"{language}.txt").read_text(encoding="utf-8")
    assert golden_tool.golden(language) == expected


def lines_in_order(shown: str, text: str) -> None:
    """Lines without an elision or comment of our own are lines of the text, in its order."""
    source = [line.rstrip() for line in text.splitlines()]
    at = 0
    for line in shown.splitlines():
        line = line.rstrip()
        if "..." in line or "…" in line or not line.strip():
            continue
        while at < len(source) and source[at] != line:
            at += 1
        assert at < len(source), f"not a line of the text, or out of order: {line!r}"


@pytest.mark.parametrize("language", sorted(SAMPLES))
@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_lines_keep_order_and_indentation(language: str, data: st.DataObject) -> None:
    text = SAMPLES[language]
    buffer, outline = TextBuffer.from_text(text), outline_of(tree_of(language, text))
    allowed = st.sampled_from([Level.OMIT, Level.SIGNATURE, Level.HEAD, Level.FULL])
    levels = {index: data.draw(allowed) for index in range(len(outline.nodes))}
    shown = render(outline, buffer, levels)
    assert shown.endswith("\n") or not shown
    if not any(_mid_line(text, node.span.start) for node in outline.nodes if node.role != "comment"):
        lines_in_order(shown, text)


def _mid_line(text: str, offset: int) -> bool:
    start = text.rfind("\n", 0, offset) + 1
    return bool(text[start:offset].strip())


@pytest.mark.parametrize("language", sorted(SAMPLES))
def test_the_cursors_function_is_whole(language: str) -> None:
    text = SAMPLES[language]
    buffer, outline = TextBuffer.from_text(text), outline_of(tree_of(language, text))
    for node in outline.nodes:
        if node.role == "function" and node.has_body:
            shown = render(outline, buffer, levels_for_cursor(outline, node.span.body_start + 1))
            assert text[node.span.start : node.span.end] in shown


@pytest.mark.parametrize("ending", ["\r\n", "\r"])
def test_line_endings_do_not_matter(ending: str) -> None:
    text = SAMPLES["python"]
    other = text.replace("\n", ending)
    shown = [
        render(outline_of(tree_of("python", each)), TextBuffer.from_text(each), default=Level.HEAD)
        for each in (text, other)
    ]
    assert shown[0] == shown[1]


def test_one_node_at_each_level() -> None:
    text = SAMPLES["python"]
    buffer, outline = TextBuffer.from_text(text), outline_of(tree_of("python", text))
    index = next(at for at, node in enumerate(outline.nodes) if node.name == "total")
    full = render_node(outline, buffer, index, Level.FULL)
    assert full.startswith("    def total(") and full.rstrip() in text
    assert (
        render_node(outline, buffer, index, Level.SIGNATURE)
        == "    def total(self, rate: float = RATE) -> float: ...\n"
    )
    assert render_node(outline, buffer, index, Level.LINE).endswith("# Sum of all lines with tax.\n")
    assert render_node(outline, buffer, index, Level.PLACEHOLDER) == "    # total\n"
    assert render_node(outline, buffer, index, Level.OMIT) == ""


def test_a_cursor_in_module_level_code_sees_its_surroundings() -> None:
    text = SAMPLES["javascript"]
    buffer, outline = TextBuffer.from_text(text), outline_of(tree_of("javascript", text))
    line = text[: text.index("response.json")].count("\n")
    shown = render(outline, buffer, focus=(line - 1, line + 1))
    assert "  response.json(priceOf(request.query.line));" in shown
    assert "constructor(number, lines) { ... }" in shown


BLOCKS = """\
'use strict';
{
    const $ = jquery;
    report($, "ready");

    window.Filter = {
        init: function(field) {
            field.focus();
            field.dataset.ready = "yes, it is ready now";
        },
        keys: function(event) {
            if (event.which === 13) {
                event.preventDefault();
            }
            return event.which !== 13;
        }
    };

    window.addEventListener('load', function(event) {
        console.log(event);
    });
}
done({
    a: 1
});
"""


def test_what_opens_around_definitions_is_shown_and_closed() -> None:
    shown = render(outline_of(tree_of("javascript", BLOCKS)), TextBuffer.from_text(BLOCKS))
    assert shown == """\
'use strict';
{
    const $ = jquery;
    window.Filter = {
        init: function(field) { ... },
        keys: function(event) { ... }
    };
}
done({ ... });
"""


@pytest.mark.parametrize("language", sorted(SAMPLES))
@pytest.mark.parametrize("level", [Level.LINE, Level.SIGNATURE, Level.FULL])
def test_what_opens_is_closed(language: str, level: Level) -> None:
    """An outline reads as code: what is left out takes both of its brackets along, or neither."""
    text = SAMPLES[language]
    shown = render(outline_of(tree_of(language, text)), TextBuffer.from_text(text), default=level)
    for opener, closer in ("{}", "()", "[]"):
        assert shown.count(opener) - shown.count(closer) == text.count(opener) - text.count(closer)


@pytest.mark.parametrize(
    ("language", "text", "shown"),
    [
        ("python", "import os\nprint(os)  # hello\nif os:  # why\n    x = 1\nf()  # last\n", "import os\nprint(os)  # hello\nif os:  # why\n    x = 1\nf()  # last\n"),
        ("python", "foo(  # first\n    a,  # second\n    b,\n)\nx = 1\n", "foo( ... )\nx = 1\n"),
        ("javascript", "start(); // go\napp.options = { // all\n  a: 1, // one\n  b: 2,\n};\nend(); /* x */\n", "start(); // go\napp.options = { ... };\nend(); /* x */\n"),
        ("javascript", "start(); /* of\n all */\nend();\n", "start(); /* of\nend();\n"),
        ("java", "class A {\n    int n; // count\n    static { a(); } // init\n}\n", "class A {\n    int n; // count\n    static { a(); } // init\n}\n"),
    ],
)  # fmt: skip
def test_a_comment_behind_code_hides_no_code(language: str, text: str, shown: str) -> None:
    """Statements are no nodes of the outline, but the comments behind them are."""
    tree = tree_of(language, text)
    outline = outline_of(tree)
    assert render(outline, tree.buffer, levels_for_cursor(outline, 0)) == shown
    assert render(outline, tree.buffer, default=Level.PLACEHOLDER, focus=(0, 99)).count("start()") == text.count("start()")


@pytest.mark.parametrize(
    ("language", "text", "shown"),
    [
        ("java", "class A {\n    @Autowired\n    private Foo foo;\n    @Size(min = 1,\n          max = 2)\n    String s = \"a\";\n}\n", ["    private Foo foo;", '    String s = "a";']),
        ("csharp", "class A {\n    [JsonProperty(\"x\")]\n    public string X;\n    [A]\n    public int Y { get; set; }\n}\n", ["    public string X;", "    public int Y { get; set; }"]),
        ("typescript", "class A {\n  @Input()\n  name: string;\n  @Input() other = 1;\n}\n", ["  name: string;", "  @Input() other = 1;"]),
        ("kotlin", "class A {\n  @Volatile\n  private var x: Int? = null\n}\n", ["  private var x: Int? = null"]),
        ("swift", "class A {\n  @Published\n  var x: Int = 1\n}\n", ["  var x: Int = 1"]),
        ("scala", "class A {\n  @volatile\n  var x = 1\n}\n", ["  var x = 1"]),
        ("php", "<?php class A {\n #[X]\n public $a = 1;\n}\n", [" public $a = 1;"]),
        ("rust", "struct A {\n    #[serde(default)]\n    x: i32,\n}\n", ["    x: i32,"]),
        ("cpp", "struct A {\n  [[maybe_unused]]\n  int x = 1;\n};\n", ["  int x = 1;"]),
    ],
)  # fmt: skip
def test_an_annotated_field_is_shown_by_its_name(language: str, text: str, shown: list[str]) -> None:
    """Its first line says nothing of it."""
    tree = tree_of(language, text)
    outline = outline_of(tree)
    for level in (Level.LINE, Level.SIGNATURE):
        assert render(outline, tree.buffer, default=level).splitlines()[1:-1] == shown
    fields = [node for node in outline.nodes if node.role == "constant"]
    assert len(fields) == len(shown)
    assert all(line.strip().startswith(node.signature.rstrip(";")) for node, line in zip(fields, shown, strict=True))
