"""Goals of a batch: time against `xargs`, time of a job, memory."""

from typing import Final

from benchmarks.contestant import Contestant
from benchmarks.goal import Goal, Ratio, Weight, figure
from benchmarks.suite import Suite

CONTESTANTS: Final = (
    Contestant("batch.commands", "benchmarks.batch.ours:commands"),
    Contestant("xargs", "benchmarks.batch.xargs:xargs"),
    Contestant("batch.answers", "benchmarks.batch.ours:answers"),
    Contestant("batch.memory", "benchmarks.batch.ours:memory"),
)

GOALS: Final[tuple[Goal, ...]] = (
    Ratio(
        "xargs",
        "job of 50 ms, 16 at once, wall ÷ xargs -P 16",
        figure("batch.commands/job"),
        (figure("xargs/job"),),
        1.5,
    ),
    Ratio(
        "scripted",
        "job that is answered at once, wall ÷ a thousandth of a second",
        figure("batch.answers/job"),
        (figure("batch.answers/millisecond"),),
        None,
    ),
    Weight("memory", "memory that a finished job leaves", figure("batch.memory/kib"), 1.0, 1.0),
)

BATCH: Final = Suite(
    name="batch",
    goals=GOALS,
    contestants=CONTESTANTS,
    notes=(
        "batch: whole, from the opening of the manager to its end, store and out directory on disk",
    ),
)
