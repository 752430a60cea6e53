"""The HTML page of a comparison: one file, no script, nothing from outside. Pure.

Rules: every text from a recording is escaped; plots are inline SVG with their figures in words beside them; the page says
which run is which by name and model, never by a folder's full path.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from .replay_compare import Comparison, Figure, Row

_WIDTH, _HEIGHT, _LEFT = 640, 220, 60
_COLOURS = ("#2b6cb0", "#c05621")
_DIFFERING = 200
_STYLE = """
:root{color-scheme:light dark}
body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem}
table{border-collapse:collapse;margin:1rem 0}th,td{padding:.25rem .7rem;text-align:right;border-bottom:1px solid #8884}
th:first-child,td:first-child{text-align:left}pre{overflow-x:auto;white-space:pre-wrap;margin:0;font-size:13px}
.worse{color:#c53030;font-weight:600}.better{color:#2f855a;font-weight:600}.same,.few{opacity:.7}
.pair{display:grid;grid-template-columns:1fr 1fr;gap:1rem;border-top:1px solid #8884;padding:.6rem 0}
.where{grid-column:1/-1;opacity:.8}mark{background:#f6e05e80;color:inherit}svg text{fill:currentColor;font-size:12px}
"""


def page(
    result: Comparison, first: Mapping[str, Any], second: Mapping[str, Any], names: tuple[str, str]
) -> str:
    """The whole page. first, second: `run.json` of the runs; names: what to call them."""
    walls = [[row["wall_ms"] for row in rows] for rows in (first.get("rows", ()), second.get("rows", ()))]
    parts = [
        f"<h1>Replay: {escape(names[0])} and {escape(names[1])}</h1>",
        f"<p><strong>{escape(result.summary())}.</strong> {result.left_out} points were left out (not asked by both, overtaken, "
        "unavailable). Differences are second minus first, with intervals over lines drawn as wholes; "
        "a quality figure counts as worse only at a confidence raised for the number of figures.</p>",
        _about(first, second, names),
        "<h2>Latency</h2>",
        _quantiles(result, names),
        _distribution(walls, names),
        _table((result.wall, *result.stages), names, "ms"),
        "<h2>Quality</h2>",
        _table(result.quality, names, ""),
        _named(result, names),
        f"<h2>Where texts differ ({len(result.differing)} of {result.pairs})</h2>",
        *(_pair(a, b, names) for a, b in result.differing[:_DIFFERING]),
    ]
    if len(result.differing) > _DIFFERING:
        parts.append(f"<p>{len(result.differing) - _DIFFERING} more are not shown.</p>")
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
    )
    body = "\n".join(parts)
    return f'<!doctype html><html lang="en"><head>{head}<title>Replay comparison</title><style>{_STYLE}</style></head><body>{body}</body></html>\n'


def _about(first: Mapping[str, Any], second: Mapping[str, Any], names: tuple[str, str]) -> str:
    rows = []
    for label, get in (
        ("model", lambda run: run.get("model", "")),
        ("settings", lambda run: run.get("settings", {})),
        ("version", lambda run: run.get("product", {}).get("version", "")),
        ("date", lambda run: run.get("date", "")),
        ("recordings", lambda run: ", ".join(run.get("recordings", ()))),
    ):
        rows.append([label, str(get(first)), str(get(second))])
    return _grid(["", *names], rows)


def _grid(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><tr>{top}</tr>{body}</table>"


def _quantiles(result: Comparison, names: tuple[str, str]) -> str:
    rows = [[q, f"{a:.1f}", f"{b:.1f}"] for q, (a, b) in result.wall_quantiles.items()]
    return _grid(["ms, as the editor saw it", *names], rows)


def _table(figures: Sequence[Figure], names: tuple[str, str], unit: str) -> str:
    head = "".join(
        f"<th>{escape(x)}</th>"
        for x in (f"mean {unit}".strip(), *names, "difference", "interval", "", "pairs")
    )
    rows = []
    for f in figures:
        d = f.difference
        cells = (
            f.name,
            f"{f.first:.4g}",
            f"{f.second:.4g}",
            f"{d.estimate:+.4g}",
            f"{d.low:+.4g} … {d.high:+.4g}",
        )
        row = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        rows.append(
            f'<tr>{row}<td class="{escape(f.verdict)}">{escape(f.verdict)}</td><td>{f.pairs}</td></tr>'
        )
    return f"<table><tr>{head}</tr>{''.join(rows)}</table>"


def _named(result: Comparison, names: tuple[str, str]) -> str:
    rows = [[name, str(a), str(b)] for name, a, b in result.gained_names]
    told = (
        f"<p>Names in suggestions are {result.names_apart:.3f} apart (0: the same, 1: nothing in common).</p>"
    )
    return told + (_grid(["name", *names], rows) if rows else "")


def _distribution(walls: Sequence[Sequence[float]], names: tuple[str, str]) -> str:
    """Cumulative shares of latency, both runs."""
    if not all(walls):
        return ""
    most = max(sorted(w)[max(0, int(len(w) * 0.99) - 1)] for w in walls) or 1.0
    lines = []
    for values, colour, name, row in zip(walls, _COLOURS, names, (0, 1), strict=True):
        ordered = sorted(values)
        path = [f"{_x(0, most):.1f},{_y(0):.1f}", f"{_x(min(ordered[0], most), most):.1f},{_y(0):.1f}"]
        path += [
            f"{_x(min(v, most), most):.1f},{_y((i + 1) / len(ordered)):.1f}" for i, v in enumerate(ordered)
        ]
        lines.append(f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="{" ".join(path)}"/>')
        lines.append(
            f'<text x="{_WIDTH - 150}" y="{_HEIGHT - 60 + 18 * row}" style="fill:{colour}">{escape(name)}</text>'
        )
    axes = "".join(
        f'<text x="4" y="{_y(share) + 4:.0f}">{share:.0%}</text><line x1="{_LEFT}" x2="{_WIDTH}" y1="{_y(share):.0f}" y2="{_y(share):.0f}" stroke="#8884"/>'
        for share in (0.0, 0.5, 0.95)
    )
    ticks = "".join(
        f'<text x="{_x(most * k / 4, most) - 10:.0f}" y="{_HEIGHT}">{most * k / 4:.0f} ms</text>'
        for k in range(4)
    )
    return f'<svg role="img" aria-label="share of requests answered within a time" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}">{axes}{ticks}{"".join(lines)}</svg>'


def _x(value: float, most: float) -> float:
    return _LEFT + value / most * (_WIDTH - _LEFT - 10)


def _y(share: float) -> float:
    return 10 + (1 - share) * (_HEIGHT - 35)


def _pair(first: Row, second: Row, names: tuple[str, str]) -> str:
    where = f"{first['recording']}, {first['path']} line {first['place'].partition(':')[2]}, point {first['point']}"
    shown = first["before"].rsplit("\n", 1)[-1]
    sides = "".join(
        f"<div><small>{escape(name)}: {row['wall_ms']:.0f} ms, {'right' if row['judged']['exact'] else escape(row['outcome'])}</small>"
        f"<pre>{escape(shown)}<mark>{escape(row['text'])}</mark></pre></div>"
        for name, row in zip(names, (first, second), strict=True)
    )
    wanted = f"wanted: <code>{escape(str(first.get('wanted', '')))}</code>"
    return f'<div class="pair"><div class="where">{escape(where)}; {wanted}</div>{sides}</div>'
