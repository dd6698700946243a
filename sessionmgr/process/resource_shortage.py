"""Temporary shortages of the system: too few descriptors, processes or memory for a child."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Final, TypeVar

import trio

from sessionmgr.process.errors import DescriptorsExhausted

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

T = TypeVar("T")

RETRY_FOR: Final = 30.0
"""Seconds that a start waits for resources; less than a run's start timeout."""
_FIRST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 1.0
_SHORTAGE_ERRORS: Final = frozenset(
    {errno.EAGAIN, errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
)
# The threading module's message if the system has no room for another thread.
_NO_THREAD: Final = "can't start new thread"


def is_transient_shortage(error: BaseException | None) -> bool:
    """Return whether an error reports a shortage that may be temporary."""
    while error is not None:
        if (
            isinstance(error, DescriptorsExhausted)
            or getattr(error, "errno", None) in _SHORTAGE_ERRORS
        ):
            return True
        if isinstance(error, RuntimeError) and str(error) == _NO_THREAD:
            return True
        error = error.__cause__
    return False


def _never() -> bool:
    return False


async def retry_on_shortage(
    start: Callable[[], Awaitable[T]], others: Callable[[], bool] = _never
) -> T:
    """Call `start` repeatedly while the system lacks resources for it.

    `others` returns whether running children will release descriptors; without any, a shortage of
    descriptors is raised at once.

    Raises:
        Exception: `start` failed for another reason, or the shortage did not end in time.
    """
    deadline = trio.current_time() + RETRY_FOR
    pause = _FIRST_PAUSE
    while True:
        try:
            return await start()
        except Exception as error:
            if not is_transient_shortage(error) or trio.current_time() >= deadline:
                raise
            if isinstance(error, DescriptorsExhausted) and not others():
                raise
        await trio.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)
