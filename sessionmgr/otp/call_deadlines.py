"""Deadlines of calls.

One table and one task for a whole tree: a cancel scope for each call would double its cost. Calls
with the same timeout expire in the order in which they were made, so each timeout has an
insertion-ordered dictionary and only its first entry matters. The clock is trio's, so virtual time
works.
"""

from __future__ import annotations

import math
from typing import Final, Protocol

import trio
from trio.lowlevel import enable_ki_protection

MIN_BUCKETS: Final = 64


class Expirable(Protocol):
    """The part of a call that the table uses."""

    bucket: dict[Expirable, float] | None
    """The table's dictionary with this call, while the call has a deadline."""

    def expire(self, timeout: float) -> None:
        """End the call, because `timeout` seconds have passed."""
        ...


class DeadlineTable:
    """Table of the open calls by their timeouts; its task expires them."""

    def __init__(self) -> None:
        self._buckets: dict[float, dict[Expirable, float]] = {}
        # Number of timeouts above which the empty dictionaries are removed.
        self._full = MIN_BUCKETS
        self._alarm = trio.CancelScope()
        self._scope = trio.CancelScope()

    @enable_ki_protection
    def add(self, caller: Expirable, timeout: float) -> None:
        """Expire `caller` after `timeout` seconds."""
        bucket = self._buckets.get(timeout)
        if bucket is None:
            if len(self._buckets) >= self._full:
                self._drop_empty()
            bucket = self._buckets[timeout] = {}
        caller.bucket = bucket
        deadline = bucket[caller] = trio.current_time() + timeout
        if deadline < self._alarm.deadline:
            self._alarm.deadline = deadline

    @enable_ki_protection
    async def run(self) -> None:
        """Expire calls at their deadlines, until `close`."""
        with self._scope:
            while True:
                with trio.CancelScope(deadline=self._earliest()) as self._alarm:
                    await trio.sleep_forever()
                self._expire(trio.current_time())

    def close(self) -> None:
        """End the task: the tree accepts no more calls."""
        self._scope.cancel()

    def _earliest(self) -> float:
        firsts = (next(iter(bucket.values())) for bucket in self._buckets.values() if bucket)
        return min(firsts, default=math.inf)

    def _expire(self, now: float) -> None:
        for timeout, bucket in list(self._buckets.items()):
            due: list[Expirable] = []
            for caller, deadline in bucket.items():
                if deadline > now:
                    break
                due.append(caller)
            for caller in due:
                caller.expire(timeout)
        self._drop_empty()

    def _drop_empty(self) -> None:
        # An empty dictionary has no user: each call drops its `bucket` when it leaves it.
        self._buckets = {timeout: bucket for timeout, bucket in self._buckets.items() if bucket}
        self._full = max(MIN_BUCKETS, 2 * len(self._buckets))
