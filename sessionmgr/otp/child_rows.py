"""Results of `which_children` and `count_children`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from sessionmgr.otp.actor import Actor
    from sessionmgr.otp.ref import Ref


class ChildRow(msgspec.Struct, frozen=True, kw_only=True):
    """One child in the list of `which_children`."""

    id: str
    ref: Ref[Actor] | None
    kind: str
    """`worker` or `supervisor`."""
    state: str
    """`starting`, `running`, `restarting`, `stopping` or `stopped`."""
    restarts: int


class ChildCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers of children, as `count_children` returns them."""

    specs: int
    active: int
    supervisors: int
    workers: int
