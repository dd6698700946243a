"""The order in which tasks take turns, made to depend on a seed and on nothing else."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Awaitable, Callable, Generator, Sequence
from typing import TypeVar

import trio
import trio.testing

T = TypeVar("T")

# Where trio keeps its scheduler's random numbers, and whether they are all that it goes by. It
# has no public place; its own tests and its plugin for hypothesis do the same.
_SCHEDULER = importlib.import_module("trio._core._run")
_SWITCH = "_ALLOW_DETERMINISTIC_SCHEDULING"


@contextlib.contextmanager
def seeded_schedule(seed: int) -> Generator[None, None, None]:
    """Let every `trio.run` in this block take the turns that `seed` stands for."""
    before = getattr(_SCHEDULER, _SWITCH)
    state = _SCHEDULER._r.getstate()
    setattr(_SCHEDULER, _SWITCH, True)
    _SCHEDULER._r.seed(seed)
    try:
        yield
    finally:
        _SCHEDULER._r.setstate(state)
        setattr(_SCHEDULER, _SWITCH, before)


def run_scheduled(
    main: Callable[[], Awaitable[T]],
    seed: int,
    *,
    clock: trio.testing.MockClock | None = None,
    instruments: Sequence[trio.abc.Instrument] = (),
) -> T:
    """Run `main` in virtual time, with the turns that `seed` stands for.

    Args:
        main: The async function to run.
        seed: The number that determines the order in which tasks run.
        clock: The clock; by default a mock clock that jumps over idle time.
        instruments: Instruments of trio.
    """
    if clock is None:
        clock = trio.testing.MockClock(autojump_threshold=0)
    with seeded_schedule(seed):
        return trio.run(main, clock=clock, instruments=instruments)
