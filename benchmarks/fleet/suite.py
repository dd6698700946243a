"""Goals of the product as it is used: many sessions, and one piece of text per read."""

from typing import Final

from benchmarks.contestant import Contestant
from benchmarks.goal import Goal, Ratio, Weight, figure
from benchmarks.suite import Suite

SIZES: Final = (200, 20, 1)
WINDOWS: Final = (25, 25, 0)
"""Upper limits in ms for the storing of a piece in the lower bound."""


def _both(size: int) -> tuple[Contestant, ...]:
    return tuple(
        Contestant(f"{contestant}.fleet_{size}", f"benchmarks.fleet.{module}:pieces", (str(size),))
        for contestant, module in (("ours", "ours"), ("trio", "bare"))
    )


CONTESTANTS: Final = (
    *(each for size in SIZES for each in _both(size)),
    Contestant("ours.after_silence", "benchmarks.fleet.ours:after_silence"),
    *(
        Contestant(
            f"floor.fleet_{size}", "benchmarks.fleet.minimum:pieces", (str(size), str(window))
        )
        for size, window in zip(SIZES, WINDOWS, strict=True)
    ),
)


def _ratio(name: str, size: int, bound: float | None, contestant: str = "ours") -> Ratio:
    noun = "sessions" if size > 1 else "session"
    return Ratio(
        name,
        f"piece, {size} {noun}, CPU ÷ trio, channels, one commit each 25 ms",
        figure(f"{contestant}.fleet_{size}/event"),
        (figure(f"trio.fleet_{size}/event"),),
        bound,
    )


GOALS: Final[tuple[Goal, ...]] = (
    _ratio("G-F1", 200, 1.2),
    _ratio("G-F2", 20, 1.3),
    _ratio("G-F2", 1, 1.3),
    Weight(
        "G-F3",
        "piece to subscriber, p50, 200 sessions",
        figure("ours.fleet_200/p50"),
        30,
        unit="ms",
    ),
    Weight(
        "G-F3",
        "piece to subscriber, p99, 200 sessions",
        figure("ours.fleet_200/p99"),
        100,
        unit="ms",
    ),
    Weight(
        "G-F3",
        "first piece after a silence, p50, one session",
        figure("ours.after_silence/p50"),
        5,
        unit="ms",
    ),
    *(_ratio("floor", size, None, "floor") for size in SIZES),
)

FLEET: Final = Suite(
    name="fleet",
    goals=GOALS,
    contestants=CONTESTANTS,
    notes=(
        "fleet:  a piece each 20 ms from every session, for ten seconds; ours: SQLite in WAL, and",
        "        an iterated run each; CPU of all threads; floor: a bare program that stores what",
        "        a piece is before anybody sees it, and does nothing else",
    ),
)
