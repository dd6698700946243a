"""The recorder of a session: its single writer.

It is an object and no task: the committer drives it. `draft` turns the items of the session's inbox
into an append; after the commit, `adopt` takes over the fold, tells the subscribers, and starts the
effects. Nothing in here waits. Whatever takes time is done by tasks beside it, whose outcomes come
back through the inbox.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import trio
from msgspec.structs import replace

from sessionmgr.adapter.approval import Deny
from sessionmgr.adapter.run_context import StopReason
from sessionmgr.manager.append_batch import AppendBatch
from sessionmgr.manager.approval import decide
from sessionmgr.manager.budget import budget_now, why_spent
from sessionmgr.manager.clocks import explanation
from sessionmgr.manager.commands import REST, Command
from sessionmgr.manager.inbox import Arrived, Urgency
from sessionmgr.manager.pause import snapshot
from sessionmgr.manager.shutdown import begin_after_end
from sessionmgr.manager.transitions import Transitions
from sessionmgr.model import EndCause, encode_json
from sessionmgr.otp import TaskHandle as Task
from sessionmgr.store.rows import Append, NewSession, RunRow

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from sessionmgr.adapter.approval import Decision
    from sessionmgr.manager.approval import Question
    from sessionmgr.manager.commands import Fate, Message
    from sessionmgr.manager.committer import Committer
    from sessionmgr.manager.lazy_event import Latch
    from sessionmgr.manager.manager_state import ManagerState
    from sessionmgr.manager.run_state import RunState
    from sessionmgr.manager.session_state import SessionState
    from sessionmgr.model import Run
    from sessionmgr.store.rows import Lease

LINGER: Final = 5.0
"""Seconds for which a session without work is kept: its next run may come soon."""
MOST_AT_ONCE: Final = 1 << 20
"""Bytes of events after which a batch is closed, so that no session holds up the others."""
FLOOD: Final = 4
"""So many reads in one batch are a flood, which gains from a window even alone."""


class Recorder:
    """Writes one session's record."""

    __slots__ = (
        *("_closed", "_committer", "_draft", "_is_quiet", "_transitions", "_tables", "_tasks"),
        *("append", "epoch", "is_flooded", "is_gone", "is_marked", "lease", "live"),
    )

    def __init__(
        self, live: SessionState, tables: ManagerState, committer: Committer, lease: Lease
    ) -> None:
        self.live: Final = live
        self.lease: Final = lease
        self._tables: Final = tables
        self._committer: Final = committer
        self._transitions: Final = Transitions(live, self)
        self._draft: Final = AppendBatch(
            last_seq=live.last_seq,
            at="",
            session_id=live.session.id,
            provider=live.session.provider,
            redactor=live.redactor,
        )
        self._tasks: dict[Task[None], None] | None = None  # few sessions have any
        self._closed = False
        """Whether the session was closed under this recorder."""
        self._is_quiet = False
        """Whether the session had no work for a while."""
        self.append: Append | None = None
        """The append that is on its way to the store: one at a time."""
        self.is_gone = False
        """Whether it has left its session, asleep or crashed."""
        self.is_marked = False
        """Whether the committer is to take what is in its inbox."""
        self.is_flooded = False
        """Whether its last batch had the text of many reads."""
        self.epoch = 0
        """When it last had something to commit, in the committer's epochs."""

    @property
    def drafted(self) -> int:
        """How many bytes of events it has drafted."""
        return self._draft.size

    def begin(self) -> None:
        """Take the items of the inbox from now on."""
        inbox = self.live.intake
        inbox.notify = self._mark
        if len(inbox):
            self._mark(Urgency.NOW)
        else:
            self._pause()

    def _mark(self, urgency: Urgency) -> None:
        self._committer.mark(self, urgency)

    def draft(self, at: str, milliseconds: int) -> bool:
        """Take what has come in; return whether it makes an append."""
        live = self.live
        draft = self._draft
        draft.begin(live.last_seq, at, live.redactor, closed=live.session.state == "closed")
        inbox, self._is_quiet = live.intake, False
        inbox.urgency = Urgency.NONE
        text: list[Arrived] = []
        while draft.size < MOST_AT_ONCE and (item := inbox.take()) is not None:
            if type(item) is Arrived and item.is_text:
                if text and text[0].run is not item.run:
                    self._take_text(draft, text)
                    text = []
                draft.size += item.size
                text.append(item)
                continue
            if text:
                self._take_text(draft, text)
                text = []
            if isinstance(item, Arrived):
                self._transitions.arrived(draft, item)
                continue
            assert isinstance(item, Command)
            self._is_quiet |= item is REST
            item.write(self._transitions, draft, *item.arguments)
        if text:
            self._take_text(draft, text)
        if len(inbox):
            inbox.urgency = Urgency.NOW
            self._mark(Urgency.NOW)
        if draft.is_text and live.stored:
            self.append = Append(
                session_id=draft.session_id,
                fence=self.lease.fence,
                batch=self._tables.batch_id(),
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

    def _take_text(self, draft: AppendBatch, batches: list[Arrived]) -> None:
        """Add the pieces of text that one run has emitted, one batch after the other."""
        entry = self.live.entries.get(batches[0].run.run_id)
        if entry is None:  # its record is closed
            return
        entry.in_turn = True
        self.is_flooded = len(batches) >= FLOOD
        if len(batches) == 1:
            draft.write_text(entry, batches[0].events)
        else:
            draft.write_text(entry, [event for each in batches for event in each.events])

    def _append(self, draft: AppendBatch, at: int) -> Append:
        live = self.live
        runs: tuple[RunRow, ...] = ()
        session = new_session = None
        if draft.touched or draft.closes or draft.reopens or not live.stored:
            runs, session, new_session = self._records(draft, at)
        return Append(
            session_id=live.session.id,
            fence=self.lease.fence,
            batch=self._tables.batch_id(),
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
                    snapshot(entry, draft.fold(entry), draft.at, at)
                    for entry in draft.folds
                    if entry.pause is not None and draft.has_ended(entry)
                ]
            ),
        )

    def _records(
        self, draft: AppendBatch, at: int
    ) -> tuple[tuple[RunRow, ...], bytes | None, NewSession | None]:
        """Return the records that change: the runs', and the session's if it does or is new."""
        live, runs = self.live, draft.changed_runs()
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
        """Change the session's record as the draft wants it; return whether it does."""
        live, named = self.live, self.live.provider_session_id
        for run in draft.folds.values():
            named = run.provider_session_id or named
        is_same = named == live.session.provider_session_id
        if is_same and not (draft.closes or draft.reopens):
            return False
        live.session = replace(live.session, provider_session_id=named)
        return True

    def adopt(self) -> None:
        """Take over what is stored now, let it have effect, and go to sleep without work."""
        draft, live = self._draft, self.live
        if self.append is not None:
            self.append = live.committing_since = live.commit_error = None
            if not live.stored:
                live.stored = True
                self._tables.is_known(live.session.id)
        self._adopt(draft)
        self._closed = draft.closes or (self._closed and not draft.reopens)
        for effect in draft.clear():
            effect()
        if not live.has_work:
            self._pause()

    def _pause(self) -> None:
        """Wait for work, and sleep if none has come for a while."""
        if self._is_quiet or self._closed or self.live.let_go:
            self._committer.retire(self)
        else:
            self._tables.timeouts.nap(self.live, LINGER)

    def rest(self) -> None:
        """Release the adapter's idle resources, or remember that the session sleeps."""
        if self._closed or self.live.let_go:
            self._tables.release(self.live)
        else:
            self._tables.note_asleep(self.live)

    # --- tasks beside it, as long as the session is live ----------------------------------------

    def _beside(self, body: Callable[[], Awaitable[None]]) -> None:
        task: Task[None] = Task(self._run, (body,), None, lambda: self._forget(task))
        if self._tasks is None:
            self._tasks = {}
        self._tasks[task] = None
        self._committer.tasks.start_handle(task)

    async def _run(self, body: Callable[[], Awaitable[None]]) -> None:
        try:
            await body()
        except Exception as error:  # noqa: BLE001  # a crash of this session alone
            self._committer.crash(self, error)

    def _forget(self, task: Task[None]) -> None:
        if self._tasks is not None:
            self._tasks.pop(task, None)

    def leave(self) -> None:
        """Stop the tasks beside it, and take no more items."""
        self.is_gone = True
        self.append = None
        self.live.intake.close()
        for task in list(self._tasks or ()):
            task.cancel()

    def _adopt(self, draft: AppendBatch) -> None:
        live = self.live
        live.intake.stored(draft.size)
        for entry, run in draft.folds.items():
            before, ended = entry.run, False
            if entry in draft.touched:  # else previews have come, which change nothing else
                ended = draft.has_ended(entry)
                if ended:  # joined deltas; no secret is whole in it
                    run = replace(run, text=live.redactor.text.redact(run.text))
                if run.usage != before.usage or run.cost != before.cost:
                    self._spend(before, run)
                if run.provider_session_id is not None:
                    live.provider_session_id = run.provider_session_id
            entry.adopt(run)
            if not ended:
                self._explain(entry)
        for entry, events in draft.previews:
            entry.stream(events)
            if (entry.seen, entry.in_turn) != entry.explained[:2]:
                self._explain(entry)
        if draft.written:
            live.append(draft.written)

    def _explain(self, entry: RunState) -> None:
        """Have the clocks of a run that was sent follow from what it does now."""
        if entry.dispatched_at is not None:
            explained = explanation(entry.run, seen=entry.seen, in_turn=entry.in_turn)
            if explained != entry.explained:
                entry.explained = explained
                self._tables.timeouts.watch(entry)

    def _spend(self, before: Run, after: Run) -> None:
        """Count a run's usage; when the manager's budget is used up, end all its runs."""
        self.live.account.add(before, after)
        tables = self._tables
        tables.account.add(before, after)
        spent = tables.account.why_spent(tables.budget, "manager")
        if spent is not None:
            for entry in list(tables.runs.values()):
                if not entry.is_over:
                    entry.end(StopReason(cause=EndCause.BUDGET, detail=spent))

    # --- effects: what follows from what is stored ----------------------------------------------

    def tell(self, waiter: Latch) -> None:
        """Wake the task that waits for it to be stored."""
        self.live.keep_word(waiter)

    def find_answer(self, run: RunState, question: Question) -> None:
        """Start the task that finds the answer to a question."""
        self._beside(partial(decide, run, question))

    def answer(self, run: RunState, question: Question, decision: Decision) -> None:
        """Give an answer to the provider."""
        question.decision = decision
        question.answered.set()
        run.alive()  # it was our silence until now
        if isinstance(decision, Deny) and decision.stop:
            run.end(StopReason(cause=EndCause.CALLER, detail=decision.reason))

    def deliver(self, message: Message) -> None:
        """Start the task that gives a message to the running turn."""
        self._beside(partial(self._steer, message))

    def end(self, run: RunState, stop: StopReason) -> None:
        """End a run."""
        run.end(stop)

    def limit_end(self, run: RunState) -> None:
        """Limit the time that the task of a run has left which its provider has ended."""
        if not run.gone.is_set():
            begin_after_end(run)
            self._tables.timeouts.watch(run)

    def launch(self, run: RunState) -> None:
        """Have a run's task started."""
        if self._is_within_budgets(run):
            self._tables.launch(run)

    def _is_within_budgets(self, entry: RunState) -> bool:
        """Give a starting run the remainder of its outer budgets; end the run if none is left."""
        spent = why_spent(self._tables, self.live, entry.plan.wish)
        if spent is not None:
            entry.end(StopReason(cause=EndCause.BUDGET, detail=spent))
            return False
        budget = budget_now(self._tables, self.live, entry.plan.wish)
        if budget != entry.spec.budget:
            entry.spec = replace(entry.spec, budget=budget)
        return True

    def give_turn(self, left: RunState) -> None:
        """Give the session's next run its turn, if `left` has none any more."""
        live = self.live
        if live.active is left and left.is_over:
            live.active = None
        while live.queue and not live.queue[0].can_wait:
            del live.queue[0]
        # A task that is deaf to its end may still have something to say.
        if left.is_done:
            live.entries.pop(left.id, None)
            self._tables.runs.pop(left.id, None)
        if live.closing and not live.is_busy:
            live.commands.close_if_idle()
        if live.active is None and live.queue:
            entry = live.queue.pop(0)
            live.take_turn(entry)
            live.commands.dispatch(entry)

    async def _steer(self, message: Message) -> None:
        message.is_begun = True
        tell = partial(self._delivered, message)
        await self._tables.steer(message.entry, message.content, message.message_id, tell)

    def _delivered(self, message: Message, fate: Fate) -> None:
        if message.fate is None:  # the first answer counts
            message.fate = fate
            self.live.commands.delivered(message, fate)
