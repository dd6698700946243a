"""The handles of sessions and runs, which callers hold. Runs of a session follow each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, Unpack

import msgspec
import trio

from sessionmgr.adapter import StopReason
from sessionmgr.manager.admission import admit_run
from sessionmgr.manager.argument_checks import MESSAGES, request_of_arguments, require_arguments
from sessionmgr.manager.cursor import Cursor
from sessionmgr.manager.errors import ManagerClosing, NotPausable, ProviderNotReady
from sessionmgr.manager.lazy_event import LazyEvent
from sessionmgr.manager.pause_snapshot import PauseRequest
from sessionmgr.manager.resume_spec import storable_options
from sessionmgr.manager.run_planner import plan_run, run_grant, run_readiness
from sessionmgr.manager.run_state import TurnMessage
from sessionmgr.manager.shutdown import wait_until_ended, wait_until_gone
from sessionmgr.manager.text_cursor import TextCursor
from sessionmgr.model import (
    UNSUPPORTED,
    EndCause,
    IdKind,
    RunResult,
    RunStatus,
    Snapshot,
    encode_json,
)
from sessionmgr.store import StoreTimeout

if TYPE_CHECKING:
    from types import TracebackType

    from sessionmgr.adapter import Approve, Budget
    from sessionmgr.manager.clocks import Clocks
    from sessionmgr.manager.manager_state import ManagerState, UnstoredSession
    from sessionmgr.manager.run_plan import RunArguments, RunGrant, RunPlan, RunRequest
    from sessionmgr.manager.run_state import RunState
    from sessionmgr.manager.session_supervisor import SessionSupervisor
    from sessionmgr.model import Json, Session


class FollowUp(msgspec.Struct, frozen=True):
    """The result of `append`: the current turn has accepted the message, or it is the run `run`.

    With the state "unknown" the provider did not answer. It may have the message, which is not sent
    again.
    """

    state: Literal["accepted", "queued", "unknown"]
    run: RunHandle

    @property
    def accepted(self) -> bool:
        """Whether the current turn has accepted the message."""
        return self.state == "accepted"


class RunHandle:
    """The handle of one run. The run continues whether or not a handle exists."""

    __slots__ = ("_entry", "_session", "_state")

    def __init__(
        self, manager_state: ManagerState, entry: RunState, session: SessionHandle
    ) -> None:
        self._state: Final = manager_state
        self._entry: Final = entry
        self._session: Final = session

    def __repr__(self) -> str:
        return f"<run {self.id}: {self.status}>"

    @property
    def id(self) -> str:
        """The id of the run."""
        return self._entry.id

    @property
    def session_id(self) -> str:
        """The id of the run's session."""
        return self._entry.run.session_id

    @property
    def session(self) -> SessionHandle:
        """The handle of the run's session."""
        return self._session

    @property
    def status(self) -> RunStatus:
        """The stored status of the run."""
        return self._entry.run.status

    def __aiter__(self) -> Cursor:
        """Iterate over all events of the run, from the first to the terminal one."""
        return self.events()

    def events(self, *, after: int = 0) -> Cursor:
        """Iterate over the run's events up to the terminal one.

        Args:
            after: The number of an event; the iteration begins with the next one. The default, 0,
                begins with the first.
        """
        first = self._entry.run.first_seq or self._entry.session_state.last_seq + 1
        return Cursor(
            self._state,
            self.session_id,
            after=max(first - 1, after),
            run_id=self.id,
            ended=self._entry.ended,
        )

    def text(self) -> TextCursor:
        """Iterate over the agent's text in pieces as it arrives; each time from the beginning.

        Each character comes once, whether the provider streams its messages or sends them whole.

        Example:
            ```python
            async def show(run: RunHandle) -> None:
                async for piece in run.text():
                    print(piece, end="", flush=True)
            ```
        """
        return TextCursor(aiter(self))

    async def result(self) -> RunResult:
        """Wait for the end of the run, and return its result. A failed run raises nothing."""
        self._state.require_own_trio_run()
        entry = self._entry
        await entry.ended.wait()
        # Its process may still be ending, and may report more events.
        await wait_until_gone(entry)
        return entry.run.result()

    def cancel(self, detail: str | None = None) -> bool:
        """Begin to end the run, without waiting for it; False if it is ending already.

        Args:
            detail: The reason, for the record; by default none.
        """
        self._state.require_own_trio_run()
        return self._entry.end(StopReason.worded(EndCause.CALLER, detail))

    def supersede(self, detail: str | None = None) -> bool:
        """Begin to end the run because a newer attempt at the same job replaces it.

        Return False if the run is ending already.

        Args:
            detail: The reason, for the record; by default none.
        """
        self._state.require_own_trio_run()
        return self._entry.end(StopReason(cause=EndCause.NEWER_ATTEMPT, detail=detail))

    async def append(self, content: str) -> FollowUp:
        """Send another message: into the current turn, or else as the session's next run.

        Args:
            content: The message, which must not be empty.
        """
        require_arguments("append", MESSAGES, {"content": content})
        self._state.require_own_trio_run()
        entry = self._entry
        tree = self._state.providers.get(entry.run.provider)
        steers = tree is not None and tree.can_append()
        if steers and entry.is_active:
            message_id = self._state.new_id(IdKind.MESSAGE)
            sent = TurnMessage(entry, message_id, content, LazyEvent())
            entry.session_state.commands.append_message(sent)
            entry.session_state.add_waiter(sent.written)
            await sent.written.wait()
            if sent.delivery == "sent":
                return FollowUp("accepted", self)
            if sent.is_begun and sent.delivery != "dropped":
                return FollowUp("unknown", self)
        return FollowUp("queued", await self._session.follow_up(entry, content))

    async def pause(
        self, *, node: str | None = None, state: Json = None, message: str | None = None
    ) -> Snapshot:
        """Interrupt the run so that it can be resumed later.

        Args:
            node: The caller's own name for the step that the run was in.
            state: JSON of the caller's own, stored in the snapshot.
            message: The prompt with which the run resumes; by default a request to continue.

        Raises:
            NotPausable: The run cannot be resumed, or has ended.
            StoreTimeout: The manager has closed, and its store did not answer.
        """
        require_arguments("pause", MESSAGES, {"message": message})
        self._state.require_own_trio_run()
        entry = self._entry
        encode_json(state)  # raises here: what is not JSON is the caller's mistake
        self._require_pausable()
        snapshot_id = self._state.new_id(IdKind.SNAPSHOT)
        request = PauseRequest(snapshot_id, node, state, message, entry.plan.asked)
        if not entry.end(StopReason(cause=EndCause.PAUSE), request):
            raise NotPausable(self.id, "it is ending already")
        await entry.ended.wait()
        if entry.run.status is not RunStatus.PAUSED:
            raise NotPausable(self.id, f"it is {entry.run.status}")
        if entry.plan.wish.approve is not None:
            self._state.approvers[self.session_id] = entry.plan.wish.approve
        if request.asked.get("withheld"):
            self._state.secret_options[snapshot_id] = storable_options(entry.plan.wish)
        with self._state.lifetime.cancel_after_end(entry.plan.clocks.of("close")):
            stored = await self._state.store.snapshot(snapshot_id)
            return msgspec.json.decode(stored.body, type=Snapshot)
        raise StoreTimeout("the store")

    def _require_pausable(self) -> None:
        entry = self._entry
        if entry.is_over:
            raise NotPausable(self.id, f"it is {entry.run.status}")
        if entry.pause is not None:
            raise NotPausable(self.id, "it is being paused already")
        tree = self._state.providers[entry.run.provider]
        if tree.capabilities_for(entry.spec.options).resume is UNSUPPORTED:
            raise NotPausable(self.id, f"{tree.name} cannot resume")
        if entry.run.provider_session_id is None:
            raise NotPausable(self.id, "the provider has not named its session yet")

    async def leave(self, *, early: bool) -> None:
        """Leave the block of the run: cancel the run if it is not over, and wait for its end.

        Args:
            early: Whether an exception leaves the block.
        """
        entry = self._entry
        if not entry.is_over:
            detail = "its block was left by an exception" if early else "its block was left"
            entry.end(StopReason(cause=EndCause.CALLER, detail=detail))
        if not entry.ended.is_set():  # usually it is
            await wait_until_ended(entry)
        if not early:  # else the exception of the block propagates, and no cancellation replaces it
            await trio.lowlevel.checkpoint_if_cancelled()


