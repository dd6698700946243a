"""Root cause of a batch's internal failure."""

from __future__ import annotations

from typing import cast

from sessionmgr.batch.errors import BatchDown
from sessionmgr.errors import SessionmgrError
from sessionmgr.otp import OtpError


def batch_down_error(error: BaseException) -> BatchDown:
    """Return a `BatchDown` with the innermost cause of an error."""
    while (below := _next_cause(error)) is not None:
        error = below
    return BatchDown(error)


def _next_cause(error: BaseException) -> BaseException | None:
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        return group.exceptions[0] if len(group.exceptions) == 1 else None
    # The project's own errors are complete, except those of a supervision tree, which wrap
    # the crash that stopped the tree.
    is_ours = isinstance(error, SessionmgrError) and not isinstance(error, OtpError)
    return None if is_ours else error.__cause__
