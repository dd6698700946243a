"""The session manager: its public methods, and the functions that open one."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, Unpack, cast

import trio

from sessionmgr.adapter import Budget, StopReason
from sessionmgr.manager.argument_checks import (
    MANAGER_ARGUMENTS,
    MESSAGES,
    RECORDS,
    SESSION_ARGUMENTS,
    checked_run_arguments,
    request_of_arguments,
    require_arguments,
)
from sessionmgr.manager.clocks import Clocks
from sessionmgr.manager.end_spool import EndSpool
from sessionmgr.manager.errors import NotResumable
from sessionmgr.manager.handles import RunBlock, SessionHandle
from sessionmgr.manager.lazy_launcher import LazyLauncher
from sessionmgr.manager.manager_state import ManagerState, UnstoredSession
from sessionmgr.manager.owner import ManagerOwner
from sessionmgr.manager.provider_queries import ProviderQueries
from sessionmgr.manager.reconciler import Reconciler
from sessionmgr.manager.request_server import RequestServer
from sessionmgr.manager.resume import (
    decode_snapshot,
    follow_up_request,
    recorded_resume_spec,
    resume_request,
)
from sessionmgr.manager.resume_spec import session_budget, session_clocks, set_fields
from sessionmgr.manager.run_plan import RunArguments
from sessionmgr.manager.run_planner import absolute_path, parse_permission_mode
from sessionmgr.manager.run_records import fold_run
from sessionmgr.manager.session_supervisor import SessionSupervisor
from sessionmgr.manager.store_queries import StoreQueries, decode_session
from sessionmgr.manager.supervision_tree import StoreChild, SupervisionTree
from sessionmgr.model import (
    EndCause,
    IdKind,
    PermissionMode,
    RunResult,
    Session,
    Snapshot,
    decode_run,
    new_id,
)
from sessionmgr.store import IdTaken, LeaseHeld, StoreTimeout, UnknownId

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType
    from typing import Self

    from sessionmgr.adapter import Approve, ProviderAdapter
    from sessionmgr.manager.handles import RunHandle
    from sessionmgr.manager.status import ManagerStatus
    from sessionmgr.model import Json, PermissionModeName
    from sessionmgr.process import Launcher
    from sessionmgr.store import Store


class Manager(ProviderQueries, StoreQueries):
    """The session manager. It runs sessions while its block lasts."""

    def __init__(self, manager_state: ManagerState, store: StoreChild, spool: EndSpool) -> None:
        self._state = manager_state
        self._reconciler: Final = Reconciler(manager_state, spool)
        self._supervisor = SessionSupervisor(manager_state, self._reconciler)
        self._request_server: Final = RequestServer(
            manager_state, lambda entry: self._handle(entry.session_state.session)
        )
        self._tree: Final = SupervisionTree(
            manager_state, store, self._reconciler, self._supervisor, self._request_server
        )

    # --- the block -------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        """Start the supervision tree.

        Raises:
            NotInTrio: The caller is not a trio task.
            ManagerDown: The tree does not start; `__cause__` is the reason.
        """
        self._state.require_own_trio_run()
        self._state.token = trio.lowlevel.current_trio_token()
        await self._tree.open()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        """Close the gate, end all runs, and stop the tree."""
        return await self._tree.close(exc_type, exc, traceback)  # noqa: ASYNC102

    @property
    def token(self) -> trio.lowlevel.TrioToken:
        """The token with which other threads reach the manager through `trio.from_thread`."""
        assert self._state.token is not None
        return self._state.token

    # --- public methods --------------------------------------------------------------------------

    def new_id(self, kind: IdKind) -> str:
        """Make an id.

        Args:
            kind: The kind of record that the id is for.
        """
        return self._state.new_id(kind)

    def now(self) -> float:
        """Return the wall clock's time, in seconds since 1970."""
        return self._state.milliseconds() / 1000

    def chance(self) -> float:
        """Return a random number from 0 to 1, from `bits` if they were given."""
        return self._state.random()

    async def open_session(
        self,
        provider: str,
        *,
        cwd: str | Path = ".",
        permission_mode: PermissionMode | PermissionModeName = PermissionMode.DEFAULT,
        model: str | None = None,
        clocks: Clocks | None = None,
        budget: Budget | None = None,
        approve: Approve | None = None,
        metadata: Mapping[str, object] | None = None,
        session_id: str | None = None,
    ) -> SessionHandle:
        """Open a session; it is stored with its first run.

        Args:
            provider: The name of an installed provider, such as "claude" or "codex".
            cwd: The directory in which the agent works; by default the current one.
            permission_mode: What the agent may do without asking: "default", "accept_edits",
                "plan", "full_auto" or "dangerously_skip_permissions".
            model: The model; by default the provider's own choice.
            clocks: Time limits of its runs, before those of the manager.
            budget: A limit on the usage of all its runs together; by default there is none.
            approve: The async function that answers the agent's requests; without one they are
                denied.
            metadata: JSON of the caller's own, stored with the session.
            session_id: An id made by `new_id`, for callers that must store it before.

        Raises:
            ProviderUnknown: The provider does not exist.
            IdTaken: Another session has this id.
            TypeError: An argument has a wrong type.
            ValueError: An argument has an invalid value.
            ManagerClosing: The manager's block has not begun or has ended.
        """
        given = {
            "provider": provider,
            "cwd": cwd,
            "permission_mode": permission_mode,
            "model": model,
            "clocks": clocks,
            "budget": budget,
            "approve": approve,
            "metadata": metadata,
            "session_id": session_id,
        }
        require_arguments("open_session", SESSION_ARGUMENTS, given)
        self._state.require_open("open_session")
        await trio.lowlevel.checkpoint_if_cancelled()
        self._supervisor.require_provider(provider)
        if session_id is not None and session_id not in self._state.fresh:
            await self._require_free(session_id)
        session = Session(
            id=session_id or self._state.new_id(IdKind.SESSION),
            provider=provider,
            cwd=absolute_path(cwd),
            permission_mode=parse_permission_mode(permission_mode),
            model=model,
            clocks={} if clocks is None else set_fields(clocks),
            budget={} if budget is None else set_fields(budget),
            created_at=self._state.timestamp(),
            metadata=cast("dict[str, Json]", dict(metadata or {})),
        )
        unstored = self._state.opened[session.id] = UnstoredSession()
        return self._handle(session, approve=approve, unstored=unstored)

    async def ask(
        self, provider: str, prompt: str, *, cwd: str | Path = ".", **wishes: Unpack[RunArguments]
    ) -> RunResult:
        """Run one prompt in a new session, and return the result.

        The session stays open for follow-ups (`result.session_id`), without the agent's process.
        If the caller is cancelled, the run is cancelled, too.

        Args:
            provider: The name of an installed provider, such as "claude" or "codex".
            prompt: The prompt, which must not be empty.
            cwd: The directory in which the agent works; by default the current one.
            wishes: The arguments of `SessionHandle.start`. `permission_mode`, `model`, `approve`
                and `metadata` are also those of the session.

        Raises:
            StartRefused: The provider cannot run it, or not in this way.
            TypeError: An argument has a wrong type or an unknown name.
            ValueError: An argument has an invalid value.

        Example:
            ```python
            async def review(manager: Manager) -> str:
                result = await manager.ask("codex", "Review the last commit", cwd="web")
                return result.text
            ```
        """
        require_arguments("ask", SESSION_ARGUMENTS, {"provider": provider, "cwd": cwd})
        wish = request_of_arguments("ask", prompt, wishes)
        session = await self.open_session(
            provider,
            cwd=cwd,
            permission_mode=parse_permission_mode(wish.permission_mode or PermissionMode.DEFAULT),
            model=wish.model,
            approve=wish.approve,
            metadata=wish.metadata,
        )
        try:
            async with RunBlock(session, wish) as run:
                return await run.result()
        finally:
            session.release()

    async def _require_free(self, session_id: str) -> None:
        manager_state = self._state
        is_ours = session_id in manager_state.opened or manager_state.is_owned(session_id)
        try:
            if not is_ours:
                await manager_state.store.session(session_id)
        except UnknownId:
            return
        raise IdTaken("session", session_id)

    def _handle(
        self,
        session: Session,
        *,
        clocks: Clocks | None = None,
        budget: Budget | None = None,
        approve: Approve | None = None,
        reopen: bool = False,
        unstored: UnstoredSession | None = None,
    ) -> SessionHandle:
        return SessionHandle(
            self._state,
            self._supervisor,
            session,
            clocks=session_clocks(session)
            if clocks is None
            else clocks.over(session_clocks(session)),
            budget=session_budget(session)
            if budget is None
            else budget.over(session_budget(session)),
            approve=approve,
            reopens=reopen,
            unstored=unstored,
        )

    async def session(
        self,
        session_id: str,
        *,
        clocks: Clocks | None = None,
        budget: Budget | None = None,
        approve: Approve | None = None,
        reopen: bool = False,
    ) -> SessionHandle:
        """Return a handle of a stored session, with the session's clocks and budget.

        Clocks and budgets given here override those, for this handle's runs. The budget covers all
        runs of the session, including those of other managers. With `reopen`, a closed session
        accepts runs of this handle: the first one opens it again.

        Args:
            session_id: The id of the stored session.
            clocks: Time limits that override those of the session, for runs of this handle.
            budget: A budget that overrides that of the session, for runs of this handle.
            approve: The async function that answers the agent's requests; without one they are
                denied.
            reopen: Whether a closed session accepts runs of this handle; by default it does not.

        Raises:
            UnknownId: The session does not exist.
            ProviderUnknown: Its provider is not installed any more.
        """
        given = {"clocks": clocks, "budget": budget, "approve": approve}
        require_arguments("session", RECORDS, {"session_id": session_id})
        require_arguments("session", SESSION_ARGUMENTS, given)
        self._state.require_open("session")
        stored = await self._state.store.session(session_id)
        self._state.fresh.discard(session_id)  # another manager may have used our id
        found = decode_session(stored.body)
        self._supervisor.require_provider(found.provider)
        return self._handle(found, clocks=clocks, budget=budget, approve=approve, reopen=reopen)

    async def resume(
        self, snapshot: Snapshot | str, message: str | None = None, **wishes: Unpack[RunArguments]
    ) -> RunResult:
        """Resume a run that was paused here or elsewhere, and wait for its result.

        See `submit_resume`.

        Args:
            snapshot: The snapshot of the paused run, or its id.
            message: The prompt; by default the snapshot's message, or a request to continue.
            wishes: The arguments of `SessionHandle.start`. By default they are those of the paused
                run.

        Raises:
            NotResumable: A precondition does not hold; the error names it.
            StartRefused: The run cannot be started.
        """
        run = await self.submit_resume(snapshot, message, **wishes)
        return await run.result()

    async def submit_resume(
        self, snapshot: Snapshot | str, message: str | None = None, **wishes: Unpack[RunArguments]
    ) -> RunHandle:
        """Resume a paused run, as a run that the manager owns.

        The new run has the arguments of the paused one (permission, clocks, budget, options, tools,
        ...), except for those in `wishes`. Only images and variables must be passed again, because
        they are not stored; if another manager paused the run, also `approve` and options with
        secrets. Its budget and its deadline count from its start.

        Args:
            snapshot: The snapshot of the paused run, or its id.
            message: The prompt; by default the snapshot's message, or a request to continue.
            wishes: The arguments of `SessionHandle.start`. By default they are those of the paused
                run.

        Raises:
            NotResumable: A precondition does not hold; the error names it.
            StartRefused: The run cannot be started.
        """
        require_arguments("submit_resume", MESSAGES, {"snapshot": snapshot, "message": message})
        wishes = checked_run_arguments("submit_resume", wishes)
        self._state.require_open("submit_resume")
        if isinstance(snapshot, str):
            snapshot = decode_snapshot((await self._state.store.snapshot(snapshot)).body)
        run = decode_run((await self._state.store.run(snapshot.run_id)).body)
        known = self._state.secret_options.get(snapshot.id, {})
        wish = resume_request(snapshot, run, message, wishes, known)
        approve = self._state.approvers.get(snapshot.session_id)
        session = await self.session(snapshot.session_id, approve=approve, reopen=True)
        resumed = await session.admit(wish)
        self._state.approvers.pop(snapshot.session_id, None)
        self._state.secret_options.pop(snapshot.id, None)
        return resumed

    async def submit_follow_up(
        self, run_id: str, message: str | None = None, **wishes: Unpack[RunArguments]
    ) -> RunHandle:
        """Follow up a finished run with a new run of the same session, owned by the manager.

        The followed run may have ended in any way, and its session may be closed: the provider's
        session continues. The new run has the same arguments as the followed one, except for those
        in `wishes`; images, variables and `approve` must be passed again.

        Args:
            run_id: The id of the finished run.
            message: The prompt; by default a request to continue.
            wishes: The arguments of `SessionHandle.start`. By default they are those of the
                finished run.

        Raises:
            UnknownId: The run does not exist.
            NotResumable: A precondition does not hold; the error names it.
            StartRefused: The run cannot start.
        """
        require_arguments("submit_follow_up", MESSAGES, {"run_id": run_id, "message": message})
        wishes = checked_run_arguments("submit_follow_up", wishes)
        self._state.require_open("submit_follow_up")
        store = self._state.store
        session_id = (await store.run(run_id)).session_id
        session = await self.session(session_id, reopen=True)
        with suppress(LeaseHeld):  # the admission of the run reports the holder
            await self._supervisor.reconcile_session(session_id)
        run = await fold_run(store, await store.run(run_id))
        if not self.supports(run.provider, "resume"):
            raise NotResumable(run_id, f"{run.provider} cannot resume a session")
        if run.model is not None and self.supports(run.provider, "model_choice"):
            wishes.setdefault("model", run.model)
        wish = follow_up_request(run, await recorded_resume_spec(store, run), message, wishes)
        session.check(wish)
        return await session.admit(wish)

    async def cancel(self, id: str, *, detail: str | None = None) -> bool:
        """Begin to end a run or all runs of a session; False if none of them is active here.

        Args:
            id: The id of a run or of a session.
            detail: The reason, for the record; by default none.

        Raises:
            UnknownId: Neither the manager nor the store has this id.
            StoreTimeout: The store does not answer the question for the id.
        """
        require_arguments("cancel", RECORDS, {"id": id})
        self._state.require_own_trio_run()
        stop = StopReason.worded(EndCause.CALLER, detail)
        await trio.lowlevel.checkpoint()
        entry = self._state.runs.get(id)
        if entry is not None:
            return entry.end(stop)
        live = self._state.live_sessions.get(id)
        if live is not None:
            ended = [each.end(stop) for each in list(live.runs.values())]
            return any(ended)
        with trio.move_on_after(self._state.clocks.of("store") or float("inf")):
            if await self._state.store.resolve(id) != id:
                raise UnknownId("run", id)
            return False
        raise StoreTimeout("the store")

    async def cancel_all(self, *, detail: str | None = None) -> int:
        """Begin to end all active and queued runs; return their number.

        Args:
            detail: The reason, for the record; by default none.
        """
        self._state.require_own_trio_run()
        stop = StopReason.worded(EndCause.CALLER, detail)
        await trio.lowlevel.checkpoint()
        return sum(entry.end(stop) for entry in list(self._state.runs.values()))

    def status(self) -> ManagerStatus:
        """Return the status of the manager."""
        self._state.require_own_trio_run()
        return self._state.status()

    def tree(self) -> str:
        """Return a drawing of the supervision tree as it is now."""
        return self._tree.draw()


