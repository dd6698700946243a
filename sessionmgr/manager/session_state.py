"""The in-memory state of a session that has work: shared by its recorder, handles and runs."""

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
"""The number of recent events in memory for close followers; a larger last batch is kept whole."""
TAIL_SLACK: Final = 64
"""The number of further events that may accumulate before the oldest are deleted at once."""


@lru_cache(maxsize=64)
def _redactor(secrets: frozenset[str]) -> Redactor:
    """Return a redactor. Sessions with the same secrets share one, because it is slow to build."""
    return Redactor(secrets)


class SessionState:
    """The state of one live session. Only its recorder changes the stored part."""

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
        """Whether the store has it: a session is stored with its first run."""
        self.last_seq = last_seq
        self.inbox: Final = Inbox()
        self.commands: Final = RecorderCommands(self.inbox)
        self.runs: Final[dict[str, RunState]] = {}
        # Lists, because an empty deque takes ten times their memory, and these are short.
        self.queue: Final[list[RunState]] = []
        self.active: RunState | None = None
        self._tail: Final[list[AnyEvent]] = []
        self.committing_since: float | None = None
        self.account: Final = UsageAccount()
        self.commit_error: Exception | None = None
        """The store's last error for the current append, while it is being retried."""
        self.provider_session_id = session.provider_session_id
        self.redactor = _redactor(NO_SECRETS)
        self._secrets = NO_SECRETS
        self.closing = False
        """Whether it accepts no more runs."""
        self.sleeps_when_idle = False
        """Whether no further run is expected; then it sleeps as soon as it has no work."""
        self._promised: Final[list[LazyEvent]] = []
        self.nap_number = 0
        """The key of its idle timeout in the timer's heap."""
        self.asleep = False
        """Whether it has no recorder; the store has its whole state then."""
        self._waiting: Final[dict[Task, None]] = {}
        """The tasks that wait for new events."""

    def wake_waiters(self) -> None:
        """Wake the tasks that wait for new events."""
        for task in self._waiting:
            reschedule(task)
        self._waiting.clear()

    async def wait_for_events(self, after: int) -> None:
        """Wait until an event after that number is stored, or the session sleeps."""
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
        """Whether it was closed before it had a run."""
        return self.closing and not self.stored and not self.runs

    @property
    def is_busy(self) -> bool:
        """Whether a run is active or queued."""
        return any(not entry.is_over for entry in self.runs.values())

    def add_waiter(self, event: LazyEvent) -> LazyEvent:
        """Register an event that a task waits for; the death of the recorder sets it, too."""
        self._promised.append(event)
        return event

    def notify_waiter(self, event: LazyEvent) -> None:
        """Set an event and wake its waiter."""
        if event in self._promised:
            self._promised.remove(event)
        event.set()

    def release_waiters(self) -> None:
        """Release all waiters: the recorder has died."""
        while self._promised:
            self._promised.pop().set()

    @property
    def is_free(self) -> bool:
        """Whether a new run would be active at once."""
        return self.active is None and not self.queue

    def enqueue(self, entry: RunState) -> None:
        """Make a run the active one if there is none, else queue it."""
        if self.is_free:
            self.activate(entry)
        else:
            self.queue.append(entry)

    def activate(self, entry: RunState) -> None:
        """Make a run the active one."""
        entry.dispatch()
        self.active = entry

    def add_secrets(self, secrets: Iterable[str]) -> None:
        """Redact these secrets in all that is stored from now on."""
        if not self._secrets.issuperset(secrets):
            self._secrets = self._secrets.union(secrets)
            self.redactor = _redactor(self._secrets)

    @property
    def has_work(self) -> bool:
        """Whether it has runs, commands in the inbox, or waiters."""
        return bool(self.runs or len(self.inbox) or self._promised)

    def append_events(self, batch: Sequence[AnyEvent]) -> None:
        """Keep newly stored events for followers, and wake the tasks that wait for them."""
        tail = self._tail
        tail += batch
        self.last_seq += len(batch)
        most = max(TAIL, len(batch))
        if len(tail) > most + TAIL_SLACK:
            del tail[:-most]
        self.wake_waiters()

    def recent_events(self, after: int) -> list[AnyEvent] | None:
        """Return the events after that number, or None if not all of them are in memory."""
        missing = self.last_seq - after
        if missing > len(self._tail):
            return None
        return self._tail[-missing:] if missing > 0 else []
