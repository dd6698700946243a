"""The keeper of a session: who writes down what happens in it, and then lets it have effect.

There is one for each live session. It takes all the news there are, drafts what follows from them,
has that stored, and only then adopts it, tells everybody, and starts what it asks for. The loop
waits for two things: news, and the store. Whatever takes time is done by tasks beside it, whose
outcomes come back as news.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import trio
from msgspec.structs import replace

from sessionmgr.adapter.question import Deny
from sessionmgr.adapter.run_control import Stop
from sessionmgr.errors import StoreClosed, StoreUnusable
from sessionmgr.manager import effect, news
from sessionmgr.manager.approval import decide
from sessionmgr.manager.budget import budget_now, why_spent
from sessionmgr.manager.draft import Draft
from sessionmgr.manager.scribe import Scribe
from sessionmgr.model import Cause, Snapshot as SnapshotValue, encode_json
from sessionmgr.store.row import Append, NewSession, Snapshot

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from sessionmgr.manager.live import Live
    from sessionmgr.manager.run_state import RunState
    from sessionmgr.manager.tables import Tables
    from sessionmgr.model import Run

LINGER: Final = 5.0
"""Seconds for which a session without work is kept: its next run may come soon."""
RETRY: Final = 0.1
"""Seconds between two attempts to reach a store that is being started again."""


class Keeper:
    """Keeps one session's record."""

    __slots__ = ("_closed", "_fence", "_live", "_nursery", "_put_off", "_scribe", "_tables")

    def __init__(self, live: Live, tables: Tables, fence: int) -> None:
        self._live: Final = live
        self._tables: Final = tables
        self._fence: Final = fence
        self._scribe: Final = Scribe(live)
        self._nursery: trio.Nursery | None = None
        self._put_off: Final[list[Callable[[], Awaitable[None]]]] = []
        self._closed = False
        """Whether the session was closed under this keeper."""

    async def keep(self, asleep: Callable[[], None]) -> None:
        """Write down what comes in, for as long as the session is live; then say `asleep`."""
        await self._keep()
        if not self._put_off:
            self._leave(asleep)
            return
        # Few sessions need tasks beside their keeper, and a nursery weighs as much as a session.
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            while self._put_off:
                nursery.start_soon(self._put_off.pop(0))
            await self._keep()
            # From here on nobody reads the session's news: it must not be found any more, even
            # if a task beside us does not let itself be stopped.
            self._leave(asleep)
            nursery.cancel_scope.cancel()

    def _leave(self, asleep: Callable[[], None]) -> None:
        """Release the adapter's idle resources, and record that the session sleeps."""
        if self._closed or self._live.let_go:
            self._tables.release(self._live)
        else:
            self._tables.note_asleep(self._live)
        asleep()

    async def _keep(self) -> None:
        """Write down what comes in, as long as there is work, or until a nursery is needed."""
        live, is_quiet = self._live, False
        while live.has_work or not (is_quiet or self._closed or live.let_go):
            if self._put_off:
                break
            if not live.has_work:
                self._tables.timeouts.nap(live, LINGER)
            await live.intake.arrival()
            # All that a batch needs is let go of before the next one is waited for.
            is_quiet = await self._write_down(live.intake.drain())

    async def _write_down(self, items: list[object]) -> bool:
        """Store what follows from the news, let it have effect, and say if it was none at all."""
        draft = self._draft(items)
        if draft.rows:
            await self._commit(draft)
        self._adopt(draft)
        self._closed = draft.closes or (self._closed and not draft.reopens)
        for each in draft.effects:
            self._let(each)
        return news.QUIET in items

    def _beside(self, body: Callable[[], Awaitable[None]]) -> None:
        """Start a task beside the keeper, as soon as there is room for one."""
        if self._nursery is None:
            self._put_off.append(body)
        else:
            self._nursery.start_soon(body)

    def _draft(self, items: list[object]) -> Draft:
        live = self._live
        draft = Draft(
            last_seq=live.last_seq,
            at=self._tables.moment(),
            session_id=live.session.id,
            provider=live.session.provider,
            redactor=live.redactor,
            closed=live.session.state == "closed",
        )
        for item in items:
            self._scribe.take(draft, item)
        draft.fold_all()
        return draft

    async def _commit(self, draft: Draft) -> None:
        """Have the draft stored; a store that is being started again is waited for.

        Raises:
            StoreUnusable: It did not come back in time.
        """
        live = self._live
        live.committing_since = trio.current_time()
        at = self._tables.milliseconds()
        append = Append(
            session_id=live.session.id,
            fence=self._fence,
            batch=self._tables.batch_id(),
            first=draft.first,
            at=at,
            rows=tuple(draft.rows),
            runs=draft.run_rows(),
            ledger=tuple(draft.ledger),
            session=self._session_record(draft),
            new_session=None if live.stored else self._new_session(at),
            closes=draft.closes,
            reopens=draft.reopens,
            blobs=tuple(draft.blobs),
        )
        patience = self._tables.clocks.of("store") or float("inf")
        while True:
            try:
                await self._store(draft, append)
            except (StoreClosed, StoreUnusable) as error:
                live.commit_error = error
                if trio.current_time() - live.committing_since >= patience:
                    raise
                await trio.sleep(RETRY)
            else:
                break
        live.committing_since = live.commit_error = None
        if not live.stored:
            live.stored = True
            self._tables.is_known(live.session.id)

    def _new_session(self, at: int) -> NewSession:
        session = self._live.session
        body = self._live.redactor.redact(encode_json(session))
        return NewSession(session_id=session.id, provider=session.provider, at=at, body=body)

    def _session_record(self, draft: Draft) -> bytes | None:
        """Return the session's record, if the draft changes it."""
        live, named = self._live, self._live.provider_session_id
        for run in draft.folds.values():
            named = run.provider_session_id or named
        is_same = named == live.session.provider_session_id
        if is_same and not (draft.closes or draft.reopens):
            return None
        live.session = replace(live.session, provider_session_id=named)
        return live.redactor.redact(encode_json(live.session))

    async def _store(self, draft: Draft, append: Append) -> None:
        store = self._tables.store
        for entry in draft.folds:
            if entry.pause is not None and draft.has_ended(entry):
                await store.put_snapshot(self._snapshot(draft, entry, append.at))
        await store.append(append)

    def _snapshot(self, draft: Draft, entry: RunState, at: int) -> Snapshot:
        order, run = entry.pause, draft.fold(entry)
        assert order is not None
        value = SnapshotValue(
            id=order.snapshot_id,
            run_id=run.id,
            session_id=run.session_id,
            provider=run.provider,
            provider_session_id=run.provider_session_id,
            cwd=run.cwd or entry.spec.cwd,
            permission=run.permission,
            node=order.node,
            state=order.state,
            message=order.message,
            asked=order.asked,
            created_at=draft.at,
        )
        return Snapshot(
            snapshot_id=value.id,
            session_id=run.session_id,
            run_id=run.id,
            at=at,
            body=self._live.redactor.redact(encode_json(value)),
        )

    def _adopt(self, draft: Draft) -> None:
        live = self._live
        live.intake.stored(draft.size)
        for entry, run in draft.folds.items():
            ended = draft.has_ended(entry)
            if ended:  # joined deltas; no secret is whole in it
                run = replace(run, text=live.redactor.text.redact(run.text))
            if run.usage != entry.run.usage or run.cost != entry.run.cost:
                self._spend(entry.run, run)
            entry.run = run
            explained = _explains(entry)
            if explained != entry.explained and not ended:
                entry.explained = explained
                self._tables.timeouts.watch(entry)
            if run.provider_session_id is not None:
                live.provider_session_id = run.provider_session_id
            if ended:
                entry.ended.set()
        if draft.written:
            live.append(draft.written)

    def _spend(self, before: Run, after: Run) -> None:
        """Count a run's usage; when the manager's budget is used up, end all its runs."""
        self._live.account.add(before, after)
        tables = self._tables
        tables.account.add(before, after)
        spent = tables.account.why_spent(tables.budget, "manager")
        if spent is not None:
            for entry in list(tables.runs.values()):
                if not entry.is_over:
                    entry.end(Stop(cause=Cause.BUDGET, detail=spent))

    # --- effects: what is stored may have them --------------------------------------------------

    def _let(self, asked: effect.Effect) -> None:
        match asked:
            case effect.Tell(event=event):
                self._live.keep_word(event)
            case effect.Decide(entry=entry, question=question):
                self._beside(partial(decide, entry, question))
            case effect.Answer(decided=decided):
                _answer(decided)
            case effect.Steer(sent=sent):
                self._beside(partial(self._steer, sent))
            case effect.EndRun(entry=entry, stop=stop):
                entry.end(stop)
            case effect.WindDown(entry=entry):
                entry.task.begin_after_end()
                self._tables.timeouts.watch(entry)
            case effect.Launch(entry=entry):
                self._launch(entry)
            case effect.Next(entry=entry):
                self._next(entry)

    def _is_within_budgets(self, entry: RunState) -> bool:
        """Give a starting run the remainder of its outer budgets; end the run if none is left."""
        spent = why_spent(self._tables, self._live, entry.wish)
        if spent is not None:
            entry.claim(Stop(cause=Cause.BUDGET, detail=spent))
            return False
        budget = budget_now(self._tables, self._live, entry.wish)
        if budget != entry.spec.budget:
            entry.spec = replace(entry.spec, budget=budget)
        return True

    def _next(self, left: RunState) -> None:
        """Give the session's next run its turn, if none has it."""
        live = self._live
        if live.active is left and left.is_over:
            live.active = None
        while live.queue and not live.queue[0].can_wait:
            del live.queue[0]
        # A task that is deaf to its end may still have something to say.
        if left.is_over and left.gone.is_set():
            live.entries.pop(left.id, None)
            self._tables.runs.pop(left.id, None)
        if live.closing and not live.is_busy:
            live.intake.put(news.Closing())
        if live.active is None and live.queue:
            entry = live.queue.pop(0)
            live.take_turn(entry)
            live.intake.put(news.Dispatching(entry))

    def _launch(self, entry: RunState) -> None:
        if self._is_within_budgets(entry):
            self._tables.launch(entry)
        else:
            entry.never_began("its budget is used up")

    async def _steer(self, sent: news.FollowUpSent) -> None:
        sent.delivery.begun = True
        tell = partial(self._delivered, sent)
        await self._tables.steer(sent.entry, sent.content, sent.message_id, tell)

    def _delivered(self, sent: news.FollowUpSent, fate: news.Fate) -> None:
        if sent.delivery.fate is None:  # the first answer counts
            sent.delivery.fate = fate
            self._live.intake.put(news.FollowUpFate(sent, fate))


def _explains(entry: RunState) -> tuple[object, ...]:
    """Return what of a run says why it is silent: with that, the clock that runs may change."""
    run = entry.run
    return (
        entry.seen,
        entry.in_turn,
        bool(run.open_tools),
        bool(run.open_approvals),
        bool(run.open_tasks),
        run.turns,
    )


def _answer(decided: news.Decided) -> None:
    question, decision = decided.question, decided.decision
    question.decision = decision
    question.answered.set()
    decided.entry.alive()  # it was our silence until now
    if isinstance(decision, Deny) and decision.stop:
        decided.entry.end(Stop(cause=Cause.CALLER, detail=decision.reason))