def open_manager(
    *,
    store: Store | str | Path | None = None,
    adapters: Mapping[str, type[ProviderAdapter]] | None = None,
    agents: str | Path | None = None,
    clocks: Clocks | None = None,
    budget: Budget | None = None,
    launcher: Launcher | None = None,
    environ: Mapping[str, str] | None = None,
    now: Callable[[], float] = time.time,
    bits: Callable[[int], int] | None = None,
) -> Manager:
    """Make a session manager, for use as a block.

    While its block lasts, it wraps trio's SIGINT handler, and no other: KeyboardInterrupt is raised
    in the main task, never inside the manager's tasks.

    Args:
        store: The file of the SQLite store, created if missing, or an open store; by default a
            store in memory, which is lost at the end of the block.
        adapters: Adapter classes by their providers' names, which precede the installed ones.
        agents: A registry file of agents, as the registry of the Agent Client Protocol has it; it
            adds the providers `acp:ID`. By default there is none.
        clocks: Time limits of all runs, where sessions and runs set none.
        budget: A limit on the usage of all runs of this manager together; by default there is none.
        launcher: The launcher of child processes; by default the platform's own.
        environ: The variables from which the environments of child processes are built; by default
            those of this process.
        now: The wall clock, for simulations; by default `time.time`.
        bits: The source of the random bits of ids, for simulations; by default the system's.

    Raises:
        TypeError: An argument has a wrong type.
        ValueError: An argument has an invalid value.

    Example:
        ```python
        async def main() -> None:
            async with open_manager(store="agents.db") as manager:
                session = await manager.open_session("shell", permission_mode="full_auto")
                async with session.start("echo hello") as run:
                    async for event in run:
                        if event.type == "message_received":
                            print(event.content)
                    print((await run.result()).status)
        ```
    """
    given = {
        "store": store,
        "clocks": clocks,
        "budget": budget,
        "adapters": adapters,
        "agents": agents,
        "environ": environ,
    }
    require_arguments("open_manager", MANAGER_ARGUMENTS, given)
    store_child = StoreChild(store)
    presence_name = new_id(IdKind.BATCH) if bits is None else new_id(IdKind.BATCH, bits)
    manager_state = ManagerState(
        presence=ManagerOwner(presence_name),
        adapters=adapters or {},
        agents=None if agents is None else Path(absolute_path(agents)),
        clocks=clocks or Clocks(),
        budget=budget or Budget(),
        launcher=LazyLauncher(launcher),
        environ=dict(os.environ if environ is None else environ),
        now=now,
        bits=bits,
    )
    return Manager(manager_state, store_child, EndSpool(store_child.spool_path))
