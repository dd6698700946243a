"""A session, as its user holds it: its runs come one after the other."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final, Unpack

import msgspec
import trio

from sessionmgr.adapter import StopReason
from sessionmgr.manager.argument_checks import request_of_arguments
from sessionmgr.manager.budget import spent_budget_reason
from sessionmgr.manager.errors import (
    BudgetExhausted,
    InboxFull,
    ManagerClosing,
    ProviderNotReady,
    RecorderUnavailable,
    SessionIsClosed,
)
from sessionmgr.manager.inbox import MOST_RUNS
from sessionmgr.manager.lazy_event import LazyEvent
from sessionmgr.manager.run_handle import RunHandle
from sessionmgr.manager.run_plan import (
    RunArguments,
    RunPlan,
    RunRequest,
    plan_run,
    run_grant,
    run_readiness,
)
from sessionmgr.manager.run_state import RunState
from sessionmgr.model import EndCause, IdKind

if TYPE_CHECKING:
    from types import TracebackType

    from sessionmgr.adapter import Approve, Budget
    from sessionmgr.manager.clocks import Clocks
    from sessionmgr.manager.manager_state import ManagerState, UnstoredSession
    from sessionmgr.manager.run_plan import RunGrant
    from sessionmgr.manager.session_supervisor import SessionSupervisor
    from sessionmgr.model import Session


ATTEMPTS: Final = 3


class SessionHandle:
    """One conversation with one provider."""

    __slots__ = (
        "_approve",
        "_budget",
        "_clocks",
        "_keeping",
        "_reopens",
        "_session",
        "_tables",
        "_unstored",
    )

    def __init__(
        self,
        tables: ManagerState,
        keeping: SessionSupervisor,
        session: Session,
        *,
        clocks: Clocks,
        budget: Budget,
        approve: Approve | None,
        reopens: bool = False,
        unstored: UnstoredSession | None = None,
    ) -> None:
        self._unstored: Final = unstored
        self._reopens: Final = reopens
        self._tables: Final = tables
        self._keeping: Final = keeping
        self._session: Final = session
        self._clocks: Final = clocks
        self._budget: Final = budget
        self._approve: Final = approve

    def __repr__(self) -> str:
        return f"<session {self.id} with {self.provider}>"

    @property
    def id(self) -> str:
        """Its id."""
        return self._session.id

    @property
    def provider(self) -> str:
        """Whose session it is."""
        return self._session.provider

    def start(self, prompt: str, **wishes: Unpack[RunArguments]) -> RunBlock:
        """Start a run for the length of a block; `Wishes` says what else may be asked.

        `async with session.start("…") as run:` ends the run if the block is left before it is
        done. Refusals are raised when the block is entered, and leave nothing behind.

        Args:
            prompt: The prompt, which must not be empty.
            wishes: Any of the fields of `Wishes`: `system_prompt`, `images`, `model`,
                `permission_mode`, `options`, `require`, `prefer`, `require_native`, `schema`,
                `max_turns`, `effort`, `tools_allowed`, `tools_denied`, `directories`, `budget`,
                `clocks`, `env`, `approve`, `metadata`. What is omitted is as in the session.

        Raises:
            TypeError: An argument has a wrong type or an unknown name.
            ValueError: An argument has an invalid value.

        Example:
            ```python
            async def count(manager: Manager) -> int:
                session = await manager.open_session("claude", permission_mode="plan")
                async with session.start("Count", clocks=Clocks(deadline=600)) as run:
                    return (await run.result()).turns
            ```
        """
        return RunBlock(self, request_of_arguments("start", prompt, wishes))

    async def submit(self, prompt: str, **wishes: Unpack[RunArguments]) -> RunHandle:
        """Start a run that the manager owns: it goes on until it is done, or is cancelled.

        Args:
            prompt: The prompt, which must not be empty.
            wishes: The same as those of `start`.

        Raises:
            StartRefused: Nothing was started.
            InboxFull: Thousands of runs of this session wait already.
        """
        return await self.admit(request_of_arguments("submit", prompt, wishes))

    def check(self, wish: RunRequest) -> RunGrant:
        """Return the grant of a run, without starting or storing anything.

        Args:
            wish: The request of the run.

        Raises:
            StartRefused: The run would be refused, could never succeed, or its provider is not
            installed or not logged in.
            VariableRefused: A child may not get a variable.
        """
        self._tables.require_own_trio_run()
        wish = msgspec.structs.replace(wish, session_budget=self._budget)
        grant = run_grant(self._tables, self._session, wish)
        health = run_readiness(self._tables, self._session, wish)
        if health.state != "ok":
            raise ProviderNotReady(self.provider, health.detail)
        return grant

    async def admit(self, wish: RunRequest) -> RunHandle:
        """Check a wish and let the run in; it has its turn when those before it are done.

        Args:
            wish: The request of the run.

        Raises:
            StartRefused: Nothing was started.
        """
        self._tables.require_own_trio_run()
        wish = msgspec.structs.replace(
            wish,
            clocks=wish.clocks.over(self._clocks),
            approve=wish.approve or self._approve,
            session_budget=self._budget,
        )
        plan = plan_run(self._tables, self._session, wish)
        await self._keeping.start_branch(self.provider)
        return await self._admit_with_retry(plan)

    async def follow_up(self, after: RunState, content: str) -> RunHandle:
        """Queue a message as a run of its own, with what the run before it was allowed.

        Args:
            after: The state of the run before.
            content: The message.

        Raises:
            StartRefused: The manager or the provider is not there any more.
        """
        if not self._tables.open:
            raise ManagerClosing
        await self._keeping.start_branch(self.provider)
        spec = msgspec.structs.replace(after.spec, prompt=content, provider_session_id=None)
        plan = msgspec.structs.replace(after.plan, spec=spec, negotiation=after.negotiation)
        return await self._admit_with_retry(plan, follow_up=True)

    async def _admit_with_retry(self, plan: RunPlan, *, follow_up: bool = False) -> RunHandle:
        """Admit a run; if its recorder dies before that is stored, ask the next one.

        Raises:
            KeeperLost: Nobody could write down that it was let in.
        """
        for _ in range(ATTEMPTS):
            with suppress(RecorderUnavailable):
                entry = await self._admit(plan, follow_up)
                if entry.run.first_seq:
                    return RunHandle(self._tables, entry, self)
        raise RecorderUnavailable(self.id)

    async def _admit(self, plan: RunPlan, follow_up: bool) -> RunState:
        live = await self._keeping.live_session(self._session)
        if live.closing and not self._reopens:
            raise SessionIsClosed(self.id)
        if not self._tables.open:  # closed while the session was woken
            raise ManagerClosing
        if len(live.runs) >= MOST_RUNS:
            raise InboxFull(len(live.runs), live.inbox.pending)
        spent = spent_budget_reason(self._tables, live, plan.wish)
        if spent is not None:
            raise BudgetExhausted(spent)
        entry = RunState(
            plan,
            live=live,
            timeouts=self._tables.timeouts,
            run_id=self._tables.new_id(IdKind.RUN),
            message_id=self._tables.new_id(IdKind.MESSAGE),
            follow_up=follow_up,
        )
        live.closing = live.sleeps_when_idle = False
        live.add_secrets(plan.secrets)
        live.commands.admit(entry, has_turn=live.is_free)
        live.runs[entry.id] = self._tables.runs[entry.id] = entry
        live.enqueue(entry)
        live.add_waiter(entry.admitted)
        try:
            await entry.admitted.wait()
        except BaseException:
            entry.end(StopReason(cause=EndCause.CALLER, detail="nobody waited for its start"))
            raise
        return entry

    def unended(self) -> list[RunHandle]:
        """Return its runs that are on or wait, in their order."""
        live = self._tables.live_sessions.get(self.id)
        entries = list(live.runs.values()) if live else []
        return [RunHandle(self._tables, each, self) for each in entries if not each.is_over]

    async def cancel(self, detail: str | None = None) -> None:
        """End what runs, and what waits.

        Args:
            detail: The reason, for the record; by default none.
        """
        self._tables.require_own_trio_run()
        stop = StopReason.worded(EndCause.CALLER, detail)
        await trio.lowlevel.checkpoint()
        live = self._tables.live_sessions.get(self.id)
        for entry in list(live.runs.values()) if live else []:
            entry.end(stop)

    def release(self) -> None:
        """Release what its provider keeps for its next run: none is expected soon.

        It stays open. A later run starts what it needs, and another manager may take the session
        over.
        """
        self._tables.require_own_trio_run()
        live = self._tables.live_sessions.get(self.id)
        if live is None:
            self._tables.release_asleep(self._session)
            return
        live.sleeps_when_idle = True
        live.commands.sleep_if_idle()

    async def close(self) -> None:
        """Have it take no more runs; it is closed when those that are on or wait are over."""
        self._tables.require_own_trio_run()
        live = await self._keeping.live_session(self._session)
        live.closing = True
        if not live.stored and not live.is_busy:
            if self._unstored is not None:  # no other task knows of it
                self._unstored.closed = True
                self._unstored.known.set()
            live.wake_waiters()
            return
        written = LazyEvent()
        live.commands.close_session(written)
        live.add_waiter(written)
        await written.wait()


class RunBlock:
    """A run for the length of a block."""

    def __init__(self, session: SessionHandle, wish: RunRequest) -> None:
        self._session: Final = session
        self._wish: Final = wish
        self._run: RunHandle | None = None

    async def __aenter__(self) -> RunHandle:
        """Start the run.

        Raises:
            StartRefused: Nothing was started.
        """
        self._run = await self._session.admit(self._wish)
        return self._run

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End the run if it is not over, and wait for that."""
        assert self._run is not None
        # Shielded and bounded in there.
        await self._run.leave(early=exc is not None)  # noqa: ASYNC102
