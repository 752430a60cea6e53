"""The dashboard's drawings: latency over time, recent requests, slots. Pure; HTML and SVG as text.

Rules: a drawing says its figures in words, too; colours stand for stages and are the same in all of them; no script.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from ..measure.statistics import STAGES

Point = tuple[float, float, float, tuple[float, ...]]
"""(seconds ago, P50 and P95 of one server's whole requests, P50 of each stage in the order of STAGES without the total), ms."""

SHOWN = tuple(stage for stage in STAGES if stage != "total")
"""The stages that are drawn, in order."""
RECENT = 14
"""Requests drawn."""
_COLOURS = ("#718096", "#9f7aea", "#4299e1", "#38b2ac", "#ecc94b", "#ed8936", "#f56565", "#48bb78", "#a0aec0")
_P50, _P95 = "#2b6cb0", "#c05621"
_WIDTH, _HEIGHT, _LEFT, _TOP, _BOTTOM = 640, 190, 58, 8, 26


def ms(value: float) -> str:
    """Milliseconds, with a decimal where that tells something."""
    return f"{value:.1f}" if value < 9.95 else f"{value:.0f}"


def age(seconds: float) -> str:
    """How long ago, in one unit."""
    return f"{seconds:.0f} s ago" if seconds < 120 else f"{seconds / 60:.0f} min ago"


def key(names: Sequence[str] = SHOWN, colours: Sequence[str] = _COLOURS) -> str:
    """What the colours stand for."""
    pieces = "".join(f'<span><i style="background:{colour}"></i>{name}</span>' for name, colour in zip(names, colours, strict=True))
    return f'<p class="key">{pieces}</p>'


def over_time(history: Sequence[Point]) -> str:
    """P50 and P95 of whole requests as lines, over the medians of their stages on top of each other. "" for fewer than two points."""
    if len(history) < 2:
        return ""
    newest, oldest = min(point[0] for point in history), max(point[0] for point in history)
    span = (oldest - newest) or 1.0
    most = nice(max(max(point[1], point[2], sum(point[3])) for point in history))
    right, low = _WIDTH - 8, _HEIGHT - _BOTTOM

    def dot(ago: float, value: float) -> str:
        return f"{right - (ago - newest) / span * (right - _LEFT):.1f},{low - value / most * (low - _TOP):.1f}"

    shapes = []
    for part in (0.0, 0.5, 1.0):
        y = low - part * (low - _TOP)
        shapes.append(f'<line x1="{_LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}" stroke="#8884"/>')
        shapes.append(f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{ms(part * most) if part else 0} ms</text>')
    for index, colour in enumerate(_COLOURS):
        above = [dot(p[0], sum(p[3][: index + 1])) for p in history]
        below = [dot(p[0], sum(p[3][:index])) for p in reversed(history)]
        shapes.append(f'<polygon fill="{colour}" fill-opacity="0.6" points="{" ".join([*above, *below])}"/>')
    for index, colour in enumerate((_P50, _P95)):
        dots = " ".join(dot(p[0], p[1 + index]) for p in history)  # type: ignore[arg-type]  # 1 and 2 are numbers
        shapes.append(f'<polyline fill="none" stroke="{colour}" stroke-width="2" stroke-linejoin="round" points="{dots}"/>')
    shapes.append(f'<text x="{_LEFT}" y="{_HEIGHT - 8}">{age(oldest)}</text>')
    shapes.append(f'<text x="{right}" y="{_HEIGHT - 8}" text-anchor="end">{age(newest) if newest >= 60 else "now"}</text>')
    drawn = f'<svg role="img" aria-label="latency over time" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}">{"".join(shapes)}</svg>'
    lines = key(("P50", "P95"), (_P50, _P95))
    return f"<div><h3>Latency over time</h3>{drawn}{lines}{key()}<p><small>Lines: whole requests. Areas: the median of each stage.</small></p></div>"


def nice(value: float) -> float:
    """The end of a scale that holds a value: 1, 2 or 5 times a power of ten, in finer steps above."""
    step = 1e-3
    while step * 10 < value:
        step *= 10
    return next(step * times for times in (1, 1.5, 2, 3, 4, 5, 6, 8, 10) if step * times >= value or times == 10)


def waterfalls(recent: Sequence[Mapping[str, Any]]) -> str:
    """The newest requests, each as a bar of its stages; the longest fills its row."""
    if not recent:
        return ""
    recent = recent[:RECENT]
    longest = max(float(record.get("total_ms", 0)) for record in recent) or 1.0
    rows = []
    for record in recent:
        pieces = "".join(
            f'<span style="width:{float(record.get(f"{stage}_ms", 0)) / longest * 100:.2f}%;background:{colour}"></span>'
            for stage, colour in zip(SHOWN, _COLOURS, strict=True)
        )
        words = (record.get("scenario", ""), record.get("source", ""), record.get("outcome", ""))
        cells = "".join(f'<td class="word">{escape(str(word).replace("_", " "))}</td>' for word in words)
        rows.append(f'<tr><td><div class="bar">{pieces}</div></td><td>{ms(float(record.get("total_ms", 0)))} ms</td>{cells}</tr>')
    return f"<h3>Recent requests</h3>{key()}<table>{''.join(rows)}</table>"


def slots_bars(slots: Sequence[Mapping[str, Any]]) -> str:
    """The slots' contents by length; the longest fills its row. Busy ones in the colour of decoding."""
    most = max((int(slot.get("tokens", 0)) for slot in slots), default=0) or 1
    rows = "".join(
        f'<tr><td>{int(slot.get("slot", 0))}</td><td><div class="bar"><span style="width:{int(slot.get("tokens", 0)) / most * 100:.1f}%;'
        f'background:{"#ed8936" if slot.get("busy") else "#4299e1"}"></span></div></td><td>{int(slot.get("tokens", 0))} tokens</td>'
        f'<td class="word">{"busy" if slot.get("busy") else ""}</td></tr>'
        for slot in slots
    )
    return f"<div><h3>Slots</h3><table>{rows}</table></div>" if rows else ""