class SessionHandle:
    """The handle of one session: a conversation with one provider."""

    __slots__ = (
        "_approve",
        "_budget",
        "_clocks",
        "_reopens",
        "_session",
        "_state",
        "_supervisor",
        "_unstored",
    )

    def __init__(
        self,
        manager_state: ManagerState,
        supervisor: SessionSupervisor,
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
        self._state: Final = manager_state
        self._supervisor: Final = supervisor
        self._session: Final = session
        self._clocks: Final = clocks
        self._budget: Final = budget
        self._approve: Final = approve

    def __repr__(self) -> str:
        return f"<session {self.id} with {self.provider}>"

    @property
    def id(self) -> str:
        """The id of the session."""
        return self._session.id

    @property
    def provider(self) -> str:
        """The name of the session's provider."""
        return self._session.provider

    @property
    def cwd(self) -> str:
        """The directory of the session."""
        return self._session.cwd

    def start(self, prompt: str, **wishes: Unpack[RunArguments]) -> RunBlock:
        """Start a run that ends with a block; see `RunArguments` for the arguments.

        `async with session.start("…") as run:` ends the run if the block is left before the run is
        over. Refusals are raised when the block is entered; then nothing was started or stored.

        Args:
            prompt: The prompt, which must not be empty.
            wishes: Any of the fields of `RunArguments`: `system_prompt`, `images`, `model`,
                `permission_mode`, `options`, `require`, `prefer`, `require_native`, `schema`,
                `max_turns`, `effort`, `tools_allowed`, `tools_denied`, `directories`, `budget`,
                `clocks`, `env`, `approve`, `metadata`. The session supplies what is omitted.

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
        """Start a run that the manager owns: it continues until it is over or cancelled.

        Args:
            prompt: The prompt, which must not be empty.
            wishes: The same as those of `start`.

        Raises:
            StartRefused: Nothing was started.
            InboxFull: Thousands of runs of this session are queued.
        """
        return await self.admit(request_of_arguments("submit", prompt, wishes))

    def check(self, wish: RunRequest) -> RunGrant:
        """Return the grant of a run, without starting or storing anything.

        Args:
            wish: The request of the run.

        Raises:
            StartRefused: The run would be refused, could never succeed, or its provider is not
            installed or not logged in.
            EnvironmentVariableInvalid: A child may not get a variable.
        """
        self._state.require_own_trio_run()
        wish = msgspec.structs.replace(wish, session_budget=self._budget)
        grant = run_grant(self._state, self._session, wish)
        health = run_readiness(self._state, self._session, wish)
        if health.state != "ok":
            raise ProviderNotReady(self.provider, health.detail)
        return grant

    async def admit(self, wish: RunRequest) -> RunHandle:
        """Check a request and admit the run; it starts when the runs before it are over.

        Args:
            wish: The request of the run.

        Raises:
            StartRefused: Nothing was started.
        """
        self._state.require_own_trio_run()
        wish = msgspec.structs.replace(
            wish,
            clocks=wish.clocks.over(self._clocks),
            approve=wish.approve or self._approve,
            session_budget=self._budget,
        )
        plan = plan_run(self._state, self._session, wish)
        await self._supervisor.start_branch(self.provider)
        return await self._admit(plan)

    async def follow_up(self, after: RunState, content: str) -> RunHandle:
        """Queue a message as a run of its own, with the permissions of the run before it.

        Args:
            after: The state of the run before.
            content: The message.

        Raises:
            StartRefused: The manager or the provider is not available any more.
        """
        if not self._state.open:
            raise ManagerClosing
        await self._supervisor.start_branch(self.provider)
        spec = msgspec.structs.replace(after.spec, prompt=content, provider_session_id=None)
        plan = msgspec.structs.replace(after.plan, spec=spec, negotiation=after.negotiation)
        return await self._admit(plan, follow_up=True)

    async def _admit(self, plan: RunPlan, *, follow_up: bool = False) -> RunHandle:
        entry = await admit_run(
            self._state,
            lambda: self._supervisor.live_session(self._session),
            plan,
            session_id=self.id,
            reopens=self._reopens,
            follow_up=follow_up,
        )
        return RunHandle(self._state, entry, self)

    def unended(self) -> list[RunHandle]:
        """Return the session's runs that are active or queued, in their order."""
        live = self._state.live_sessions.get(self.id)
        entries = list(live.runs.values()) if live else []
        return [RunHandle(self._state, each, self) for each in entries if not each.is_over]

    async def cancel(self, detail: str | None = None) -> None:
        """Begin to end the active and all queued runs.

        Args:
            detail: The reason, for the record; by default none.
        """
        self._state.require_own_trio_run()
        stop = StopReason.worded(EndCause.CALLER, detail)
        await trio.lowlevel.checkpoint()
        live = self._state.live_sessions.get(self.id)
        for entry in list(live.runs.values()) if live else []:
            entry.end(stop)

    def release(self) -> None:
        """Release the provider's idle resources of the session, because no run is expected soon.

        The session stays open. A later run starts what it needs, and another manager may take over
        the session.
        """
        self._state.require_own_trio_run()
        live = self._state.live_sessions.get(self.id)
        if live is None:
            self._state.release_asleep(self._session)
            return
        live.sleeps_when_idle = True
        live.commands.sleep_if_idle()

    async def close(self) -> None:
        """Accept no more runs, and close the session when its active and queued runs are over."""
        self._state.require_own_trio_run()
        live = await self._supervisor.live_session(self._session)
        live.closing = True
        if not live.stored and not live.is_busy:
            if self._unstored is not None:  # no other task has it
                self._unstored.closed = True
                self._unstored.known.set()
            live.wake_waiters()
            return
        written = LazyEvent()
        live.commands.close_session(written)
        live.add_waiter(written)
        await written.wait()


class RunBlock:
    """A block around a run; it starts and ends with the block."""

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
        """End the run if it is not over, and wait for its end."""
        assert self._run is not None
        # `leave` shields and bounds its waits.
        await self._run.leave(early=exc is not None)  # noqa: ASYNC102
