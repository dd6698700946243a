"""The committer: one task that commits the events of all sessions, one transaction at a time.

A session with items in its inbox marks itself. The committer takes the first mark at once and
later ones after a window, so that many sessions share a transaction: it drains the inboxes of all
marked sessions, stores their appends by one call, applies what is stored, and so wakes each
subscriber once. While it writes a group, marks accumulate for the next.

An exception while it drives one recorder ends only that session, through the Reconciler. The
appends in progress belong to this object, not to the task: a restarted committer sends the same
appends again, each of which is idempotent.
"""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING, Final

import trio
from trio.lowlevel import Abort, Task, current_task, reschedule, wait_task_rescheduled

from sessionmgr.manager.inbox import CommitUrgency
from sessionmgr.store import StoreClosed, StoreUnusable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sessionmgr.manager.manager_state import ManagerState
    from sessionmgr.manager.recorder import Recorder
    from sessionmgr.otp import TaskSupervisor
    from sessionmgr.store import Append, AppendResult

log: Final = logging.getLogger("sessionmgr.manager")

RETRY: Final = 0.1
"""Seconds between two attempts to reach a store that is being started again."""
WINDOW: Final = 0.025
"""Maximum number of seconds between two groups of text, when many sessions stream."""
SHORT_WINDOW: Final = 0.003
"""The same for other events, and for the first ones after a silence."""
FLOOR: Final = 0.01
"""Seconds of the window of a session that floods, although it streams alone."""
ALONE: Final = 1
MANY: Final = 10
"""The number of further sessions at which the window reaches its maximum."""
TICKS: Final = 5
"""Scheduler ticks for other tasks to add to a due group, unless a command waits."""
MOST_TICKS: Final = 20
"""The limit of these ticks; each session that marks itself starts the count again."""
EPOCH: Final = 0.1
"""Seconds over which the streaming sessions are counted."""
MOST_AT_ONCE: Final = 4 << 20
"""Bytes of events after which a group is closed; the remaining sessions come first in the next."""


