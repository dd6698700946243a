"""Goals of sessions, and the costs of runs."""

from typing import Final

from benchmarks.contestant import Contestant, ThisPython
from benchmarks.effort import GC_POLICY
from benchmarks.goal import Curve, Goal, Ratio, Weight, figure
from benchmarks.otp.suite import OTP
from benchmarks.suite import Suite
from benchmarks.wire.suite import WIRE

EVENTS: Final = (1_000, 10_000, 100_000)
SESSIONS: Final = (1_000, 10_000, 50_000)
AT_ONCE: Final = (1, 100, 10_000)


def _ours(name: str, function: str, *arguments: int) -> Contestant:
    return Contestant(f"ours.{name}", f"benchmarks.manager.{function}", tuple(map(str, arguments)))


def _others(suite: Suite, *names: str) -> tuple[Contestant, ...]:
    return tuple(each for each in suite.contestants if each.name in names)


CONTESTANTS: Final = (
    _ours("port", "pipeline:pipe", 0),
    _ours("hop", "pipeline:pipe", 1),
    *_others(WIRE, "node.readline"),
    Contestant("sdk.shape", "benchmarks.manager.sdk:shape", runtime=ThisPython("anyio")),
    _ours("whole", "end_to_end:through_sqlite", 1),
    _ours("whole_100", "end_to_end:through_sqlite", 100),
    *(_ours(f"underway_{size}", "end_to_end:underway", size) for size in (1, 100)),
    _ours("unheard", "end_to_end:without_subscribers", 1),
    _ours("memory_store", "end_to_end:through_memory", 1),
    _ours("followers", "fan_out:followers"),
    _ours("one_by_one", "fan_out:one_by_one"),
    *_others(OTP, "trio.item", "trio.nursery"),
    Contestant("trio.nursery_for_many", "benchmarks.otp.raw_trio:nursery_for_many"),
    _ours("line", "latency:through_memory"),
    Contestant("asyncio.line", "benchmarks.manager.latency:readline_json"),
    Contestant("floor.line", "benchmarks.manager.latency:floor"),
    _ours("stored_line", "latency:through_sqlite"),
    *(_ours(f"events_{size}", "end_to_end:through_sqlite", 1, size) for size in EVENTS),
    *(
        Contestant(f"bare.rows_{size}", "benchmarks.manager.bare:executemany", (str(size),))
        for size in EVENTS
    ),
    *(_ours(f"sessions_{size}", "sessions:waiting", size) for size in SESSIONS),
    *_others(OTP, *(f"trio.population_{size}" for size in EVENTS)),
    *(_ours(f"runs_{size}", "sessions:runs", size) for size in AT_ONCE),
    _ours("scripted_100", "sessions:scripted_runs", 100),
)


def _ratio(
    name: str, what: str, ours: str, anchor: str, bound: float | None, unit: str = "µs"
) -> Ratio:
    anchors = tuple(figure(each) for each in anchor.split(" + "))
    return Ratio(name, what, figure(ours), anchors, bound, unit=unit)


GOALS: Final[tuple[Goal, ...]] = (
    _ratio(
        "G-E3",
        "event ÷ the shape of claude-agent-sdk",
        "ours.port/event",
        "sdk.shape/event",
        1 / 9,
    ),
    _ratio(
        "G-E4",
        "event ÷ Node readline + JSON.parse",
        "ours.port/event",
        "node.readline/event",
        1 / 2,
    ),
    _ratio("G-E5", "event, a further hop ÷ without", "ours.hop/event", "ours.port/event", 1.06),
    _ratio(
        "G-E7",
        "whole way, 100 sessions ÷ 1",
        "ours.whole_100/event",
        "ours.whole/event",
        1.4,
    ),
    _ratio(
        "G-E8",
        "event, each of 100 subscribers, by the batch ÷ channel item",
        "ours.followers/event",
        "trio.item/item",
        0.03,
    ),
    _ratio(
        "G-E10",
        "line, write to subscriber, p50, wall ÷ asyncio",
        "ours.line/line",
        "asyncio.line/line",
        1.0,
    ),
    _ratio(
        "floor",
        "line, the same with trio alone, stored before it is shown ÷ asyncio",
        "floor.line/line",
        "asyncio.line/line",
        None,
    ),
    Weight("G-M2", "memory, session at rest, 10 k", figure("ours.sessions_10000/kib"), 18.0),
    Curve(
        "G-M2",
        "memory, session at rest, from 1 k to 50 k; anchor: rows' cost",
        tuple(figure(f"ours.sessions_{size}/kib") for size in SESSIONS),
        tuple(figure(f"bare.rows_{size}/event") for size in EVENTS),
        0.10,
    ),
    Curve(
        "G-lin",
        "events of one run, cost each from 1 k to 100 k; anchor: bare rows",
        tuple(figure(f"ours.events_{size}/event") for size in EVENTS),
        tuple(figure(f"bare.rows_{size}/event") for size in EVENTS),
        0.30,
    ),
    Curve(
        "G-lin",
        "sessions at once, start each from 1 k to 50 k; anchor: trio's tasks to 100 k",
        tuple(figure(f"ours.sessions_{size}/start") for size in SESSIONS),
        tuple(figure(f"trio.population_{size}/start") for size in EVENTS),
        0.30,
    ),
    _ratio(
        "G-R",
        "run on `scripted`, memory store, start to terminal, 100 at once ÷ nursery + 1 child",
        "ours.scripted_100/run",
        "trio.nursery/one_child",
        12,
    ),
    *(
        _ratio(
            "run",
            f"run, memory store, start to terminal, {size} at once ÷ nursery + 1 child",
            f"ours.runs_{size}/run",
            "trio.nursery_for_many/one_child",
            None,
        )
        for size in AT_ONCE
    ),
    Curve(
        "run",
        "runs at once, memory store, cost each at 1, 100, 10 k; anchor: trio's tasks",
        tuple(figure(f"ours.runs_{size}/run") for size in AT_ONCE),
        tuple(figure(f"trio.population_{size}/start") for size in EVENTS),
        None,
    ),
    _ratio(
        "sessions",
        "whole way, 100 sessions ÷ 1, without their starts and ends",
        "ours.underway_100/event",
        "ours.underway_1/event",
        None,
    ),
    _ratio(
        "store",
        "whole way, 2 subscribers, SQLite ÷ memory",
        "ours.whole/event",
        "ours.memory_store/event",
        None,
    ),
    _ratio(
        "subscribers",
        "whole way, with 2 subscribers ÷ with none",
        "ours.whole/event",
        "ours.unheard/event",
        None,
    ),
    _ratio(
        "subscribers",
        "event, each of 100 subscribers, one by one ÷ channel item",
        "ours.one_by_one/event",
        "trio.item/item",
        None,
    ),
    _ratio(
        "stored",
        "line, write to subscriber through SQLite, p50, wall ÷ asyncio",
        "ours.stored_line/line",
        "asyncio.line/line",
        None,
    ),
)

MANAGER: Final = Suite(
    name="manager",
    goals=GOALS,
    contestants=CONTESTANTS,
    notes=(
        "events: 100 000 pieces of text as Claude streams them, 299 bytes each, to the least that",
        "        an adapter can be; the suite `shipped` measures those that ship",
        "whole way: child, adapter, recorder, SQLite in WAL, cursors; the CPU of all its threads",
        f"sessions at once (G-M2, G-lin) and `run`, like their anchors of trio: {GC_POLICY}",
        "everything else, G-R and its anchor included: the garbage collector as Python sets it",
    ),
)
