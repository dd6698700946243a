"""Statistics of running actors, supervisors and registries, as plain data."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import trio

if TYPE_CHECKING:
    from sessionmgr.otp.child_task import ChildTask


class ActorStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """Present state of a child."""

    id: str
    state: str
    age: float
    restarts: int
    handled: int
    mailbox: int
    mailbox_bound: int
    tasks_waiting_send: int

    @classmethod
    def of(cls, record: ChildTask) -> ActorStatistics:
        """Return the statistics of `record`.

        Args:
            record: The record of the child.
        """
        mailbox = record.mailbox
        return cls(
            id=record.id,
            state=record.state,
            age=trio.current_time() - record.born,
            restarts=record.restarts,
            handled=record.handled,
            mailbox=0 if mailbox is None else len(mailbox.queue),
            mailbox_bound=0 if mailbox is None else mailbox.bound,
            tasks_waiting_send=0 if mailbox is None else len(mailbox.waiting or ()),
        )


class SupervisorStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """Present state of a supervisor."""

    name: str
    state: str
    age: float
    children: int
    active: int
    restarts: int
    """Number of restarts since it started."""
    restarts_in_window: int
    """Number of them that count against `max_restarts` now."""


class RegistryStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """Present state of a registry."""

    keys: int
    entries: int
    owners: int
