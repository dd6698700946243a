"""A session that has work to do, in memory: what its recorder, handles and runs share."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import TYPE_CHECKING, Final

import trio
from trio.lowlevel import Abort, Task, current_task, reschedule, wait_task_rescheduled

from sessionmgr.manager.budget import UsageAccount
from sessionmgr.manager.commands import RecorderCommands
from sessionmgr.manager.inbox import Inbox
from sessionmgr.store import Redactor

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sessionmgr.manager.lazy_event import LazyEvent
    from sessionmgr.manager.run_state import RunState
    from sessionmgr.model import AnyEvent, Session

NO_SECRETS: Final = frozenset[str]()
TAIL: Final = 256
"""How many events are kept at hand for those who follow closely, and the last batch as a whole."""
TAIL_SLACK: Final = 64
"""So many more are kept, so that not each batch moves those behind it."""


@lru_cache(maxsize=64)
def _redactor(secrets: frozenset[str]) -> Redactor:
    """Make a redactor, once for all sessions with these secrets: that takes a while."""
    return Redactor(secrets)


class SessionState:
    """One live session. Only its recorder changes what is stored of it."""

    __slots__ = (
        "_promised",
        "_secrets",
        "_tail",
        "_waiting",
        "account",
        "active",
        "asleep",
        "closing",
        "commands",
        "commit_error",
        "committing_since",
        "inbox",
        "last_seq",
        "nap_number",
        "provider_session_id",
        "queue",
        "redactor",
        "runs",
        "session",
        "sleeps_when_idle",
        "stored",
    )

    def __init__(self, session: Session, *, stored: bool, last_seq: int) -> None:
        self.session = session
        self.stored = stored
        """Whether the store knows it: a session is stored with its first run."""
        self.last_seq = last_seq
        self.inbox: Final = Inbox()
        self.commands: Final = RecorderCommands(self.inbox)
        self.runs: Final[dict[str, RunState]] = {}
        # Lists: an empty deque weighs as much as ten of them, and these are short.
        self.queue: Final[list[RunState]] = []
        self.active: RunState | None = None
        self._tail: Final[list[AnyEvent]] = []
        self.committing_since: float | None = None
        self.account: Final = UsageAccount()
        self.commit_error: Exception | None = None
        """The store's answer to the current batch, if it is being retried."""
        self.provider_session_id = session.provider_session_id
        self.redactor = _redactor(NO_SECRETS)
        self._secrets = NO_SECRETS
        self.closing = False
        """Whether it takes no more runs, or has taken its last."""
        self.sleeps_when_idle = False
        """Whether no further run is expected: it goes to sleep as soon as it has no work."""
        self._promised: Final[list[LazyEvent]] = []
        self.nap_number = 0
        """Its number with the timer task, while it has no work."""
        self.asleep = False
        """Whether it has no recorder any more; the store has all that is known of it."""
        self._waiting: Final[dict[Task, None]] = {}
        """The tasks that wait for news."""

    def wake_waiters(self) -> None:
        """Wake all who wait for news."""
        for task in self._waiting:
            reschedule(task)
        self._waiting.clear()

    async def wait_for_events(self, after: int) -> None:
        """Wait until there is something after that number, or the session goes to sleep."""
        if self.last_seq > after or self.asleep or self.is_closed_unused:
            await trio.lowlevel.checkpoint()
        while self.last_seq <= after and not self.asleep and not self.is_closed_unused:
            task = current_task()
            self._waiting[task] = None
            await wait_task_rescheduled(partial(self._stop_waiting, task))

    def _stop_waiting(self, task: Task, _: object) -> Abort:
        del self._waiting[task]
        return Abort.SUCCEEDED

    @property
    def is_closed_unused(self) -> bool:
        """Whether it was closed before anything happened in it."""
        return self.closing and not self.stored and not self.runs

    @property
    def is_busy(self) -> bool:
        """Whether a run is on or waits."""
        return any(not entry.is_over for entry in self.runs.values())

    def add_waiter(self, event: LazyEvent) -> LazyEvent:
        """Note that a task waits for this; it is woken also if the recorder dies."""
        self._promised.append(event)
        return event

    def notify_waiter(self, event: LazyEvent) -> None:
        """Wake the task that waits for this: it has happened."""
        if event in self._promised:
            self._promised.remove(event)
        event.set()

    def release_waiters(self) -> None:
        """Release all waiters: the recorder has died."""
        while self._promised:
            self._promised.pop().set()

    @property
    def is_free(self) -> bool:
        """Whether a run that is admitted now has its turn at once."""
        return self.active is None and not self.queue

    def enqueue(self, entry: RunState) -> None:
        """Give a run its turn if no other has it, else queue it."""
        if self.is_free:
            self.activate(entry)
        else:
            self.queue.append(entry)

    def activate(self, entry: RunState) -> None:
        """Give a run its turn."""
        entry.dispatch()
        self.active = entry

    def add_secrets(self, secrets: Iterable[str]) -> None:
        """Keep these out of all that is stored from now on."""
        if not self._secrets.issuperset(secrets):
            self._secrets = self._secrets.union(secrets)
            self.redactor = _redactor(self._secrets)

    @property
    def has_work(self) -> bool:
        """Whether a run is on or waits, or a command is on its way or waited for."""
        return bool(self.runs or len(self.inbox) or self._promised)

    def append_events(self, batch: Sequence[AnyEvent]) -> None:
        """Note what has been stored, and wake all who wait for it."""
        tail = self._tail
        tail += batch
        self.last_seq += len(batch)
        most = max(TAIL, len(batch))
        if len(tail) > most + TAIL_SLACK:
            del tail[:-most]
        self.wake_waiters()

    def recent_events(self, after: int) -> list[AnyEvent] | None:
        """Return the events after that number, if all of them are at hand."""
        missing = self.last_seq - after
        if missing > len(self._tail):
            return None
        return self._tail[-missing:] if missing > 0 else []
