"""Goals of agents over ACP, against an agent driven raw and the protocol's library for Python."""

import os
from dataclasses import dataclass
from typing import Final

from benchmarks.acp.environment import REAL
from benchmarks.agent_setup import INSTALL, WithAgent, program
from benchmarks.contestant import Contestant, Runtime, ThisPython
from benchmarks.goal import Goal, Ratio, figure
from benchmarks.process.suite import ExcessGoal
from benchmarks.suite import Suite

LIBRARY: Final = "acp-python"
SDK: Final = "agent-client-protocol"


@dataclass(frozen=True, slots=True)
class LibraryPython:
    """The interpreter that has the protocol's library."""

    def absence(self) -> str | None:
        """Return how to install it, or None."""
        return None if program(LIBRARY) else f"there is no {LIBRARY}: {INSTALL}"

    def command(self, function: str, arguments: tuple[str, ...]) -> list[str]:
        """Return a command for a fresh process of that interpreter."""
        found = os.fspath(program(LIBRARY) or LIBRARY)
        return [found, "-m", "benchmarks.run_contestant", function, *arguments]


THERE: Final = WithAgent(LIBRARY, LibraryPython())


def _contestants(name: str, module: str, runtime: Runtime) -> tuple[Contestant, ...]:
    prefix = f"{name}_" if module == "ours" else ""
    real = WithAgent(REAL, LibraryPython() if runtime is THERE else ThisPython())
    return tuple(
        Contestant(
            f"acp.{name}.{each}",
            f"benchmarks.acp.{module}:{prefix}{each}",
            runtime=real if each == "real_turns" else runtime,
        )
        for each in ("turns", "real_turns", "stream")
    )


CONTESTANTS: Final = (
    *_contestants("client", "ours", ThisPython()),
    *_contestants("manager", "ours", ThisPython()),
    *_contestants("raw", "raw", ThisPython()),
    *_contestants("sdk", "agent_sdk", THERE),
)


def _ratio(
    name: str, what: str, ours: str, bound: float | None, *, than: str, unit: str = "ms"
) -> Ratio:
    key = ours.partition(".")[2]
    return Ratio(
        f"acp-{name}", what, figure(f"acp.{ours}"), (figure(f"acp.{than}.{key}"),), bound, unit=unit
    )


GOALS: Final[tuple[Goal, ...]] = (
    _ratio("turn", "manager, warm turn ÷ raw", "manager.real_turns/turn", 1.15, than="raw"),
    _ratio("turn", f"the same ÷ {SDK}", "manager.real_turns/turn", None, than="sdk"),
    _ratio("client", "plain client, warm turn ÷ raw", "client.real_turns/turn", 1.15, than="raw"),
    _ratio("client", f"the same ÷ {SDK}", "client.real_turns/turn", None, than="sdk"),
    _ratio(
        "cpu",
        f"manager, an update of a run that is iterated, our CPU ÷ {SDK}",
        "manager.stream/update",
        1.0,
        than="sdk",
        unit="µs",
    ),
    _ratio(
        "cpu",
        f"plain client, an update, our CPU ÷ {SDK}",
        "client.stream/update",
        0.5,
        than="sdk",
        unit="µs",
    ),
    _ratio("cpu", "the same ÷ raw", "client.stream/update", None, than="raw", unit="µs"),
    _ratio(
        "fast",
        "fast agent, manager, turn ÷ agent-client-protocol",
        "manager.turns/turn",
        None,
        than="sdk",
    ),
    _ratio(
        "fast",
        "fast agent, plain client, turn ÷ agent-client-protocol",
        "client.turns/turn",
        None,
        than="sdk",
    ),
    _ratio("fast", "the same ÷ raw", "client.turns/turn", None, than="raw"),
    ExcessGoal(
        "acp-fast",
        "fast agent, manager, turn over raw",
        figure("acp.manager.turns/turn"),
        figure("acp.raw.turns/turn"),
        5.0,
    ),
)

ACP: Final = Suite(
    name="acp",
    goals=GOALS,
    contestants=CONTESTANTS,
    notes=(
        f"acp: warm turns with {REAL} and a scripted model in a process of its own; wall, medians",
        "     cpu, fast: with an agent that answers at once, so that only its client's costs count",
        "     manager: with its record in SQLite; a run is iterated, and its result awaited",
    ),
)
