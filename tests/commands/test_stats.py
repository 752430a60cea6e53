"""What `stats` tells of suggestions."""

from __future__ import annotations

from lsp_complete.commands.stats import _head


def test_what_became_of_suggestions_is_told_once_some_were_shown() -> None:
    server = {"pid": 1, "model": "m", "outcomes": {"answered": 3}}
    assert "\n" not in _head(server)
    server["outcomes"] = {
        "answered": 9, "shown": 9, "accepted": 3, "typed_over": 4, "dismissed": 1, "still_there": {"30": 0.9, "120": 0.5}
    }  # fmt: skip
    told = _head(server).splitlines()
    assert "3 accepted" in told[0]
    assert "4 typed over" in told[1] and told[1].endswith("still there: 90% after 30 s, 50% after 120 s")
