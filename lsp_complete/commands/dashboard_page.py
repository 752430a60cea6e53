"""The dashboard's page and its metrics, from plain figures. Pure.

Rules: one page, no script, nothing from outside; every text is escaped. Metrics are OpenMetrics text: names begin with `lspc_`,
label values are escaped, the text ends with `# EOF`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from .dashboard_charts import SHOWN, Point, ms, over_time, slots_bars, waterfalls

Server = Mapping[str, Any]
Engine = Mapping[str, Any]
REFRESH_S = 5
_STYLE = """
:root{color-scheme:light dark}
body{font:14px/1.45 system-ui,sans-serif;margin:1.5rem auto;max-width:72rem;padding:0 1.2rem;font-variant-numeric:tabular-nums}
h1{font-size:1.6rem}h2{font-size:1.2rem;border-bottom:1px solid #8886;padding-bottom:.3rem}h3{font-size:1rem;margin:1.1rem 0 .4rem}
.row{display:flex;flex-wrap:wrap;gap:0 3rem;align-items:flex-start}
table{border-collapse:collapse;margin:.5rem 0}th,td{padding:.16rem .6rem;text-align:right;border-bottom:1px solid #8883}th{vertical-align:bottom}
th:first-child,td:first-child{text-align:left;padding-left:0}td.word{text-align:left}td:first-child{white-space:nowrap}
.bar{display:flex;height:12px;width:420px;background:#8882;border-radius:2px;overflow:hidden}.bar span{display:block;height:100%}
.key{margin:.2rem 0;font-size:.85rem}.key span{margin-right:1rem}.key i{display:inline-block;width:.8em;height:.8em;margin-right:.35em;border-radius:2px}
table.words td,table.words th{text-align:left;white-space:normal}.worse{color:#c53030;font-weight:600}.better{color:#2f855a;font-weight:600}a{color:inherit}
svg{max-width:100%}svg text{fill:currentColor;font-size:12px}section{margin-bottom:2.2rem}small{opacity:.75}
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
    return f"<table>{f'<tr>{top}</tr>' if top else ''}{body}</table>"


def _server(server: Server, history: Sequence[Point]) -> str:
    done = server.get("server", {})
    buckets = {"all": done.get("all") or {}, **done.get("scenarios", {})}
    rows = [
        [
            name.replace("_", " "),
            str(bucket["count"]),
            *(ms(bucket["ms"]["total"][q]) for q in ("p50", "p95", "p99")),
            *(ms(bucket["ms"][stage]["p50"]) for stage in SHOWN),
        ]
        for name, bucket in buckets.items()
        if bucket.get("ms")
    ]
    rates = [[name.replace("_", " "), f"{share:.0%}"] for name, share in done.get("hit_rates", {}).items()]
    problem = server.get("problem")
    documents = int(server.get("documents", 0))
    return "\n".join(
        [
            f"<section><h2>Server {escape(str(server.get('pid')))}: {escape(str(server.get('model') or 'no model'))}</h2>",
            f"<p>{escape(str(problem))}</p>" if problem else "",
            f"<p>{documents} document{'' if documents == 1 else 's'}, {int(done.get('requests', 0))} requests, "
            f"{float(done.get('decode_tps', 0)):.0f} tokens/s decoded</p>",
            f'<div class="row">{over_time(history)}<div><h3>Hits</h3>{grid(["of", "share"], rates)}</div></div>' if rates else over_time(history),
            "<h3>Milliseconds by scenario</h3>" if rows else "",
            grid(["", "count", "P50", "P95", "P99", *(f"{stage} P50" for stage in SHOWN)], rows) if rows else "",
            waterfalls(server.get("recent", ())),
            "</section>",
        ]
    )


def _engine(engine: Engine) -> str:
    stats = engine.get("stats") or {}
    process, counters = stats.get("process") or {}, stats.get("counters") or {}
    rows = [
        ["state", str(engine.get("state", ""))],
        ["waiting, running", f"{stats.get('waiting', 0)}, {stats.get('running', 0)}"],
        ["memory", f"{int(process.get('rss_bytes') or 0) / 2**20:.0f} MB"],
        ["clients", str(process.get("clients", ""))],
        ["tokens reused, restored, evaluated", ", ".join(str(counters.get(name, 0)) for name in ("reused", "restored", "evaluated"))],
        ["restored from disk", str(counters.get("restored_from_disk", 0))],
    ]
    name = escape(str(engine.get("name", "")))
    state = f"<div><h3>State</h3>{grid((), rows)}</div>"
    return f'<section><h2>Engine {name}</h2><div class="row">{state}{slots_bars(stats.get("slots") or [])}</div></section>'


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
            lines += [f"{name}{suffix}{_labels(labels)} {_number(value)}" for _, labels, value in mine]
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


def _number(value: float) -> str:
    """All digits: a counter that is rounded stands still and jumps."""
    return str(int(value)) if value.is_integer() else repr(value)


def _labels(labels: Mapping[str, object]) -> str:
    def safe(value: object) -> str:
        return str(value).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

    return "{" + ",".join(f'{name}="{safe(value)}"' for name, value in labels.items()) + "}"
