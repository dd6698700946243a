"""A deterministic order of tasks, which depends on a seed alone."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Awaitable, Callable, Generator, Sequence
from typing import TypeVar

import trio
import trio.testing

T = TypeVar("T")

# trio's random numbers for its scheduler, and its switch to a deterministic order. Both are
# private; trio's own tests and its plugin for hypothesis use them in the same way.
_SCHEDULER = importlib.import_module("trio._core._run")
_SWITCH = "_ALLOW_DETERMINISTIC_SCHEDULING"


@contextlib.contextmanager
def seeded_schedule(seed: int) -> Generator[None, None, None]:
    """Make every `trio.run` in this block use the order of `seed`."""
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
    """Run `main` in virtual time, with the order of `seed`.

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
