"""Errors of portals."""

from __future__ import annotations

from sessionmgr.adapter import SessionError


class PortalClosed(SessionError):
    """The portal was closed before the call or during it; the error of its manager is the cause."""

    def __init__(self, call: str, *, during: bool = False) -> None:
        when = "was closed before this call ended" if during else "is closed"
        super().__init__(
            f"{call}: the portal {when}: call it within `with open_portal(...) as portal`, and "
            "wait for the results that you need before the block ends"
        )
        self.call = call


class PortalDeadlock(SessionError):
    """A blocking call was made in the portal's own thread, where it would wait for itself."""

    def __init__(self, call: str) -> None:
        super().__init__(
            f"{call}: this is the portal's own thread, in which a blocking call would wait for "
            "itself: in a callback of a future, pass the work on to a thread of yours, or use "
            "portal.submit()"
        )
        self.call = call
