"""The dashboard's page and its metrics, from plain figures. Pure.

Rules: one page, no script, nothing from outside; every text is escaped. Metrics are OpenMetrics text: names begin with `lspc_`,
label values are escaped, the text ends with `# EOF`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from ..measure.statistics import STAGES

Server = Mapping[str, Any]
Engine = Mapping[str, Any]
Point = tuple[float, float, float, tuple[float, ...]]
"""(seconds ago, P50 and P95 of one server's whole requests, P50 of each stage in the order of STAGES without the total), ms."""

REFRESH_S = 5
SHOWN = tuple(stage for stage in STAGES if stage != "total")
"""The stages that are drawn, in order."""
_COLOURS = ("#718096", "#9f7aea", "#4299e1", "#38b2ac", "#ecc94b", "#ed8936", "#f56565", "#48bb78", "#a0aec0")
_WIDTH, _HEIGHT = 640, 160
_STYLE = """
:root{color-scheme:light dark}
body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:64rem;padding:0 1rem}
table{border-collapse:collapse;margin:.6rem 0}th,td{padding:.2rem .7rem;text-align:right;border-bottom:1px solid #8884}
th:first-child,td:first-child{text-align:left}.bar{display:flex;height:14px;width:420px;background:#8882}
.bar span{display:block;height:100%}.key span{display:inline-block;width:.8em;height:.8em;margin:0 .3em 0 .9em}
table.words td,table.words th{text-align:left}.worse{color:#c53030;font-weight:600}.better{color:#2f855a;font-weight:600}a{color:inherit}
svg text{fill:currentColor;font-size:12px}section{margin-bottom:2.5rem}
"""


def page(
    servers: Sequence[Server],
    engines: Sequence[Engine],
    history: Mapping[int, Sequence[Point]],
    judged: str = "",
) -> str:
    """The main page. judged: sections of recordings and comparisons, HTML already."""
    parts = [_server(server, history.get(int(server.get("pid", 0)), ())) for server in servers]
    if not servers:
        parts.append("<p>No server has answered anything yet; a server is started by an editor.</p>")
    parts += [_engine(engine) for engine in engines] or ["<p>No engine is running.</p>"]
    return frame("lsp-complete", "<h1>lsp-complete</h1>" + "\n".join([*parts, judged]), REFRESH_S)


def frame(title: str, body: str, refresh_s: int = 0) -> str:
    """A whole page around body (HTML). refresh_s: seconds until it loads itself again, 0 never."""
    again = f'<meta http-equiv="refresh" content="{refresh_s}">' if refresh_s else ""
    head = (
        f'<meta charset="utf-8">{again}<meta name="referrer" content="no-referrer">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
    )
    return f'<!doctype html><html lang="en"><head>{head}<title>{escape(title)}</title><style>{_STYLE}</style></head><body>{body}</body></html>\n'


def grid(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of texts."""
    top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><tr>{top}</tr>{body}</table>"


def _server(server: Server, history: Sequence[Point]) -> str:
    done = server.get("server", {})
    buckets = {"all": done.get("all") or {}, **done.get("scenarios", {})}
    rows = [
        [
            name.replace("_", " "),
            str(bucket["count"]),
            *(f"{bucket['ms']['total'][q]:.0f}" for q in ("p50", "p95", "p99")),
            *(f"{bucket['ms'][stage]['p50']:.1f}" for stage in SHOWN),
        ]
        for name, bucket in buckets.items()
        if bucket.get("ms")
    ]
    rates = [[name.replace("_", " "), f"{share:.0%}"] for name, share in done.get("hit_rates", {}).items()]
    problem = server.get("problem")
    return "\n".join(
        [
            f"<section><h2>Server {escape(str(server.get('pid')))}: {escape(str(server.get('model') or 'no model'))}</h2>",
            f"<p>{escape(str(problem))}</p>" if problem else "",
            f"<p>{int(server.get('documents', 0))} documents, {int(done.get('requests', 0))} requests, "
            f"{float(done.get('decode_tps', 0)):.0f} tokens/s decoded</p>",
            _over_time(history),
            grid(["ms", "count", "P50", "P95", "P99", *(f"{stage} P50" for stage in SHOWN)], rows),
            grid(["hits", "share"], rates),
            _waterfalls(server.get("recent", ())),
            "</section>",
        ]
    )


def _over_time(history: Sequence[Point]) -> str:
    """P50 and P95 of whole requests as lines, over the medians of their stages on top of each other."""
    if len(history) < 2:
        return ""
    span = max(point[0] for point in history) or 1.0
    most = max(max(point[2], sum(point[3])) for point in history) or 1.0

    def dot(ago: float, value: float) -> str:
        return f"{50 + (1 - ago / span) * (_WIDTH - 60):.1f},{10 + (1 - value / most) * (_HEIGHT - 30):.1f}"

    shapes = []
    for index, colour in enumerate(_COLOURS):
        above = [dot(p[0], sum(p[3][: index + 1])) for p in history]
        below = [dot(p[0], sum(p[3][:index])) for p in reversed(history)]
        shapes.append(f'<polygon fill="{colour}" fill-opacity="0.6" points="{" ".join([*above, *below])}"/>')
    for index, (name, colour) in enumerate((("P50", "#2b6cb0"), ("P95", "#c05621"))):
        dots = " ".join(dot(p[0], p[1 + index]) for p in history)  # type: ignore[arg-type]  # 1 and 2 are numbers
        shapes.append(f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="{dots}"/>')
        shapes.append(f'<text x="{60 + 50 * index}" y="{_HEIGHT - 4}" style="fill:{colour}">{name}</text>')
    label = f'<text x="0" y="16">{most:.0f} ms</text><text x="{_WIDTH - 160}" y="{_HEIGHT - 4}">the last {span / 60:.0f} min</text>'
    drawn = f'<svg role="img" aria-label="latency over time" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}">{"".join(shapes)}{label}</svg>'
    return f"<h3>Latency over time</h3>{_key()}{drawn}<p><small>Areas: the median of each stage.</small></p>"


def _key() -> str:
    names = "".join(f'<span style="background:{colour}"></span>{stage}' for stage, colour in zip(SHOWN, _COLOURS, strict=True))
    return f'<p class="key">{names}</p>'


def _waterfalls(recent: Sequence[Mapping[str, Any]]) -> str:
    if not recent:
        return ""
    longest = max(float(record.get("total_ms", 0)) for record in recent) or 1.0
    rows = []
    for record in recent:
        pieces = "".join(
            f'<span style="width:{float(record.get(f"{stage}_ms", 0)) / longest * 100:.2f}%;background:{colour}"></span>'
            for stage, colour in zip(SHOWN, _COLOURS, strict=True)
        )
        words = (record.get("scenario", ""), record.get("source", ""), record.get("outcome", ""))
        cells = "".join(f"<td>{escape(str(word).replace('_', ' '))}</td>" for word in words)
        rows.append(
            f'<tr><td><div class="bar">{pieces}</div></td><td>{float(record.get("total_ms", 0)):.0f} ms</td>{cells}</tr>'
        )
    return f'<h3>Recent requests</h3>{_key()}<table>{"".join(rows)}</table>'


def _engine(engine: Engine) -> str:
    stats = engine.get("stats") or {}
    process, counters = stats.get("process") or {}, stats.get("counters") or {}
    slots = stats.get("slots") or []
    most = max((int(slot.get("tokens", 0)) for slot in slots), default=0) or 1
    bars = "".join(
        f'<tr><td>{int(slot.get("slot", 0))}</td><td><div class="bar"><span style="width:{int(slot.get("tokens", 0)) / most * 100:.1f}%;'
        f'background:{"#ed8936" if slot.get("busy") else "#4299e1"}"></span></div></td><td>{int(slot.get("tokens", 0))} tokens</td></tr>'
        for slot in slots
    )
    rows = [
        ["state", str(engine.get("state", ""))],
        ["waiting, running", f"{stats.get('waiting', 0)}, {stats.get('running', 0)}"],
        ["memory", f"{int(process.get('rss_bytes') or 0) / 2**20:.0f} MB"],
        ["clients", str(process.get("clients", ""))],
        ["tokens reused, restored, evaluated", ", ".join(str(counters.get(name, 0)) for name in ("reused", "restored", "evaluated"))],
        ["restored from disk", str(counters.get("restored_from_disk", 0))],
    ]
    name = escape(str(engine.get("name", "")))
    return f"<section><h2>Engine {name}</h2>{grid(['engine', ''], rows)}<h3>Slots</h3><table>{bars}</table></section>"


# -- OpenMetrics -----------------------------------------------------------------------------------------

_FAMILIES = {
    "lspc_requests": ("counter", "Requests since the server's start, by outcome"),
    "lspc_latency_milliseconds": ("gauge", "Latency over the last half hour"),
    "lspc_hit_ratio": ("gauge", "Share of hits since the server's start"),
    "lspc_decode_tokens_per_second": ("gauge", "Decoding rate since the server's start"),
    "lspc_slot_tokens": ("gauge", "Tokens in an engine's slot"),
    "lspc_engine_waiting": ("gauge", "Requests that wait for the engine"),
    "lspc_engine_running": ("gauge", "Requests that the engine works on"),
    "lspc_engine_memory_bytes": ("gauge", "Resident memory of the engine"),
}


def metrics(servers: Sequence[Server], engines: Sequence[Engine]) -> str:
    """All figures as OpenMetrics text."""
    samples = [*_server_samples(servers), *_engine_samples(engines)]
    lines = []
    for name, (kind, text) in _FAMILIES.items():
        mine = [s for s in samples if s[0] == name]
        if mine:
            lines += [f"# TYPE {name} {kind}", f"# HELP {name} {text}"]
            suffix = "_total" if kind == "counter" else ""
            lines += [f"{name}{suffix}{_labels(labels)} {value:g}" for _, labels, value in mine]
    return "\n".join([*lines, "# EOF", ""])


Sample = tuple[str, Mapping[str, object], float]


def _server_samples(servers: Sequence[Server]) -> Iterator[Sample]:
    for server in servers:
        who, done = {"server": server.get("pid", 0)}, server.get("server", {})
        for outcome, count in done.get("outcomes", {}).items():
            yield "lspc_requests", {**who, "outcome": outcome}, float(count)
        for scenario, bucket in {"all": done.get("all") or {}, **done.get("scenarios", {})}.items():
            for stage, quantiles in (bucket.get("ms") or {}).items():
                for quantile, value in quantiles.items():
                    labels = {**who, "scenario": scenario, "stage": stage, "quantile": quantile}
                    yield "lspc_latency_milliseconds", labels, float(value)
        for name, share in done.get("hit_rates", {}).items():
            yield "lspc_hit_ratio", {**who, "of": name}, float(share)
        yield "lspc_decode_tokens_per_second", who, float(done.get("decode_tps", 0))


def _engine_samples(engines: Sequence[Engine]) -> Iterator[Sample]:
    for engine in engines:
        who, stats = {"engine": engine.get("name", "")}, engine.get("stats") or {}
        for slot in stats.get("slots") or []:
            yield "lspc_slot_tokens", {**who, "slot": slot.get("slot", 0)}, float(slot.get("tokens", 0))
        yield "lspc_engine_waiting", who, float(stats.get("waiting") or 0)
        yield "lspc_engine_running", who, float(stats.get("running") or 0)
        yield "lspc_engine_memory_bytes", who, float((stats.get("process") or {}).get("rss_bytes") or 0)


def _labels(labels: Mapping[str, object]) -> str:
    def safe(value: object) -> str:
        return str(value).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

    return "{" + ",".join(f'{name}="{safe(value)}"' for name, value in labels.items()) + "}"
