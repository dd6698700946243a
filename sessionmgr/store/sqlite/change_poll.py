"""Polling for changes by other processes, while tasks wait for them.

One of the waiting tasks polls the file and notifies all others; when its wait ends, another one
continues. So polling needs no task of its own, and there is none while no task waits.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from sqlite3 import Connection

    from sessionmgr.store.change_notifier import ChangeKey, ChangeNotifier, ChangeWaiter


class ChangePoller:
    """Poller that notifies waiting tasks of other processes' commits."""

    def __init__(
        self,
        notifier: ChangeNotifier,
        look: Callable[[Mapping[ChangeKey, int]], Awaitable[Sequence[tuple[ChangeKey, int]]]],
        interval: float | None,
    ) -> None:
        self._notifier = notifier
        self._look = look
        self._interval = interval
        self._polling_waiter: ChangeWaiter | None = None

    async def wait(self, waiter: ChangeWaiter) -> int:
        """Wait until the waiter's number passes; return the number then."""
        while not waiter.has_passed:
            if self._polling_waiter is not None or self._interval is None:
                await waiter.wait()
                continue
            self._polling_waiter = waiter
            try:
                await self._poll(waiter, self._interval)
            finally:
                self._polling_waiter = None
                self._hand_over(waiter)
        return waiter.number

    async def _poll(self, waiter: ChangeWaiter, interval: float) -> None:
        while not waiter.has_passed:
            with trio.move_on_after(interval):
                await waiter.wait()
            if not waiter.has_passed:
                for key, number in await self._look(self._notifier.awaited_numbers):
                    self._notifier.notify(key, number)

    def _hand_over(self, leaving: ChangeWaiter) -> None:
        for each in self._notifier:
            if each is not leaving and each.is_waiting:
                each.wake()
                return


class ChangeDetector:
    """Detector of changes since a reading connection's last look at the file."""

    def __init__(self) -> None:
        self._versions: dict[int, tuple[int, Mapping[ChangeKey, int]]] = {}
        """By connection: the file's version at the last look, and the waiters of that look."""

    def find_changes(
        self, connection: Connection, awaited: Mapping[ChangeKey, int]
    ) -> list[tuple[ChangeKey, int]]:
        """Return keys whose numbers have passed, if the file has changed since the last look."""
        (version,) = connection.execute("PRAGMA data_version").fetchone()
        if self._is_known(self._versions.get(id(connection)), version, awaited):
            return []
        self._versions[id(connection)] = version, dict(awaited)
        sessions = json.dumps(
            {id: last for (kind, id), last in awaited.items() if kind == "session"}
        )
        found: list[tuple[ChangeKey, int]] = [
            (("session", session_id), last)
            for session_id, last in connection.execute(
                "SELECT session_id, last FROM json_each(?) AS awaited"
                " CROSS JOIN sessions ON session_id = awaited.key WHERE last > awaited.value",
                (sessions,),
            )
        ]
        results = json.dumps([id for kind, id in awaited if kind == "result"])
        found += [
            (("result", request_id), 1)
            for (request_id,) in connection.execute(
                "SELECT request_id FROM requests WHERE result IS NOT NULL"
                " AND request_id IN (SELECT value FROM json_each(?))",
                (results,),
            )
        ]
        (last,) = connection.execute("SELECT coalesce(max(number), 0) FROM requests").fetchone()
        return [*found, (("requests", ""), last)]

    @staticmethod
    def _is_known(
        last: tuple[int, Mapping[ChangeKey, int]] | None,
        version: int,
        awaited: Mapping[ChangeKey, int],
    ) -> bool:
        """Return whether the last look covers all that this one could find."""
        if last is None or last[0] != version:
            return False
        # A waiter that was added during the look may have read an older state than the look did.
        asked = last[1]
        return all(key in asked and asked[key] <= after for key, after in awaited.items())
