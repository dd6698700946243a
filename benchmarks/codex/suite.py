"""Goals of the adapter of Codex, against its app-server driven raw and another SDK."""

from typing import Final

from benchmarks.agent_setup import WithAgent
from benchmarks.contestant import Contestant, OtherPython, ThisPython
from benchmarks.goal import Goal, Ratio, Weight, figure
from benchmarks.process.suite import ExcessGoal
from benchmarks.suite import Suite

HERE: Final = WithAgent("codex", ThisPython())
THERE: Final = WithAgent(
    "codex",
    OtherPython(
        variable="SESSIONMGR_CODEX_SDK_PYTHON",
        needs="openai_codex",
        install=(
            "python3 -m venv ~/codex-sdk && ~/codex-sdk/bin/pip install openai-codex"
            " && export SESSIONMGR_CODEX_SDK_PYTHON=~/codex-sdk/bin/python"
        ),
    ),
)


def _contestants(
    name: str, module: str, runtime: WithAgent, *functions: str
) -> tuple[Contestant, ...]:
    return tuple(
        Contestant(f"codex.{name}.{each}", f"benchmarks.codex.{module}:{each}", runtime=runtime)
        for each in functions
    )


CONTESTANTS: Final = (
    *_contestants("ours", "ours", HERE, "turns", "stream", "many"),
    *_contestants("raw", "raw", HERE, "turns", "stream", "many"),
    *_contestants("sdk", "agent_sdk", THERE, "turns", "stream"),
    *_contestants("ours", "importing", HERE, "importing"),
)


def _ratio(
    name: str, what: str, key: str, bound: float | None, *, than: str = "raw", unit: str = "ms"
) -> Ratio:
    ours, theirs = figure(f"codex.ours.{key}"), figure(f"codex.{than}.{key}")
    named = name if name.startswith("G-") else f"codex-{name}"
    return Ratio(named, what, ours, (theirs,), bound, unit=unit)


GOALS: Final[tuple[Goal, ...]] = (
    _ratio("G-K3", "Codex, warm turn ÷ raw", "turns/turn", 1.12),
    ExcessGoal(
        "codex-turn",
        "warm turn, over raw",
        figure("codex.ours.turns/turn"),
        figure("codex.raw.turns/turn"),
        5.0,
    ),
    _ratio("turn", "warm turn ÷ openai-codex", "turns/turn", None, than="sdk"),
    _ratio("G-K3", "Codex, spawn to first event ÷ raw", "turns/first", 1.10),
    _ratio("first", "the same ÷ openai-codex", "turns/first", None, than="sdk"),
    _ratio(
        "G-K1b",
        "Codex, piece of a text that is iterated, our CPU ÷ raw",
        "stream/piece",
        2,
        unit="µs",
    ),
    _ratio("cpu", "the same ÷ openai-codex", "stream/piece", None, than="sdk", unit="µs"),
    _ratio("G-K3", "Codex, cancel of a text that streams ÷ raw interrupt", "turns/interrupt", 1.2),
    _ratio("interrupt", "the same ÷ openai-codex", "turns/interrupt", None, than="sdk"),
    Weight(
        "codex-cancel",
        "cancel in a tool that ignores TERM",
        figure("codex.ours.turns/cancel"),
        6000,
        unit="ms",
    ),
    Ratio(
        "codex-import",
        "import ÷ openai-codex",
        figure("codex.ours.importing/import"),
        (figure("codex.sdk.turns/import"),),
        None,
        unit="ms",
    ),
    _ratio("many", "memory of a thread ÷ of a process", "many/mib", None, unit="MiB"),
    _ratio("many", "first turn in a thread ÷ in a process", "many/start", None),
)

CODEX: Final = Suite(
    name="codex",
    goals=GOALS,
    contestants=CONTESTANTS,
    notes=(
        "codex:  the real program, and a scripted model in a process of its own; wall, medians",
        "        ours: a manager with its record in SQLite",
        "        many: 50 threads in one process against 50 processes of a thread, each one turn",
    ),
)
