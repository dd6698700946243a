"""The state that the parts of a manager share. Each object has one owner, and nothing waits."""

from __future__ import annotations

import secrets
import time
from collections import Counter
from contextlib import contextmanager
from itertools import count
from operator import itemgetter
from typing import TYPE_CHECKING, Final
from weakref import WeakValueDictionary

import trio

from sessionmgr.manager.budget import UsageAccount
from sessionmgr.manager.clocks import DEFAULT_CLOCKS, Clocks
from sessionmgr.manager.errors import ManagerClosing, NotInTrio
from sessionmgr.manager.lazy_event import LazyEvent
from sessionmgr.manager.shutdown import ManagerLifetime
from sessionmgr.manager.status import InboxStatus, ManagerStatus, StoreStatus
from sessionmgr.manager.timeouts import TimeoutScheduler
from sessionmgr.model import IdKind, format_timestamp, new_id
from sessionmgr.trio_util_types import RepeatedEvent

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping
    from pathlib import Path

    from sessionmgr.adapter import Approve, Budget, ProviderAdapter
    from sessionmgr.manager.lazy_launcher import LazyLauncher
    from sessionmgr.manager.owner import ManagerOwner
    from sessionmgr.manager.provider_branch import ProviderBranch
    from sessionmgr.manager.run_state import DeliveryState, RunState
    from sessionmgr.manager.session_state import SessionState
    from sessionmgr.model import Json, Session
    from sessionmgr.store import Store


FRESH: Final = 65_536
"""The number of unused session ids that are remembered."""
ASLEEP: Final = 1024
"""The number of sleeping sessions that are remembered: more than providers keep resources for."""


class UnstoredSession:
    """A session that is not stored yet, shared by its handle and the tasks that wait for it."""

    __slots__ = ("__weakref__", "closed", "known")

    def __init__(self) -> None:
        self.known: Final = LazyEvent()
        """Set when it is stored, or will never be stored."""
        self.closed = False
        """Whether it was closed before its first run; then it is never stored."""


class OrphanedSessions:
    """Live sessions whose recorder has crashed, until the Reconciler takes them."""

    __slots__ = ("_came", "_sessions")

    def __init__(self) -> None:
        self._sessions: list[SessionState] = []
        self._came: Final = RepeatedEvent()

    def put(self, live: SessionState) -> None:
        """Add a session."""
        self._sessions.append(live)
        self._came.set()

    def drain(self) -> list[SessionState]:
        """Take all sessions."""
        sessions, self._sessions = self._sessions, []
        return sessions

    async def wait_all(self) -> list[SessionState]:
        """Wait until there is a session, and take all."""
        while not self._sessions:
            await self._came.wait()
        return self.drain()


