"""Goals of `sessionmgr.otp`."""

from pathlib import Path
from typing import Final

from benchmarks.contestant import Contestant, Elixir, OtherPython, ThisPython
from benchmarks.effort import GC_POLICY
from benchmarks.goal import Curve, Figure, Goal, Ratio, figure
from benchmarks.otp.population_cycle import SIZES
from benchmarks.suite import Suite

BEAM: Final = Elixir(Path(__file__).with_name("genserver.exs"))
TRIOTP: Final = OtherPython(
    variable="SESSIONMGR_TRIOTP_PYTHON",
    needs="triotp",
    install=(
        "python3.13 -m venv ~/triotp && ~/triotp/bin/pip install triotp==0.3.1"
        " && export SESSIONMGR_TRIOTP_PYTHON=~/triotp/bin/python"
    ),
)


def _ours(name: str, function: str, *arguments: int) -> Contestant:
    return Contestant(f"ours.{name}", f"benchmarks.otp.{function}", tuple(map(str, arguments)))


def _trio(name: str, function: str, *arguments: int) -> Contestant:
    function = f"benchmarks.otp.raw_trio:{function}"
    return Contestant(f"trio.{name}", function, tuple(map(str, arguments)))


# Contestants that are compared stand next to each other, so that they run within seconds.
CONTESTANTS: Final = (
    _ours("call", "actor:call"),
    _trio("call", "call"),
    _trio("floor", "floor"),
    _ours("call_many", "actor:call_many"),
    _ours("call_timeout", "actor:call_timeout"),
    _ours("call_default", "actor:call_default"),
    _ours("call_wall", "actor:call_wall"),
    Contestant("beam.call", "call", runtime=BEAM),
    Contestant("pykka.ask", "benchmarks.otp.predecessors:pykka_ask", runtime=ThisPython("pykka")),
    Contestant("triotp.call", "benchmarks.otp.predecessors:triotp_call", runtime=TRIOTP),
    _ours("cast", "actor:cast"),
    _trio("item", "item"),
    Contestant("beam.cast", "cast", runtime=BEAM),
    Contestant("triotp.cast", "benchmarks.otp.predecessors:triotp_cast", runtime=TRIOTP),
    _ours("start", "supervision:start"),
    _trio("start", "start"),
    _trio("nursery", "nursery"),
    _ours("restart_crash", "supervision:restart_crash"),
    _trio("cancel", "cancel"),
    _ours("restart_kill", "supervision:restart_kill"),
    Contestant("beam.restart", "restart", runtime=BEAM),
    _ours("one_for_all", "supervision:one_for_all"),
    _ours("nolink", "supervision:nolink"),
    Contestant("beam.nolink", "nolink", runtime=BEAM),
    _ours("memory", "population:memory"),
    _trio("memory", "memory"),
    *(
        each
        for size in SIZES
        for each in (
            _ours(f"population_{size}", "population:population", size),
            _trio(f"population_{size}", "population", size),
            _ours(f"queue_{size}", "actor:queue", size),
            _trio(f"queue_{size}", "queue", size),
        )
    ),
)


def _ratio(name: str, what: str, ours: str, anchor: str, bound: float | None) -> Ratio:
    anchors = tuple(figure(each) for each in anchor.split(" + "))
    return Ratio(name, what, figure(ours), anchors, bound)


def _over_sizes(pattern: str) -> tuple[Figure, ...]:
    return tuple(figure(pattern.format(size)) for size in SIZES)


def _curve(what: str, key: str, anchor_key: str) -> Curve:
    ours, anchor = _over_sizes(f"ours.{key}"), _over_sizes(f"trio.{anchor_key}")
    return Curve(
        "G-lin", f"{what}, cost each from 1 k to 100 k; anchor: trio's own", ours, anchor, 0.30
    )


