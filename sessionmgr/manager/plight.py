"""Translate supervisor errors inside an exception group into the caller's error type."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sessionmgr.errors import OtpError

if TYPE_CHECKING:
    from collections.abc import Callable


def in_words(
    group: BaseExceptionGroup[BaseException],
    body: BaseException | None,
    down: Callable[[BaseException], BaseException],
) -> BaseExceptionGroup[BaseException]:
    """Return the group with what `down` makes of them in place of a tree's own errors.

    What the block's body has raised is left as it is.
    """
    members: list[BaseException] = []
    for error in group.exceptions:
        if isinstance(error, OtpError) and error is not body:
            said = down(error)
            said.__cause__ = error
            members.append(said)
        else:
            members.append(error)
    return group.derive(members)