class ManagerState:
    """The live sessions, the providers, the store and the settings of one manager."""

    def __init__(
        self,
        *,
        presence: ManagerOwner,
        adapters: Mapping[str, type[ProviderAdapter]],
        agents: Path | None,
        clocks: Clocks,
        budget: Budget,
        launcher: LazyLauncher,
        environ: Mapping[str, str],
        now: Callable[[], float] = time.time,
        bits: Callable[[int], int] | None = None,
    ) -> None:
        self.presence: Final = presence
        self.owner: Final = presence.owner
        self.adapters: Final = adapters
        self.agents: Final = agents
        """The registry file of agents, in which adapters look up their variants."""
        self.clocks: Final = clocks.over(DEFAULT_CLOCKS)
        self.budget: Final = budget
        """The budget of all runs of this manager,"""
        self.account: Final = UsageAccount()
        """and their usage."""
        self.environ: Final = environ
        self.launcher: Final = launcher
        self.live_sessions: Final[dict[str, SessionState]] = {}
        self._asleep: Final[dict[str, str]] = {}
        """The provider session ids of the sessions that went to sleep last."""
        self.runs: Final[dict[str, RunState]] = {}
        self.opened: Final[WeakValueDictionary[str, UnstoredSession]] = WeakValueDictionary()
        """Sessions that are not stored yet; entries vanish with their last handle."""
        self.fresh: Final[set[str]] = set()
        """Session ids that were made here and not used yet: no store can contain them."""
        self.reconciling: Final[dict[str, trio.Event]] = {}
        """Sessions whose recorder has crashed, until their runs are ended."""
        self.sessions_in_transition: Final[dict[SessionState, float]] = {}
        """Those of them that wait for the store, and since when."""
        self.store_calls: Final[dict[object, float]] = {}
        """Store calls before a session has a recorder, and since when they run."""
        self.waking: Final[set[str]] = set()
        """Sessions whose recorder is being started."""
        self.approvers: Final[dict[str, Approve]] = {}
        """The approvers of paused sessions, for runs that resume here."""
        self.secret_options: Final[dict[str, dict[str, Json]]] = {}
        """Options of paused runs with secrets that the snapshot omits, by snapshot."""
        self.providers: Final[dict[str, ProviderBranch]] = {}
        self.orphans: Final = OrphanedSessions()
        self.timeouts: Final = TimeoutScheduler()
        self.lifetime: Final = ManagerLifetime()
        self.open = False
        """Whether the manager admits runs."""
        self.token: trio.lowlevel.TrioToken | None = None
        """The token of the manager's `trio.run`, once it has begun."""
        self._store: Store | None = None
        self.has_store = False
        self.store_path: Path | None = None
        """The store's file; None if the caller has opened the store."""
        """Whether the store is open, as far as is known."""
        # The prefix is unique to this manager, so a counter suffices and no random bits are needed.
        self._batches: Final = new_id(IdKind.BATCH) if bits is None else new_id(IdKind.BATCH, bits)
        self._numbers: Final = count()
        self._now: Final = now
        self._bits: Final = bits

    @property
    def store(self) -> Store:
        """The store. A restart of the store replaces the object."""
        assert self._store is not None
        return self._store

    @store.setter
    def store(self, store: Store) -> None:
        self._store = store
        self.has_store = True

    @contextmanager
    def calling_store(self) -> Generator[None]:
        """Show in the status that a call waits for the store."""
        call = object()
        self.store_calls[call] = trio.current_time()
        try:
            yield
        finally:
            del self.store_calls[call]

    def require_own_trio_run(self) -> None:
        """Check that the caller is a task of the manager's own `trio.run`.

        Raises:
            NotInTrio: The caller is not such a task.
        """
        try:
            here = trio.lowlevel.current_trio_token()
        except RuntimeError:
            raise NotInTrio from None
        if self.token is not None and here is not self.token:
            raise NotInTrio(of_another=True)

    def require_open(self, call: str) -> None:
        """Check that the manager's block has begun and not ended.

        Raises:
            NotInTrio: The caller is not a task of its `trio.run`.
            ManagerClosing: The manager is not open.
        """
        self.require_own_trio_run()
        if self.token is None or self.lifetime.is_over:
            when = "has not been entered" if self.token is None else "has been left"
            raise ManagerClosing(
                f"{call}: the manager's block {when}: call it within "
                "`async with open_manager(...) as manager`"
            )

    def is_owned(self, session_id: str) -> bool:
        """Return whether this manager owns a session now."""
        return (
            session_id in self.live_sessions
            or session_id in self.reconciling
            or session_id in self.waking
        )

    def mark_stored(self, session_id: str) -> None:
        """Wake the tasks that wait until a session is stored for the first time."""
        opened = self.opened.pop(session_id, None)
        if opened is not None:
            opened.known.set()

    def milliseconds(self) -> int:
        """Return the wall clock's time in milliseconds, as the store has it."""
        return int(self._now() * 1000)

    def timestamp(self) -> str:
        """Return the wall clock's time as events have it."""
        return format_timestamp(self._now())

    def new_id(self, kind: IdKind) -> str:
        """Make an id."""
        made = new_id(kind) if self._bits is None else new_id(kind, self._bits)
        if kind is IdKind.SESSION:
            if len(self.fresh) >= FRESH:  # a caller that made so many did not want them
                self.fresh.clear()
            self.fresh.add(made)
        return made

    def random(self) -> float:
        """Return a random number from 0 to 1."""
        bits = secrets.randbits if self._bits is None else self._bits
        return bits(32) / 2**32

    def batch_id(self) -> str:
        """Return a unique id for one batch of events."""
        return f"{self._batches}_{next(self._numbers)}"

    def launch(self, entry: RunState) -> None:
        """Start a run's task; if that fails, the run fails."""
        branch = self.providers.get(entry.run.provider)
        if branch is None:
            entry.start_failed(f"{entry.run.provider} is not available")
        else:
            branch.launch(entry)

    def release(self, live: SessionState) -> None:
        """Release the provider's idle resources of a session."""
        self._release(live.session, live.provider_session_id)

    def note_asleep(self, live: SessionState) -> None:
        """Remember a sleeping session, for which the provider may still keep resources."""
        if live.provider_session_id is not None:
            self._asleep.pop(live.session.id, None)
            self._asleep[live.session.id] = live.provider_session_id
            if len(self._asleep) > ASLEEP:
                del self._asleep[next(iter(self._asleep))]

    def release_asleep(self, session: Session) -> None:
        """Release the provider's idle resources of a sleeping session."""
        known = self._asleep.pop(session.id, None)
        self._release(session, known or session.provider_session_id)

    def _release(self, session: Session, provider_session_id: str | None) -> None:
        tree = self.providers.get(session.provider)
        if tree is not None and provider_session_id is not None:
            tree.release(provider_session_id)

    async def deliver_message(
        self, entry: RunState, content: str, message_id: str, tell: Callable[[DeliveryState], None]
    ) -> None:
        """Give a message to the running turn, and report its delivery state."""
        branch = self.providers.get(entry.run.provider)
        if branch is None:
            tell("dropped")
        else:
            await branch.deliver_message(entry, content, message_id, tell)

    def status(self) -> ManagerStatus:
        """Return the status of the manager."""
        entries = [entry for entry in self.runs.values() if not entry.is_over]
        running = Counter(entry.run.provider for entry in entries if entry.is_current)
        queued = Counter(entry.run.provider for entry in entries if not entry.is_current)
        now = trio.current_time()
        since = [
            (live.committing_since, live.commit_error)
            for live in self.live_sessions.values()
            if live.committing_since is not None
        ]
        since += [(begun, live.commit_error) for live, begun in self.sessions_in_transition.items()]
        since += [(begun, None) for begun in self.store_calls.values()]
        slowest, error = min(since, key=itemgetter(0), default=(now, None))
        return ManagerStatus(
            open=self.open,
            sessions=len(self.live_sessions),
            running=running.total(),
            queued=queued.total(),
            providers={
                name: tree.status(running=running[name], queued=queued[name])
                for name, tree in self.providers.items()
            },
            inboxes=self._inbox_status(),
            store=StoreStatus(
                state="open" if self.has_store else "closed",
                waiting=now - slowest,
                why=None if error is None else str(error),
            ),
        )

    def _inbox_status(self) -> InboxStatus:
        inboxes = [live.inbox for live in self.live_sessions.values()]
        channels = [inbox.statistics() for inbox in inboxes]
        return InboxStatus(
            items=sum(each.current_buffer_used for each in channels),
            size=sum(inbox.pending for inbox in inboxes),
            fullest=max((each.current_buffer_used for each in channels), default=0),
            peak=max((each.peak_buffer_used for each in channels), default=0),
        )
