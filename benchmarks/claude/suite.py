"""Goals of the adapter of Claude Code, against its program driven raw and another SDK."""

from typing import Final

from benchmarks.agent_setup import WithAgent
from benchmarks.contestant import Contestant, OtherPython, ThisPython
from benchmarks.goal import Goal, Ratio, Weight, figure
from benchmarks.process.suite import ExcessGoal
from benchmarks.suite import Suite

HERE: Final = WithAgent("claude", ThisPython())
THERE: Final = WithAgent(
    "claude",
    OtherPython(
        variable="SESSIONMGR_AGENT_SDK_PYTHON",
        needs="claude_agent_sdk",
        install=(
            "python3 -m venv ~/agent-sdk && ~/agent-sdk/bin/pip install claude-agent-sdk"
            " && export SESSIONMGR_AGENT_SDK_PYTHON=~/agent-sdk/bin/python"
        ),
    ),
)


def _contestants(name: str, module: str, runtime: WithAgent) -> tuple[Contestant, ...]:
    return tuple(
        Contestant(f"claude.{name}.{each}", f"benchmarks.claude.{module}:{each}", runtime=runtime)
        for each in ("turns", "one_shots", "stream")
    )


CONTESTANTS: Final = (
    *_contestants("ours", "ours", HERE),
    *_contestants("raw", "raw", HERE),
    *_contestants("sdk", "agent_sdk", THERE),
    Contestant("claude.ours.memory", "benchmarks.claude.ours:memory", runtime=HERE),
)


def _ratio(
    name: str, what: str, key: str, bound: float | None, *, than: str = "raw", unit: str = "ms"
) -> Ratio:
    ours, theirs = figure(f"claude.ours.{key}"), figure(f"claude.{than}.{key}")
    named = name if name.startswith("G-") else f"claude-{name}"
    return Ratio(named, what, ours, (theirs,), bound, unit=unit)


def _excess(name: str, what: str, key: str, bound: float) -> ExcessGoal:
    return ExcessGoal(
        f"claude-{name}", what, figure(f"claude.ours.{key}"), figure(f"claude.raw.{key}"), bound
    )


GOALS: Final[tuple[Goal, ...]] = (
    _ratio("G-K2", "Claude, warm turn ÷ raw", "turns/turn", 1.10),
    _excess("turn", "warm turn, over raw", "turns/turn", 5.0),
    _ratio("turn", "warm turn ÷ claude-agent-sdk", "turns/turn", None, than="sdk"),
    _ratio("G-K2", "Claude, run with a child of its own ÷ raw", "one_shots/run", 1.05),
    _excess("one-shot", "run with a child of its own, over raw", "one_shots/run", 5.0),
    _ratio("one-shot", "the same ÷ claude-agent-sdk", "one_shots/run", None, than="sdk"),
    _ratio("G-K2", "Claude, spawn to first event ÷ raw", "turns/first", 1.05),
    _ratio("first", "the same ÷ claude-agent-sdk", "turns/first", None, than="sdk"),
    _ratio(
        "G-K1",
        "Claude, piece of a text that is iterated, our CPU ÷ claude-agent-sdk",
        "stream/piece",
        1.0,
        than="sdk",
        unit="µs",
    ),
    _ratio("cpu", "the same ÷ raw", "stream/piece", None, unit="µs"),
    _ratio("G-K2", "Claude, cancel of a text that streams ÷ raw interrupt", "turns/interrupt", 1.2),
    _ratio("interrupt", "the same ÷ claude-agent-sdk", "turns/interrupt", None, than="sdk"),
    Weight(
        "claude-cancel",
        "cancel in a tool that ignores TERM",
        figure("claude.ours.turns/cancel"),
        6000,
        unit="ms",
    ),
    Weight(
        "claude-memory",
        "memory of a kept session, on our side",
        figure("claude.ours.memory/kib"),
        256,
        None,
    ),
)

CLAUDE: Final = Suite(
    name="claude",
    goals=GOALS,
    contestants=CONTESTANTS,
    notes=(
        "claude: the real program, and a scripted model in a process of its own; wall, medians",
        "        ours: a manager with its record in SQLite; a turn ends when the agent is idle",
        "        one-shot: to the end of the child; raw is `claude -p` with the prompt as argument",
        "        cancel: until nothing that the tool has started is left",
    ),
)
