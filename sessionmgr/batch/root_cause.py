"""What made a batch give up."""

from __future__ import annotations

from typing import cast

from sessionmgr.batch.errors import BatchDown
from sessionmgr.errors import SessionmgrError
from sessionmgr.otp import OtpError


def batch_down_error(error: BaseException) -> BatchDown:
    """Say what the batch could not get over: what lies at the bottom of it."""
    while (below := _next_cause(error)) is not None:
        error = below
    return BatchDown(error)


def _next_cause(error: BaseException) -> BaseException | None:
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        return group.exceptions[0] if len(group.exceptions) == 1 else None
    # An error of ours says all there is to say, unless it is that of a tree which has given up.
    is_ours = isinstance(error, SessionmgrError) and not isinstance(error, OtpError)
    return None if is_ours else error.__cause__
