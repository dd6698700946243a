"""Goals of the shipped adapters."""

from typing import Final

from benchmarks.contestant import Contestant
from benchmarks.goal import Goal, Ratio, figure
from benchmarks.shipped.frames import DIALECTS
from benchmarks.suite import Suite


def _contestants(number: int, name: str) -> tuple[Contestant, ...]:
    wanted = {
        f"{name}.port": "ours:port",
        f"{name}.whole": "ours:whole",
        f"bare.{name}": "bare:limit",
        f"record.{name}": "bare:record",
        f"asyncio.{name}": "bare:readline_json",
    }
    return tuple(
        Contestant(each, f"benchmarks.shipped.{function}", (str(number),))
        for each, function in wanted.items()
    )


CONTESTANTS: Final = (
    *(each for number, agent in enumerate(DIALECTS) for each in _contestants(number, agent.name)),
    Contestant("bare.executemany", "benchmarks.manager.bare:executemany"),
)


def _goals(name: str) -> tuple[Goal, ...]:
    port = figure(f"{name}.port/event")
    return (
        Ratio(
            "G-E1s",
            f"{name}, piece of text, child to inbox ÷ bare split + decode + normalise",
            port,
            (figure(f"bare.{name}/event"),),
            1.35,
        ),
        Ratio(
            "G-E2s",
            f"{name}, piece of text, the same ÷ asyncio readline + json + Queue",
            port,
            (figure(f"asyncio.{name}/event"),),
            1 / 5,
        ),
        Ratio(
            "G-E6s",
            f"{name}, piece of text, whole way, 2 subscribers ÷ child to inbox + bare executemany",
            figure(f"{name}.whole/event"),
            (port, figure("bare.executemany/event")),
            1.5,
        ),
        Ratio(
            "floor",
            f"{name}, piece of text, bare: stamp, encode, into our tables ÷ bare executemany",
            figure(f"record.{name}/event"),
            (figure("bare.executemany/event"),),
            None,
        ),
    )


SHIPPED: Final = Suite(
    name="shipped",
    goals=tuple(goal for agent in DIALECTS for goal in _goals(agent.name)),
    contestants=CONTESTANTS,
    notes=(
        "shipped: 100 000 pieces of text in messages of 300, as Claude Code and Codex stream,",
        "         played by a child to the adapters that ship; the cost of all lines of a message,",
        "         by its pieces. Child to inbox: with the hand-over and its taking, no recorder;",
        "         whole way: recorder, SQLite in WAL, cursors, all threads; floor: what must be",
        "         done with a piece to have it stored, by one loop",
    ),
)