class Committer:
    """The committer of all live sessions."""

    def __init__(
        self, manager_state: ManagerState, tasks: TaskSupervisor, gone: Callable[[Recorder], None]
    ) -> None:
        self.tasks: Final = tasks
        """The supervisor of the recorders' tasks."""
        self.recorders: Final[dict[Recorder, None]] = {}
        self._state: Final = manager_state
        self._gone: Final = gone
        """Called with each recorder that has left its session."""
        self._marked: list[Recorder] = []
        self._group: Final[dict[Recorder, None]] = {}
        """Recorders whose append is on its way to the store."""
        self._due = math.inf
        """The time at which to drain the marked sessions."""
        self._taken_at = -math.inf
        self._is_followed = False
        """Whether more may follow at once: the end of a run follows the end of its turn."""
        self._parked: Task | None = None
        self._until = math.inf
        """The time until which the task is parked."""
        self._window = 0.0
        self._epoch = 1
        self._epoch_over = -math.inf
        self._streaming = 0
        """The number of sessions with something to commit in this epoch."""

    def add_recorder(self, recorder: Recorder) -> None:
        """Start to drive a recorder."""
        self.recorders[recorder] = None
        recorder.start()

    def mark_pending(self, recorder: Recorder, urgency: CommitUrgency) -> None:
        """Note that a session has items in its inbox."""
        if not recorder.is_marked:
            recorder.is_marked = True
            self._marked.append(recorder)
        if urgency is CommitUrgency.NOW:
            due = -math.inf
        elif urgency is CommitUrgency.WITH_END:
            due = trio.current_time() + WINDOW
        elif urgency is CommitUrgency.SOON or recorder.epoch < self._epoch - 1:
            due = self._taken_at + min(self._window, SHORT_WINDOW)
            self._is_followed |= urgency is CommitUrgency.SOON
        else:
            window = self._window
            due = self._taken_at + (max(window, FLOOR) if recorder.is_flooded else window)
        if due < self._due:
            self._due = due
            if self._parked is not None and due < self._until:
                reschedule(self._parked)
                self._parked = None

    # --- the loop --------------------------------------------------------------------------------

    async def run(self) -> None:
        """Commit the marked sessions, group by group."""
        while True:
            await self._wait()
            self._collect_appends()
            if self._group:
                await self._commit()

    async def _wait(self) -> None:
        """Wait until the marked sessions are due; the first one is due at once."""
        if self._group:  # the store was not reachable
            await trio.sleep(RETRY)
            return
        if self._due <= trio.current_time():
            await trio.lowlevel.checkpoint()
        while (due := self._due) > trio.current_time():
            self._until = due
            if due == math.inf:
                await self._wait_for_mark()
            else:
                with trio.move_on_at(due):
                    await self._wait_for_mark()
        turns = quiet = 0
        while self._is_followed and quiet < TICKS and turns < MOST_TICKS and self._due > -math.inf:
            marked = len(self._marked)
            await trio.lowlevel.checkpoint()
            turns, quiet = turns + 1, quiet + 1 if len(self._marked) == marked else 0

    async def _wait_for_mark(self) -> None:
        def abort(_: object) -> Abort:
            self._parked = None
            return Abort.SUCCEEDED

        self._parked = current_task()
        await wait_task_rescheduled(abort)

    def _collect_appends(self) -> None:
        """Collect the appends of the marked recorders."""
        manager_state, size = self._state, 0
        at, milliseconds = "", 0
        self._taken_at = trio.current_time()
        marked, self._marked, self._due = self._marked, [], math.inf
        self._is_followed = False
        self._adapt_window(marked)
        for place, recorder in enumerate(marked):
            if size >= MOST_AT_ONCE:
                # They precede sessions that had so much that they marked themselves again just now.
                self._marked[:0] = marked[place:]
                self._due = -math.inf
                break
            if recorder in self._group:
                self._marked.append(recorder)
                self._due = -math.inf
            elif not recorder.is_gone:
                recorder.is_marked = False
                try:  # an exception here ends only this session, and no mark is lost
                    if not at:
                        at, milliseconds = manager_state.timestamp(), manager_state.milliseconds()
                    if recorder.draft_append(at, milliseconds):
                        self._group[recorder] = None
                        size += recorder.drafted_bytes
                    else:
                        recorder.apply_stored()
                except Exception as error:  # noqa: BLE001  # a crash of this session alone
                    self.crash_recorder(recorder, error)

    def _adapt_window(self, marked: Sequence[Recorder]) -> None:
        """Adapt the window to the number of streaming sessions."""
        now = self._taken_at
        if now >= self._epoch_over:
            is_next = now < self._epoch_over + EPOCH
            self._epoch += 1 if is_next else 2
            streaming = self._streaming if is_next else 0
            self._epoch_over, self._streaming = now + EPOCH, 0
        else:
            streaming = 0
        epoch = self._epoch
        for recorder in marked:
            if recorder.epoch != epoch:
                recorder.epoch = epoch
                self._streaming += 1
        share = min(1.0, (max(streaming, self._streaming) - ALONE) / MANY)
        window = max(0.0, share) * WINDOW
        # It grows at once and shrinks after a quiet epoch.
        if window > self._window or now + EPOCH == self._epoch_over:
            self._window = window

    async def _commit(self) -> None:
        """Store the appends of the group, and apply the stored ones."""
        group = list(self._group)
        appends = [recorder.append for recorder in group if recorder.append is not None]
        try:
            outcomes = await self._state.store.append_all(appends)
        except (StoreClosed, StoreUnusable) as error:
            outcomes = [error] * len(group)
        except Exception as error:  # noqa: BLE001  # see below
            # Our stores never raise others. If a caller's store does, only that append fails.
            log.warning(
                "A group of appends failed; each is stored alone. appends=%d error=%r",
                len(group),
                error,
            )
            outcomes = [await self._append_result(append) for append in appends]
        for recorder, outcome in zip(group, outcomes, strict=True):
            if recorder in self._group:  # else it has crashed meanwhile
                self._handle_result(recorder, outcome)

    async def _append_result(self, append: Append) -> AppendResult | Exception:
        try:
            (outcome,) = await self._state.store.append_all([append])
        except Exception as error:  # noqa: BLE001  # the outcome of this one
            return error
        return outcome

    def _handle_result(self, recorder: Recorder, outcome: AppendResult | Exception) -> None:
        """Apply a stored append; an append that the store refuses ends its session."""
        if isinstance(outcome, Exception):
            recorder.session_state.commit_error = outcome
            is_down = isinstance(outcome, StoreClosed | StoreUnusable)
            if not is_down or self._is_too_late(recorder):
                self.crash_recorder(recorder, outcome)
            return  # the same append is sent again
        del self._group[recorder]
        try:
            recorder.apply_stored()
        except Exception as error:  # noqa: BLE001  # a crash of this session alone
            self.crash_recorder(recorder, error)

    def _is_too_late(self, recorder: Recorder) -> bool:
        limit = self._state.clocks.of("store") or math.inf
        since = recorder.session_state.committing_since
        return since is not None and trio.current_time() - since >= limit

    # --- leaving a session -----------------------------------------------------------------------

    def retire_recorder(self, recorder: Recorder) -> None:
        """Put a session without work to sleep."""
        if self._drop(recorder):
            recorder.release_idle()
            self._gone(recorder)

    def crash_recorder(self, recorder: Recorder, error: Exception) -> None:
        """Drop a crashed recorder; the Reconciler ends the session's runs."""
        if self._drop(recorder):
            session_id = recorder.session_state.session.id
            log.error(
                "A recorder crashed; the runs of its session will be ended. session=%s",
                session_id,
                exc_info=error,
            )
            self._state.reconciling[session_id] = trio.Event()
            self._state.orphans.put(recorder.session_state)
            self._gone(recorder)

    def abandon_recorder(self, recorder: Recorder) -> None:
        """Drop a recorder because the manager or this part of its tree stops."""
        if self._drop(recorder):
            self._gone(recorder)

    def _drop(self, recorder: Recorder) -> bool:
        """Stop driving a recorder; False if it was dropped before."""
        if recorder.is_gone:
            return False
        recorder.stop()
        self._group.pop(recorder, None)
        self.recorders.pop(recorder, None)
        return True
