"""What `herdr top` shows: what the gateway says of itself, as tables that fit any width."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from herdr.cli.holders import from_now, moment_of
from herdr.cli.terminal import counted, plain, span
from herdr.errors import HerdrError
from herdr.tasks.task import FINAL

ROWS_MAX = 10  # of each table, so that one does not push the others off the screen; the rest is counted
PATHS_SHOWN = 2  # of one lock
BARS = "▁▂▃▄▅▆▇█"
HISTORY = 60  # looks: a minute
NARROW = 60  # columns, below which the bars and some columns are left out
_STATES = {"ok": "green", "degraded": "yellow", "failing": "red"}


class Look(NamedTuple):
    """What was heard at one moment: for each panel an answer, or why there is none."""

    readings: Mapping[str, Any]
    published: tuple[float, ...] = ()
    """Events a second in the last minute, the newest last."""
    delivered: tuple[float, ...] = ()
    trouble: str = ""
    """Why the gateway does not answer now; the readings are older then."""


class Column(NamedTuple):
    """One column of a table."""

    name: str
    of: Callable[[Mapping[str, Any]], object]
    weight: int = 0
    """How much of the room that is left it takes; 0: as wide as its widest cell."""
    wide: bool = False
    """Whether a narrow terminal does without it."""


def screen(look: Look, url: str, width: int, now_us: int, *, paused: bool = False) -> RenderableType:
    """Return everything, for a terminal of so many columns."""
    parts: list[RenderableType] = list(_head(look, url, width, paused=paused))
    for title, panel in (("locks", _locks), ("models", _models), ("tasks", _tasks), ("clients", _clients)):
        reading = look.readings.get(title)
        parts.append(Text())
        if isinstance(reading, HerdrError):
            parts += [_title(title), Text(plain(_why(reading)), style="yellow")]
        else:
            parts += panel(reading or {}, now_us, width)
    return Group(*parts)


def _why(error: HerdrError) -> str:
    return "this gateway does not tell of them" if error.code == "not_found" else error.detail


def _head(look: Look, url: str, width: int, *, paused: bool) -> Iterator[RenderableType]:
    health = look.readings.get("health")
    health = health if isinstance(health, Mapping) else {}
    status = str(health.get("status", "unreachable"))
    first = Text.assemble((status if not look.trouble else "unreachable", _STATES.get(status, "red")))
    if look.trouble:
        first = Text.assemble(("unreachable", "red"), f": {plain(look.trouble)} (waiting for it)")
    else:
        up = span(health.get("uptime_s") or 0)
        first.append(plain(f": herdr {health.get('version')} at {url}, up {up}"))
    yield first.append("  paused, p goes on" if paused else "", style="reverse")
    for reason in health.get("reasons") or ():
        yield Text(f"  {plain(str(reason))}", style="yellow")
    if health:
        yield from _numbers(look, health, width)


def _numbers(look: Look, health: Mapping[str, Any], width: int) -> Iterator[Text]:
    rates, queue = health.get("throughput") or {}, health.get("queue_depth") or {}
    for name, history in (("published", look.published), ("delivered", look.delivered)):
        line = Text(f"{name:<12} {rates.get(f'{name}_per_s', 0):>10,.1f}/s")
        yield line.append(f"  {bars(history)}", style="cyan") if width >= NARROW else line
    lanes = "  ".join(f"{lane} {queue.get(lane, 0)}" for lane in ("P0", "P1", "P2"))
    yield Text(f"{'queue':<12} {lanes}")
    dropped = {name: count for name, count in (health.get("dropped") or {}).items() if count}
    said = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in dropped.items()) or "nothing"
    yield Text(plain(f"{'dropped':<12} {said}"), style="yellow" if dropped else "")
    open_ = health.get("connections") or {}
    yield Text(
        f"{'connected':<12} {open_.get('sse', 0)} over SSE, {open_.get('websocket', 0)} over WebSocket"
    )


def bars(history: Sequence[float]) -> str:
    """Return numbers as a line of bars, the highest as high as a bar goes."""
    top = max(history, default=0.0)
    return "".join(BARS[round(value / top * (len(BARS) - 1))] if top else BARS[0] for value in history)


def _locks(answer: Mapping[str, Any], now_us: int, width: int) -> Iterator[RenderableType]:
    held, waiting = answer.get("locks") or (), answer.get("waiting") or ()
    yield _title("locks", f"{len(held)} held, {len(waiting)} in line")
    columns = (
        Column("paths", lambda lock: _paths(lock.get("paths") or ()), 3),
        Column("holder", lambda lock: lock.get("owner"), 2),
        Column("since", lambda lock: from_now(moment_of(lock.get("since")), now_us)),
        Column("ends", lambda lock: from_now(moment_of(lock.get("expires")), now_us)),
        Column("waiting", lambda lock: ", ".join(map(str, lock.get("waiters") or ())), 1, wide=True),
        Column("purpose", lambda lock: lock.get("purpose"), 1, wide=True),
    )
    yield from _table(columns, held, "nothing is locked", width)


def _paths(paths: Sequence[object]) -> str:
    more = f" and {len(paths) - PATHS_SHOWN} more" if len(paths) > PATHS_SHOWN else ""
    return ", ".join(map(str, paths[:PATHS_SHOWN])) + more


def _models(answer: Mapping[str, Any], now_us: int, width: int) -> Iterator[RenderableType]:
    backends = answer.get("backends") or ()
    busy = sum(slot.get("state") == "busy" for backend in backends for slot in backend.get("slots") or ())
    slots = sum(len(backend.get("slots") or ()) for backend in backends)
    queued = sum((backend.get("queue") or {}).get("total") or 0 for backend in backends)
    yield _title("models", f"{busy} of {counted(slots, 'slot')} busy, {queued} in line" if backends else "")
    rows = [{**slot, "backend": backend} for backend in backends for slot in backend.get("slots") or [{}]]
    columns = (
        Column("backend", lambda row: row["backend"].get("name"), 2),
        Column("is", lambda row: row["backend"].get("state")),
        Column("in line", lambda row: (row["backend"].get("queue") or {}).get("total") or 0),
        Column("slot", lambda row: row.get("slot")),
        Column("state", lambda row: row.get("state")),
        Column("agent", lambda row: row.get("agent"), 2),
        Column("route", lambda row: row.get("route"), wide=True),
        Column("cached", lambda row: row.get("cached_tokens"), wide=True),
    )
    yield from _table(columns, rows, "no model is configured", width)


def _tasks(answer: Mapping[str, Any], now_us: int, width: int) -> Iterator[RenderableType]:
    open_ = [task for task in answer.get("tasks") or () if task.get("state") not in FINAL]
    yield _title("tasks", f"{len(open_)} open")
    columns = (
        Column("task", lambda task: task.get("title") or task.get("task"), 3),
        Column("role", lambda task: task.get("role"), 1),
        Column("state", lambda task: task.get("state")),
        Column("holder", lambda task: task.get("holder"), 2),
        Column("ends", lambda task: from_now(moment_of(task.get("expires")), now_us)),
        Column("question", lambda task: task.get("question"), 1, wide=True),
    )
    yield from _table(columns, open_, "no task is open", width)


def _clients(answer: Mapping[str, Any], now_us: int, width: int) -> Iterator[RenderableType]:
    seen = answer.get("clients") or ()
    yield _title("clients", str(len(seen)))
    columns = (
        Column("name", lambda client: client.get("name"), 2),
        Column("by", lambda client: ", ".join(map(str, client.get("kinds") or ())), 1, wide=True),
        Column("seen", lambda client: from_now(moment_of(client.get("last_seen")), now_us)),
        Column("events", lambda client: client.get("events"), wide=True),
        Column("behind", lambda client: client.get("behind")),
        Column("session", lambda client: client.get("session"), 1, wide=True),
    )
    yield from _table(columns, seen, "nobody was here yet", width)


def _title(name: str, said: str = "") -> Text:
    return Text.assemble((name, "bold"), f"  {said}" if said else "")


def _table(
    columns: Sequence[Column], rows: Sequence[Mapping[str, Any]], nothing: str, width: int
) -> Iterator[RenderableType]:
    if not rows:
        yield Text(nothing, style="dim")
        return
    columns = [column for column in columns if width >= NARROW or not column.wide]
    table = Table(box=None, pad_edge=False, expand=True, header_style="dim")
    for column in columns:
        table.add_column(column.name, no_wrap=True, overflow="ellipsis", ratio=column.weight or None)
    for row in rows[:ROWS_MAX]:
        table.add_row(*(Text(_cell(column.of(row))) for column in columns))
    yield table
    if len(rows) > ROWS_MAX:
        yield Text(f"… and {len(rows) - ROWS_MAX} more", style="dim")


def _cell(value: object) -> str:
    return "-" if value in (None, "") else plain(str(value))
