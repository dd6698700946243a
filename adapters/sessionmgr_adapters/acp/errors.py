"""Errors of the plain client."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sessionmgr.errors import SessionmgrError

if TYPE_CHECKING:
    from sessionmgr.model import Json


class AcpClientError(SessionmgrError):
    """The agent refused a request, has exited, or does not answer.

    Attributes:
        code: The code of the refusal; None if it is no refusal.
        data: What the agent said beside its message.
    """

    def __init__(self, message: str, code: int | None = None, data: Json = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data