GOALS: Final[tuple[Goal, ...]] = (
    _ratio(
        "G-A1", "call, 1 caller ÷ channel(64) + Event", "ours.call/call", "trio.call/call", 0.90
    ),
    _ratio("G-A2", "call, 100 callers ÷ the same", "ours.call_many/call", "trio.call/call", 0.30),
    _ratio("G-A3", "call with timeout ÷ without", "ours.call_timeout/call", "ours.call/call", 1.15),
    _ratio(
        "G-A4", "call ÷ GenServer.call, both wall", "ours.call_wall/call", "beam.call/call", 7.0
    ),
    _ratio("G-A5", "cast in a burst ÷ channel item", "ours.cast/cast", "trio.item/item", 0.10),
    _ratio(
        "G-A6",
        "call with 100 k parked ÷ with 1 k",
        "ours.population_100000/call",
        "ours.population_1000/call",
        1.25,
    ),
    _ratio("G-S1", "start_child ÷ nursery.start", "ours.start/start", "trio.start/start", 0.85),
    _ratio(
        "G-S2",
        "restart, crash to up ÷ nursery + 1 child",
        "ours.restart_crash/restart",
        "trio.nursery/one_child",
        3.0,
    ),
    _ratio(
        "G-S3",
        "restart, kill to up ÷ cancel 1 + nursery + 1 child",
        "ours.restart_kill/restart",
        "trio.cancel/one_child + trio.nursery/one_child",
        1.3,
    ),
    _ratio(
        "G-S4",
        "one_for_all of 100, per child ÷ nursery + 1 child",
        "ours.one_for_all/per_child",
        "trio.nursery/one_child",
        3.0,
    ),
    _ratio(
        "G-S5",
        "stop of idle actors, each, 10 k ÷ 1 k",
        "ours.population_10000/stop",
        "ours.population_1000/stop",
        1.4,
    ),
    _ratio(
        "G-S6",
        "stop of 10 k idle actors ÷ cancel of 10 k scoped tasks",
        "ours.population_10000/stop",
        "trio.population_10000/stop",
        0.5,
    ),
    _ratio(
        "G-S7",
        "async_nolink + result ÷ nursery + 1 child",
        "ours.nolink/nolink",
        "trio.nursery/one_child",
        1.2,
    ),
    Ratio(
        "G-M1",
        "memory, idle actor ÷ parked task with scope, 10 k",
        figure("ours.memory/kib"),
        (figure("trio.memory/kib"),),
        1.6,
        ceiling=4.5,
        unit="KiB",
    ),
    _curve("start", "population_{}/start", "population_{}/start"),
    _curve("stop", "population_{}/stop", "population_{}/stop"),
    _curve("queue", "queue_{}/item", "queue_{}/item"),
    _ratio("BEAM", "cast ÷ GenServer.cast, wall", "ours.cast/cast", "beam.cast/cast", None),
    _ratio(
        "floor",
        "call ÷ two bare turns of trio, which no call can save",
        "ours.call/call",
        "trio.floor/call",
        None,
    ),
    _ratio(
        "floor",
        "the two bare turns ÷ GenServer.call, wall",
        "trio.floor/call",
        "beam.call/call",
        None,
    ),
    _ratio(
        "BEAM",
        "restart, kill to up ÷ Supervisor's, wall",
        "ours.restart_kill/restart",
        "beam.restart/restart",
        None,
    ),
    _ratio(
        "BEAM",
        "async_nolink ÷ Task.Supervisor's, wall",
        "ours.nolink/nolink",
        "beam.nolink/nolink",
        None,
    ),
    _ratio(
        "default",
        "call, default timeout ÷ without",
        "ours.call_default/call",
        "ours.call/call",
        None,
    ),
    _ratio("pykka", "call ÷ pykka's ask", "ours.call/call", "pykka.ask/ask", None),
    _ratio("triotp", "call ÷ triotp's call", "ours.call/call", "triotp.call/call", None),
    _ratio("triotp", "cast ÷ triotp's cast", "ours.cast/cast", "triotp.cast/cast", None),
)

OTP: Final = Suite(
    name="otp",
    goals=GOALS,
    contestants=CONTESTANTS,
    notes=(
        f"populations and queues (G-A6, G-S5, G-S6, G-lin), all contestants: {GC_POLICY}",
        "restarts (G-S2, G-S3, G-S4): logging of crashes is off",
        "µs: CPU time of the process per operation; where it says wall, the least of 5 blocks",
    ),
)
