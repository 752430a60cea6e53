"""The dashboard's pages of one recording and of one comparison, and the lists that lead to them. Pure.

Rules: as for `dashboard_page`: no script, nothing from outside, every text escaped. Figures only; a recording's text is never shown.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any
from urllib.parse import quote

from .dashboard_page import frame, grid

_WIDTH, _MIDDLE = 240, 120


def recordings_list(recordings: Sequence[tuple[str, int]], base: str = "") -> str:
    """A section with a link to each. recordings: (file name, bytes), newest first."""
    if not recordings:
        return "<section><h2>Recordings</h2><p>None; <code>record.enabled</code> turns recording on.</p></section>"
    rows = "".join(
        f'<tr><td><a href="{base}recording/{quote(name, errors="surrogateescape")}">{escape(name)}</a></td><td>{size / 1024:.0f} KB</td></tr>'
        for name, size in recordings
    )
    return f"<section><h2>Recordings</h2><table><tr><th>file</th><th>size</th></tr>{rows}</table></section>"


def comparisons_list(kept: Mapping[str, Mapping[str, Any]], base: str = "") -> str:
    """A section with a link to each."""
    if not kept:
        return (
            "<section><h2>Comparisons</h2><p>None; <code>lsp-complete replay compare</code> and <code>replay gate</code> leave them here.</p></section>"
        )
    rows = "".join(
        f'<tr><td><a href="{base}comparison/{quote(key, errors="surrogateescape")}">{escape(_when(entry))}</a></td><td>{escape(_names(entry))}</td>'
        f'<td class="{_class(entry)}">{escape(str(entry.get("verdict", "")))}</td><td>{escape(str(entry.get("summary", "")))}</td></tr>'
        for key, entry in kept.items()
    )
    head = "<tr><th>when</th><th>runs</th><th>verdict</th><th>in short</th></tr>"
    return f"<section><h2>Comparisons</h2><table class=\"words\">{head}{rows}</table></section>"


def _when(entry: Mapping[str, Any]) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(float(entry.get("created", 0))))


def _names(entry: Mapping[str, Any]) -> str:
    return " → ".join(str(name) for name in entry.get("names", ()))


def _class(entry: Mapping[str, Any]) -> str:
    word = str(entry.get("verdict", ""))
    return word if word in ("worse", "better", "same", "few") else "same"


def recording_page(name: str, figures: Mapping[str, Any]) -> str:
    """One recording in figures."""
    rows = [[key.replace("_ms", ", ms").replace("p50", "P50").replace("p95", "P95"), _plain(value)] for key, value in figures.items() if key != "outcomes"]
    outcomes = [[word, str(count)] for word, count in figures.get("outcomes", {}).items()]
    body = f"<h1>Recording {escape(name)}</h1>{_back()}{grid((), rows)}<h2>How requests ended</h2>{grid(['outcome', 'requests'], outcomes)}"
    return frame(f"Recording {name}", body)


def _plain(value: object) -> str:
    return "not known" if value is None else ("yes" if value else "no") if isinstance(value, bool) else str(value)


def comparison_page(entry: Mapping[str, Any]) -> str:
    """One comparison: each figure with its interval around no difference."""
    result, names = entry["result"], [str(name) for name in entry.get("names", ())]
    figures = [result["wall"], *result.get("stages", ()), *result.get("quality", ())]
    rows = "".join(_figure(figure) for figure in figures if figure.get("pairs"))
    head = "".join(f"<th>{escape(cell)}</th>" for cell in ("mean", *names, "difference", "interval", "", "", "points"))
    quantiles = [[q.upper(), *(f"{value:.1f}" for value in pair)] for q, pair in result.get("wall_quantiles", {}).items()]
    models = " → ".join(str(model) for model in entry.get("models", ()))
    body = (
        f"<h1>{escape(_names(entry))}</h1>{_back()}<p>{escape(_when(entry))}, {escape(models)}. <strong>{escape(str(entry.get('summary', '')))}.</strong> "
        f"Texts differ at {int(result.get('differing', 0))} of {int(result.get('pairs', 0))} points; {int(result.get('left_out', 0))} were left out.</p>"
        f"{grid(['ms, as the editor saw it', *names], quantiles)}<table><tr>{head}</tr>{rows}</table>"
    )
    return frame(f"Comparison {_names(entry)}", body)


def _figure(figure: Mapping[str, Any]) -> str:
    d = figure["difference"]
    verdict = str(figure.get("verdict", ""))
    cells = (
        str(figure["name"]), f"{figure['first']:.4g}", f"{figure['second']:.4g}", _signed(d["estimate"]), f"{_signed(d['low'])} … {_signed(d['high'])}",
    )  # fmt: skip
    row = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
    return f'<tr>{row}<td>{_interval(d)}</td><td class="{escape(verdict)}">{escape(verdict)}</td><td>{int(figure["pairs"])}</td></tr>'


def _signed(value: float) -> str:
    return f"{value:+.3g}" if value else "0"


def _interval(d: Mapping[str, float]) -> str:
    """The interval as a bar, no difference in the middle; the farther end fills its half."""
    most = max(abs(d["low"]), abs(d["high"])) or 1.0
    low, high, at = (_MIDDLE + d[name] / most * (_MIDDLE - 6) for name in ("low", "high", "estimate"))
    return (
        f'<svg role="img" aria-label="interval" viewBox="0 0 {_WIDTH} 14" width="{_WIDTH}"><line x1="{_MIDDLE}" x2="{_MIDDLE}" y1="0" y2="14" stroke="#8888"/>'
        f'<line x1="{low:.1f}" x2="{high:.1f}" y1="7" y2="7" stroke="#4299e1" stroke-width="4"/><circle cx="{at:.1f}" cy="7" r="4" fill="#4299e1"/></svg>'
    )


def _back() -> str:
    return '<p><a href="../">All figures</a></p>'
