"""A page for who looks after a cluster: what one process did, and how the server is.

It is made of numbers and of names of operations; it holds no text, and names no space.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from html import escape

from nacre import __version__
from nacre.errors import NacreError
from nacre.storage.postgres.registry import Registry

HEADERS = {
    "Content-Type": "text/html; charset=utf-8",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
}

_REFRESH_SECONDS = 10
_JOBS = {"todo": "wait", "doing": "are done now", "failed": "were given up"}
_FULL = 0.8
_STYLE = """
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif;
  --dim: color-mix(in srgb, CanvasText 60%, Canvas);
  --line: color-mix(in srgb, CanvasText 15%, Canvas);
  --bad: light-dark(#b3261e, #ff8a80); }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; margin: 0; } h2 { font-size: 1rem; margin: 2rem 0 .5rem; }
p, .dim { color: var(--dim); margin: 0; } .bad { color: var(--bad); font-weight: 600; }
div { overflow-x: auto; } table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .3rem 1.5rem .3rem 0; border-bottom: 1px solid var(--line); }
th { color: var(--dim); font-weight: 400; } td + td, th + th { text-align: right; font-variant-numeric: tabular-nums; }
"""


@dataclass(frozen=True, slots=True)
class Done:
    """What was done under one name since the process began. ``failed`` counts by the code of the error; ``p95_seconds``
    is the bound below which 95 of 100 were, ``None`` above the largest."""

    name: str
    count: int
    failed: Mapping[str, int]
    mean_seconds: float
    p95_seconds: float | None


@dataclass(frozen=True, slots=True)
class ServerState:
    """How the server is; ``bytes`` are of the database, ``jobs`` by their state."""

    spaces: int
    keys: int
    connections: int
    most_connections: int
    bytes: int
    jobs: Mapping[str, int]


def read_state(url: str, at: int) -> ServerState | None:
    """How the server at an address is at a time (milliseconds since 1970); ``None`` where it does not answer."""
    try:
        with closing(Registry(url)) as registry:
            ((spaces, keys, connections, most, size),) = registry.all("read_state", at=at)
            jobs: dict[str, int] = dict(registry.all("count_jobs")) if registry.all("has_queue") else {}
    except NacreError:
        return None
    return ServerState(spaces, keys, connections, most, size, jobs)


def page(what: str, since: datetime, running: int, done: Sequence[Done], state: ServerState | None) -> bytes:
    """The page, in HTML, which reads itself anew every ten seconds."""
    parts = [
        f"<h1>nacre cluster {escape(what)}</h1>",
        f"<p>Version {__version__}, since {since:%Y-%m-%d %H:%M} UTC; {running} at work. "
        '<a href="/metrics">For Prometheus</a></p>',
        "<h2>The server</h2>", _server(state), "<h2>What this process did</h2>", _done(done),
    ]  # fmt: skip
    body = "\n".join(parts)
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>nacre cluster {escape(what)}</title>'
        f'<meta name="viewport" content="width=device-width"><meta http-equiv="refresh" content="{_REFRESH_SECONDS}">'
        f"<style>{_STYLE}</style></head><body>{body}</body></html>"
    ).encode()


def _server(state: ServerState | None) -> str:
    if state is None:
        return '<p class="bad">It does not answer.</p>'
    is_full = state.connections > _FULL * state.most_connections
    connections = f"{state.connections:,} of {state.most_connections:,}"
    jobs = [(f"jobs that {told}", _marked(f"{state.jobs.get(key, 0):,}", key == "failed" and bool(state.jobs.get(key))))
            for key, told in _JOBS.items()]  # fmt: skip
    rows = [
        ("spaces", f"{state.spaces:,}"), ("keys that hold", f"{state.keys:,}"),
        ("connections", _marked(connections, is_full)), ("database", f"{state.bytes / 1e6:,.0f} MB"), *jobs,
    ]  # fmt: skip
    return _table((), rows)


def _done(done: Sequence[Done]) -> str:
    if not done:
        return "<p>Nothing yet.</p>"
    rows = [
        (escape(one.name), f"{one.count:,}", _failed(one.failed), f"{1000 * one.mean_seconds:,.0f} ms",
         "over 10 min" if one.p95_seconds is None else f"{1000 * one.p95_seconds:,.0f} ms")
        for one in sorted(done, key=lambda one: (-one.count, one.name))
    ]  # fmt: skip
    return _table(("", "times", "failed", "on average", "95 of 100 below"), rows)


def _failed(failed: Mapping[str, int]) -> str:
    return ", ".join(
        _marked(f"{count:,} {escape(code)}", code in ("fault", "internal")) for code, count in sorted(failed.items())
    )


def _marked(text: str, is_bad: bool) -> str:
    return f'<span class="bad">{text}</span>' if is_bad else text


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f"<th>{one}</th>" for one in header)
    body = "".join(f"<tr>{''.join(f'<td>{one}</td>' for one in row)}</tr>" for row in rows)
    return f"<div><table>{f'<thead><tr>{head}</tr></thead>' if header else ''}<tbody>{body}</tbody></table></div>"
