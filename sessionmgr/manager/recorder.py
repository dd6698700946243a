"""The recorder of a session: its single writer.

It is an object, not a task; the committer drives it. `draft_append` turns the items of the
session's inbox into an append. After the commit, `apply_stored` adopts the new records, wakes the
subscribers and calls the effects. Nothing here waits: separate tasks do what takes time, and their
outcomes return through the inbox.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

import trio
from msgspec.structs import replace

from sessionmgr.adapter import Deny, StopReason
from sessionmgr.manager.append_batch import AppendBatch
from sessionmgr.manager.approvals import decide_approval
from sessionmgr.manager.clocks import silence_explanation
from sessionmgr.manager.commands import SLEEP_IF_IDLE, RecorderCommand
from sessionmgr.manager.inbox import CommitUrgency, EventBatch
from sessionmgr.manager.pause_snapshot import make_snapshot
from sessionmgr.manager.run_plan import remaining_budget, spent_budget_reason
from sessionmgr.manager.shutdown import limit_task_end
from sessionmgr.manager.transitions import RecordTransitions
from sessionmgr.model import EndCause, encode_json
from sessionmgr.otp import TaskHandle as Task, TaskSupervisor
from sessionmgr.store import Append, NewSession, RunRow

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from sessionmgr.adapter import Decision
    from sessionmgr.manager.lazy_event import LazyEvent
    from sessionmgr.manager.manager_state import ManagerState
    from sessionmgr.manager.pending_approval import PendingApproval
    from sessionmgr.manager.run_state import DeliveryState, RunState, TurnMessage
    from sessionmgr.manager.session_state import SessionState
    from sessionmgr.model import Run
    from sessionmgr.store import Lease

LINGER: Final = 5.0
"""Seconds for which a session without work stays live: its next run may come soon."""
MOST_AT_ONCE: Final = 1 << 20
"""Bytes of events after which a batch is closed, so that one session does not delay the others."""
FLOOD: Final = 4
"""The number of reads in one batch that make a flood, which gains from a window even alone."""


class RecorderDriver(Protocol):
    """The committer, as its recorders use it."""

    @property
    def tasks(self) -> TaskSupervisor: ...  # noqa: D102
    def mark_pending(self, recorder: Recorder, urgency: CommitUrgency) -> None: ...  # noqa: D102
    def retire_recorder(self, recorder: Recorder) -> None: ...  # noqa: D102
    def crash_recorder(self, recorder: Recorder, error: Exception) -> None: ...  # noqa: D102


class Recorder:
    """The recorder of one session."""

    __slots__ = (
        *("_closed", "_committer", "_draft", "_is_quiet", "_transitions", "_state", "_tasks"),
        *("append", "epoch", "is_flooded", "is_gone", "is_marked", "lease", "session_state"),
    )

    def __init__(
        self,
        live: SessionState,
        manager_state: ManagerState,
        committer: RecorderDriver,
        lease: Lease,
    ) -> None:
        self.session_state: Final = live
        self.lease: Final = lease
        self._state: Final = manager_state
        self._committer: Final = committer
        self._transitions: Final = RecordTransitions(live, self)
        self._draft: Final = AppendBatch(
            last_seq=live.last_seq,
            at="",
            session_id=live.session.id,
            provider=live.session.provider,
            redactor=live.redactor,
        )
        self._tasks: dict[Task[None], None] | None = None  # few sessions have any
        self._closed = False
        """Whether this recorder has closed the session."""
        self._is_quiet = False
        """Whether the session had no work for `LINGER` seconds."""
        self.append: Append | None = None
        """The append on its way to the store: one at a time."""
        self.is_gone = False
        """Whether it has left its session, asleep or crashed."""
        self.is_marked = False
        """Whether the committer will drain its inbox."""
        self.is_flooded = False
        """Whether its last batch had the text of many reads."""
        self.epoch = 0
        """The committer's epoch in which it last had something to commit."""

    @property
    def drafted_bytes(self) -> int:
        """The size of the drafted events in bytes."""
        return self._draft.size

    def start(self) -> None:
        """Begin to process the inbox."""
        inbox = self.session_state.inbox
        inbox.notify = self._mark
        if len(inbox):
            self._mark(CommitUrgency.NOW)
        else:
            self._wait_for_work()

    def _mark(self, urgency: CommitUrgency) -> None:
        self._committer.mark_pending(self, urgency)

    def draft_append(self, at: str, milliseconds: int) -> bool:
        """Process the inbox; return whether there is something to append."""
        live = self.session_state
        draft = self._draft
        draft.begin(live.last_seq, at, live.redactor, closed=live.session.state == "closed")
        inbox, self._is_quiet = live.inbox, False
        inbox.urgency = CommitUrgency.NONE
        text: list[EventBatch] = []
        while draft.size < MOST_AT_ONCE and (item := inbox.pop()) is not None:
            if type(item) is EventBatch and item.is_text:
                if text and text[0].run is not item.run:
                    self._write_text(draft, text)
                    text = []
                draft.size += item.size
                text.append(item)
                continue
            if text:
                self._write_text(draft, text)
                text = []
            if isinstance(item, EventBatch):
                self._transitions.events_received(draft, item)
                continue
            assert isinstance(item, RecorderCommand)
            self._is_quiet |= item is SLEEP_IF_IDLE
            item.write(self._transitions, draft, *item.arguments)
        if text:
            self._write_text(draft, text)
        if len(inbox):
            inbox.urgency = CommitUrgency.NOW
            self._mark(CommitUrgency.NOW)
        if draft.is_text and live.stored:
            self.append = Append(
                session_id=draft.session_id,
                fence=self.lease.fence,
                batch=self._state.batch_id(),
                first=draft.first,
                at=milliseconds,
                rows=tuple(draft.rows),
            )
        else:
            draft.fold_all()
            if not draft.rows:
                return False
            self.append = self._append(draft, milliseconds)
        live.committing_since = trio.current_time()
        return True

    def _write_text(self, draft: AppendBatch, batches: list[EventBatch]) -> None:
        """Add the text that one run has emitted in these batches."""
        entry = self.session_state.runs.get(batches[0].run.run_id)
        if entry is None:  # the record of the run is closed
            return
        entry.in_turn = True
        self.is_flooded = len(batches) >= FLOOD
        if len(batches) == 1:
            draft.write_text(entry, batches[0].events)
        else:
            draft.write_text(entry, [event for each in batches for event in each.events])

    def _append(self, draft: AppendBatch, at: int) -> Append:
        live = self.session_state
        runs: tuple[RunRow, ...] = ()
        session = new_session = None
        if draft.touched or draft.closes or draft.reopens or not live.stored:
            runs, session, new_session = self._records(draft, at)
        return Append(
            session_id=live.session.id,
            fence=self.lease.fence,
            batch=self._state.batch_id(),
            first=draft.first,
            at=at,
            rows=tuple(draft.rows),
            runs=runs,
            ledger=tuple(draft.ledger or ()),
            session=session,
            new_session=new_session,
            closes=draft.closes,
            reopens=draft.reopens,
            blobs=draft.blobs,
            snapshots=tuple(
                [
                    make_snapshot(
                        entry.pause,
                        draft.fold(entry),
                        cwd=entry.spec.cwd,
                        redactor=live.redactor,
                        created_at=draft.at,
                        at=at,
                    )
                    for entry in draft.folds
                    if entry.pause is not None and draft.has_ended(entry)
                ]
            ),
        )

    def _records(
        self, draft: AppendBatch, at: int
    ) -> tuple[tuple[RunRow, ...], bytes | None, NewSession | None]:
        """Return the changed records: of the runs, and of the session if it changed or is new."""
        live, runs = self.session_state, draft.changed_runs()
        is_changed = self._change_session(draft)
        session, records = live.session, list(map(encode_json, runs))
        if is_changed or not live.stored:
            records.append(encode_json(session))
        bodies = live.redactor.redact_all(records)
        rows = [RunRow(run.id, run.status.value, bodies[place]) for place, run in enumerate(runs)]
        new_session = None
        if not live.stored:
            new_session = NewSession(
                session_id=session.id, provider=session.provider, at=at, body=bodies[-1]
            )
        return tuple(rows), bodies[-1] if is_changed else None, new_session

    def _change_session(self, draft: AppendBatch) -> bool:
        """Apply the batch to the session's record; return whether the record changed."""
        live, named = self.session_state, self.session_state.provider_session_id
        for run in draft.folds.values():
            named = run.provider_session_id or named
        is_same = named == live.session.provider_session_id
        if is_same and not (draft.closes or draft.reopens):
            return False
        live.session = replace(live.session, provider_session_id=named)
        return True

    def apply_stored(self) -> None:
        """Adopt what is stored now, call the effects, and go to sleep without work."""
        draft, live = self._draft, self.session_state
        if self.append is not None:
            self.append = live.committing_since = live.commit_error = None
            if not live.stored:
                live.stored = True
                self._state.mark_stored(live.session.id)
        self._apply_records(draft)
        self._closed = draft.closes or (self._closed and not draft.reopens)
        for effect in draft.clear():
            effect()
        if not live.has_work:
            self._wait_for_work()

    def _wait_for_work(self) -> None:
        """Wait for work; go to sleep if the session was idle for long enough."""
        if self._is_quiet or self._closed or self.session_state.sleeps_when_idle:
            self._committer.retire_recorder(self)
        else:
            self._state.timeouts.arm_idle(self.session_state, LINGER)

    def release_idle(self) -> None:
        """Release the provider's idle resources, or remember that the session sleeps."""
        if self._closed or self.session_state.sleeps_when_idle:
            self._state.release(self.session_state)
        else:
            self._state.note_asleep(self.session_state)

    # --- tasks of the session, which end with the recorder ---------------------------------------

    def _start_task(self, body: Callable[[], Awaitable[None]]) -> None:
        task: Task[None] = Task(self._run, (body,), None, lambda: self._forget(task))
        if self._tasks is None:
            self._tasks = {}
        self._tasks[task] = None
        self._committer.tasks.start_handle(task)

    async def _run(self, body: Callable[[], Awaitable[None]]) -> None:
        try:
            await body()
        except Exception as error:  # noqa: BLE001  # a crash of this session alone
            self._committer.crash_recorder(self, error)

    def _forget(self, task: Task[None]) -> None:
        if self._tasks is not None:
            self._tasks.pop(task, None)

    def stop(self) -> None:
        """Cancel its tasks and close the inbox."""
        self.is_gone = True
        self.append = None
        self.session_state.inbox.close()
        for task in list(self._tasks or ()):
            task.cancel()

    def _apply_records(self, draft: AppendBatch) -> None:
        live = self.session_state
        live.inbox.release_bytes(draft.size)
        for entry, run in draft.folds.items():
            before, ended = entry.run, False
            if entry in draft.touched:  # else it had previews, which change only the text
                ended = draft.has_ended(entry)
                if ended:  # deltas are joined here: none contained a whole secret
                    run = replace(run, text=live.redactor.text.redact(run.text))
                if run.usage != before.usage or run.cost != before.cost:
                    self._count_usage(before, run)
                if run.provider_session_id is not None:
                    live.provider_session_id = run.provider_session_id
            entry.apply_record(run)
            if not ended:
                self._update_timeout(entry)
        for entry, events in draft.previews:
            entry.apply_previews(events)
            if (entry.seen, entry.in_turn) != entry.explained[:2]:
                self._update_timeout(entry)
        if draft.written:
            live.append_events(draft.written)

    def _update_timeout(self, entry: RunState) -> None:
        """Compute the timeouts of a started run again if its activity has changed."""
        if entry.dispatched_at is not None:
            explained = silence_explanation(entry.run, seen=entry.seen, in_turn=entry.in_turn)
            if explained != entry.explained:
                entry.explained = explained
                self._state.timeouts.watch_run(entry)

    def _count_usage(self, before: Run, after: Run) -> None:
        """Add a run's usage to the accounts; end all runs if the manager's budget is used up."""
        self.session_state.account.add(before, after)
        manager_state = self._state
        manager_state.account.add(before, after)
        spent = manager_state.account.spent_reason(manager_state.budget, "manager")
        if spent is not None:
            for entry in list(manager_state.runs.values()):
                if not entry.is_over:
                    entry.end(StopReason(cause=EndCause.BUDGET, detail=spent))

    # --- effects: called after the commit --------------------------------------------------------

    def notify_waiter(self, waiter: LazyEvent) -> None:
        """Wake the task that waits for the commit."""
        self.session_state.notify_waiter(waiter)

    def start_deciding(self, run: RunState, question: PendingApproval) -> None:
        """Start the task that finds the decision of an approval request."""
        self._start_task(partial(decide_approval, run, question))

    def resolve_approval(
        self, run: RunState, question: PendingApproval, decision: Decision
    ) -> None:
        """Give a decision to the provider."""
        question.decision = decision
        question.answered.set()
        run.note_activity()  # the silence until now was ours
        if isinstance(decision, Deny) and decision.stop:
            run.end(StopReason(cause=EndCause.CALLER, detail=decision.reason))

    def deliver(self, message: TurnMessage) -> None:
        """Start the task that gives a message to the running turn."""
        self._start_task(partial(self._deliver_message, message))

    def end(self, run: RunState, stop: StopReason) -> None:
        """End a run."""
        run.end(stop)

    def limit_task_end(self, run: RunState) -> None:
        """Limit the remaining time of the task of a run that its provider has ended."""
        if not run.gone.is_set():
            limit_task_end(run)
            self._state.timeouts.watch_run(run)

    def launch(self, run: RunState) -> None:
        """Start a run's task."""
        if self._is_within_budgets(run):
            self._state.launch(run)

    def _is_within_budgets(self, entry: RunState) -> bool:
        """Return whether a starting run may start: it is limited to the rest of its outer budgets.

        If nothing remains of one of them, the run is ended.
        """
        wish, session, manager = entry.plan.wish, self.session_state.account, self._state.account
        spent = spent_budget_reason(wish, session, manager)
        if spent is not None:
            entry.end(StopReason(cause=EndCause.BUDGET, detail=spent))
            return False
        budget = remaining_budget(wish, session, manager)
        if budget != entry.spec.budget:
            entry.spec = replace(entry.spec, budget=budget)
        return True

    def start_next_run(self, left: RunState) -> None:
        """Make the session's next run the active one, unless `left` is still active."""
        live = self.session_state
        if live.active is left and left.is_over:
            live.active = None
        while live.queue and not live.queue[0].can_wait:
            del live.queue[0]
        # A task that ignores its cancellation may still report events.
        if left.is_finished:
            live.runs.pop(left.id, None)
            self._state.runs.pop(left.id, None)
        if live.closing and not live.is_busy:
            live.commands.close_idle_session()
        if live.active is None and live.queue:
            entry = live.queue.pop(0)
            live.activate(entry)
            live.commands.dispatch(entry)

    async def _deliver_message(self, message: TurnMessage) -> None:
        message.is_begun = True
        tell = partial(self._record_delivery, message)
        await self._state.deliver_message(message.entry, message.content, message.message_id, tell)

    def _record_delivery(self, message: TurnMessage, delivery: DeliveryState) -> None:
        if message.delivery is None:  # the first answer counts
            message.delivery = delivery
            self.session_state.commands.record_delivery(message, delivery)
