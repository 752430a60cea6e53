"""The whole way from bytes to text: any bytes, any place."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lsp_complete.suggest.filters.base import Context, Suggestion
from lsp_complete.suggest.filters.clean import decode, special_tokens
from lsp_complete.suggest.filters.repeat import repeated_fragments
from lsp_complete.suggest.lines import IndentStyle
from lsp_complete.suggest.pipeline import JUDGE, SHAPE, PolishContext, RawCandidate, polish

NAMES = {f.__name__ for f in (*SHAPE, *JUDGE)} | {"decode"}
TEXT = st.text(st.sampled_from("ab \t\r\n(){}[]\"'`:;#/=é日<|>_"), max_size=40)
STYLE = st.builds(IndentStyle, st.booleans(), st.integers(1, 8), st.integers(1, 8))


@given(
    raw=st.binary(max_size=60) | TEXT.map(str.encode),
    before=TEXT,
    after=TEXT,
    language=st.sampled_from(["python", "go", "ruby", "markdown", "x"]),
    mode=st.sampled_from(["line", "block"]),
    stop=st.sampled_from(["eog", "tokens", "line", "time"]),
    explicit=st.booleans(),
    base=st.integers(0, 8),
    newline=st.sampled_from(["\n", "\r\n", "\r"]),
    style=STYLE,
    frozen=st.none() | TEXT,
    parses=st.sampled_from([None, True, False]),
)
def test_any_bytes_at_any_place(
    raw: bytes,
    before: str,
    after: str,
    language: str,
    mode: str,
    stop: str,
    explicit: bool,
    base: int,
    newline: str,
    style: IndentStyle,
    frozen: str | None,
    parses: bool | None,
) -> None:
    ctx = PolishContext(
        language, before, after, newline, style, mode, base, explicit, frozen_suffix=frozen, parses_ok=lambda _: parses
    )
    done = polish(RawCandidate(raw, stop), ctx)
    assert bool(done.text) != bool(done.reason)
    assert set(done.changed_by) <= NAMES
    assert "\0" not in done.text and "\ufffd" not in done.text
    assert not done.text or done.text.strip()
    plain = done.text.replace(newline, "\n")
    assert newline == "\n" or "\r" not in plain
    assert mode == "block" or "\n" not in plain.strip()
    assert polish(RawCandidate(raw, stop), ctx) == done


def test_an_incomplete_character_is_left_off() -> None:
    assert decode("größe".encode()[:3]) == "gr"
    assert decode("日本".encode()[:5]) == "日"
    assert decode(b"ab\xffcd") == "ab"
    assert decode(b"ab\0cd") == "ab"


def test_filters_can_be_left_out_for_measuring() -> None:
    ctx = PolishContext("python", "x = foo(", ")\n")
    assert polish(RawCandidate(b"a, b)"), ctx).changed_by == ("already_there",)
    without = PolishContext("python", "x = foo(", ")\n", without=("already_there",))
    assert polish(RawCandidate(b"a, b)"), without).text == "a, b)"


def test_the_unreconciled_text_is_kept_for_the_store() -> None:
    done = polish(RawCandidate(b"self, x):"), PolishContext("python", "def f(", ")\n"))
    assert (done.text, done.full) == ("self, x", "self, x):")


def test_a_block_falls_back_to_its_first_line_where_the_rest_breaks_the_tree() -> None:
    def parses(text: str) -> bool:
        return "oops" not in text

    ctx = PolishContext("python", "def f():\n    ", "\n", mode="block", base_indent=4, parses_ok=parses)
    assert polish(RawCandidate(b"a = 1\n    oops +"), ctx).text == "a = 1"
    assert polish(RawCandidate(b"oops +\n    a = 1"), ctx).reason == "breaks_tree"


def test_an_operator_that_looks_like_a_special_token_stays() -> None:
    def special(text: str) -> str:
        found = special_tokens(Suggestion(text), Context("", ""))
        return found.text if isinstance(found, Suggestion) else ""

    assert special("text <| toString model") == "text <| toString model"
    assert special("x <|fim_midd") == "x " and special("x <|fim middle|> y") == "x " and special("x <|") == "x "


def test_a_long_line_without_letters_has_no_fragments_and_is_read_once() -> None:
    """A search that looked for a letter up to the line's end from each place would not end."""
    text = "-" * 30_000
    assert repeated_fragments(Suggestion(text), Context("", "")).text == text  # type: ignore[union-attr]
    assert repeated_fragments(Suggestion("x = " + "ab12 " * 9), Context("", "")).text == "x = ab12"  # type: ignore[union-attr]
