"""The lower bound: the same bytes in memory, split, decoded and normalised in one loop."""

from collections.abc import Callable
from statistics import median

from benchmarks.effort import BLOCKS, Effort, Figures, Stopwatch, cpu
from benchmarks.wire.measured_frame import Event, normalise, write_lines
from benchmarks.wire.sessionmgr_pipe import DECODER, EVENTS, chunks_of


def split(effort: Effort) -> Figures:
    """Split, and nothing else."""

    def run(chunks: list[bytes]) -> None:
        tail = b""
        for chunk in chunks:
            lines = (tail + chunk).split(b"\n")
            tail = lines.pop()

    return _timed(effort, run)


def limit(effort: Effort) -> Figures:
    """Split, decode, normalise."""

    def run(chunks: list[bytes]) -> None:
        tail = b""
        decode = DECODER.decode
        for chunk in chunks:
            lines = (tail + chunk).split(b"\n")
            tail = lines.pop()
            events: list[Event] = []
            for line in lines:
                event = normalise(decode(line))
                if event is not None:
                    events.append(event)

    return _timed(effort, run)


def _timed(effort: Effort, run: Callable[[list[bytes]], None]) -> Figures:
    lines = effort.operations(EVENTS)
    with write_lines(lines) as path:
        chunks = chunks_of(path)
    run(chunks)  # warm-up
    costs: list[float] = []
    for _ in range(effort.repeats(BLOCKS)):
        watch = Stopwatch(cpu)
        with watch:
            run(chunks)
        costs.append(watch.micros / lines)
    return {"event": median(costs)}
