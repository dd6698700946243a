"""Goals of frames."""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.contestant import Contestant
from benchmarks.goal import Goal, Ratio, figure
from benchmarks.suite import Suite
from benchmarks.wire.measured_frame import MEBI


@dataclass(frozen=True, slots=True)
class Node:
    """Node with a script."""

    script: Path

    def absence(self) -> str | None:
        """Return how to install Node, or None."""
        if shutil.which("node"):
            return None
        return "node is not on PATH: apt install nodejs, or https://nodejs.org/en/download"

    def command(self, function: str, arguments: tuple[str, ...]) -> list[str]:
        """Return the command that runs the function of the script."""
        return ["node", str(self.script), function, *arguments]


NODE: Final = Node(Path(__file__).with_name("readline.mjs"))

CONTESTANTS: Final = (
    Contestant("ours.pipe", "benchmarks.wire.sessionmgr_pipe:pipe"),
    Contestant("bare.limit", "benchmarks.wire.plain_loop:limit"),
    Contestant("asyncio.readline_json", "benchmarks.wire.alternatives:readline_json"),
    Contestant("node.readline", "lines", runtime=NODE),
    Contestant("node.chunks", "chunks", runtime=NODE),
    Contestant("asyncio.readline_msgspec", "benchmarks.wire.alternatives:readline_msgspec"),
    Contestant("asyncio.batches", "benchmarks.wire.alternatives:batches_msgspec"),
    Contestant("ours.line_by_line", "benchmarks.wire.sessionmgr_pipe:line_by_line"),
    Contestant("ours.framer", "benchmarks.wire.sessionmgr_pipe:framer"),
    Contestant("bare.split", "benchmarks.wire.plain_loop:split"),
    *(
        Contestant(
            f"ours.long_line_{name}", "benchmarks.wire.sessionmgr_pipe:long_line", (str(size),)
        )
        for name, size in (("10", 10_000_000), ("40", 40_000_000), ("64", 64 * MEBI))
    ),
)


def _ratio(name: str, what: str, ours: str, anchor: str, bound: float | None) -> Ratio:
    return Ratio(name, what, figure(ours), (figure(anchor),), bound)


GOALS: Final[tuple[Goal, ...]] = (
    _ratio(
        "G-E1",
        "event, child to consumer ÷ bare split + decode + normalise",
        "ours.pipe/event",
        "bare.limit/event",
        1.35,
    ),
    _ratio(
        "G-E2",
        "event ÷ asyncio readline + json + Queue",
        "ours.pipe/event",
        "asyncio.readline_json/event",
        1 / 5,
    ),
    _ratio(
        "G-E4",
        "event ÷ Node readline + JSON.parse",
        "ours.pipe/event",
        "node.readline/event",
        1 / 2,
    ),
    Ratio(
        "G-E9",
        "line of 40 MB ÷ of 10 MB",
        figure("ours.long_line_40/line"),
        (figure("ours.long_line_10/line"),),
        5.0,
        unit="ms",
    ),
    Ratio(
        "G-E9",
        "line of 64 MiB, which must pass ÷ of 10 MB",
        figure("ours.long_line_64/line"),
        (figure("ours.long_line_10/line"),),
        5.0 * 64 * MEBI / 40_000_000,
        unit="ms",
    ),
    _ratio("framer", "our lines ÷ bare split", "ours.framer/event", "bare.split/event", None),
    _ratio(
        "framer", "our lines ÷ the whole bare limit", "ours.framer/event", "bare.limit/event", None
    ),
    _ratio(
        "trickle",
        "event, child writes line by line ÷ as fast as it can",
        "ours.line_by_line/event",
        "ours.pipe/event",
        None,
    ),
    _ratio(
        "asyncio",
        "event ÷ asyncio readline + msgspec + Queue",
        "ours.pipe/event",
        "asyncio.readline_msgspec/event",
        None,
    ),
    _ratio(
        "asyncio",
        "event ÷ asyncio by the read + msgspec, batches",
        "ours.pipe/event",
        "asyncio.batches/event",
        None,
    ),
    _ratio(
        "Node",
        "event ÷ Node by the read + JSON.parse",
        "ours.pipe/event",
        "node.chunks/event",
        None,
    ),
)

WIRE: Final = Suite(
    name="wire",
    goals=GOALS,
    contestants=CONTESTANTS,
    notes=("frames: 100 000 pieces of text as Claude streams them, 299 bytes each, one child",),
)
