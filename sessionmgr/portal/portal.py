"""The portal: a manager in a thread of its own, used through blocking calls and futures."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar, Unpack

import trio

from sessionmgr.manager import (
    SESSION_ARGUMENTS,
    ArgumentTypeInvalid,
    open_manager,
    request_of_arguments,
    require_arguments,
)
from sessionmgr.portal.approver import approver
from sessionmgr.portal.batch import PortalBatch
from sessionmgr.portal.loop_thread import LoopThread
from sessionmgr.portal.run import PortalRun

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from concurrent.futures import Future
    from pathlib import Path
    from types import TracebackType
    from typing import Self

    from sessionmgr.adapter import Approve, Budget, ProviderAdapter
    from sessionmgr.batch import BatchOptions, Jobs
    from sessionmgr.manager import Clocks, CommonWishes, Manager, RunArguments, RunHandle
    from sessionmgr.model import RunResult
    from sessionmgr.portal.approver import ApprovalQueue, CallApprove, PortalApprove
    from sessionmgr.process import Launcher
    from sessionmgr.store import Store

T = TypeVar("T")


class Portal:
    """An open portal; `open_portal` returns it. Any thread may use it.

    Methods that start with `submit` return a `concurrent.futures.Future` and never block. The other
    methods block the calling thread, and raise `PortalDeadlock` in the portal's own thread, where
    callbacks of futures run. All methods raise `PortalClosed` after the end of the block.
    """

    def __init__(self, loop: LoopThread, call_approve: CallApprove | None) -> None:
        self._loop: Final = loop
        self._call_approve: Final = call_approve

    # --- the block -------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        """Return the portal; the end of the block closes it."""
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the portal. An exception of the block takes precedence over one of the manager."""
        try:
            self.close()
        except Exception:
            if exc is None:
                raise

    def close(self) -> None:
        """End all runs, their processes and the thread, and wait for that.

        Calls that wait in other threads raise `PortalClosed`, and so do pending futures. A second
        call does nothing. Portals that are still open when the program ends are closed then.

        Raises:
            PortalDeadlock: A callback in the portal's own thread calls.
            ManagerDown: The manager stopped after repeated crashes; `__cause__` is the reason.

        >>> portal = open_portal()
        >>> portal.ask("shell", "printf hello").text
        'hello'
        >>> portal.close()
        """
        self._loop.close()

    # --- runs ------------------------------------------------------------------------------------

    def ask(
        self,
        provider: str,
        prompt: str,
        *,
        cwd: str | Path = ".",
        approve: PortalApprove | None = None,
        **wishes: Unpack[CommonWishes],
    ) -> RunResult:
        """Start a run, wait for its end, and return its result. A failed run raises nothing.

        The run is cancelled if the call is interrupted, for example by Ctrl-C. See `start` for the
        parameters and errors; a time limit is `clocks=Clocks(deadline=60)`.

        >>> with open_portal() as portal:
        ...     portal.ask("shell", "printf hello").text
        'hello'
        """
        run = self._start("ask", provider, prompt, cwd, approve, wishes)
        try:
            result = run.result()
        except BaseException:
            run.cancel("its call was interrupted")
            raise
        self._loop.call_soon(run.handle.session.release)
        return result

    def start(
        self,
        provider: str,
        prompt: str,
        *,
        cwd: str | Path = ".",
        approve: PortalApprove | None = None,
        **wishes: Unpack[CommonWishes],
    ) -> PortalRun:
        """Start a run in a new session, and return it as soon as it is admitted and stored.

        Args:
            provider: The name of the provider, such as `claude`, `codex` or `shell`.
            prompt: The text for the agent; for `shell`, the command.
            cwd: The directory in which the agent works. The default is the current directory.
            approve: A function that answers the agent's requests with `Allow()` or `Deny()`. The
                thread that waits for the run, in `result`, iteration or `ask`, calls it; with the
                hook `call_approve` of `open_portal` the hook does. A request without an answer is
                denied after the `approval` clock (120 s by default). The default is None: every
                request is denied.
            **wishes: All other fields of a run: `model`, `permission_mode`, `options`, `clocks`,
                `budget`, `schema`, `system_prompt`, `tools_allowed`, `env`, `metadata` and the
                others of `CommonWishes`. The session has no defaults of its own.

        Raises:
            StartRefused: The run was refused, and nothing was started; its kinds say why.
            ArgumentTypeInvalid: An argument has a wrong type.
            ArgumentValueInvalid: An argument has an invalid value.
            PortalClosed: The portal is closed.
            PortalDeadlock: A callback in the portal's own thread calls.

        >>> with open_portal() as portal:
        ...     run = portal.start("shell", "printf hello")
        ...     "message_received" in [event.type for event in run]
        True
        """
        return self._start("start", provider, prompt, cwd, approve, wishes)

    def _start(
        self,
        call: str,
        provider: str,
        prompt: str,
        cwd: str | Path,
        approve: PortalApprove | None,
        wishes: CommonWishes,
    ) -> PortalRun:
        self._loop.require_other_thread(call)
        asking, queue = approver(call, approve, self._call_approve, waits=True)
        future = self._submit_start(call, provider, prompt, cwd, asking, queue, wishes)
        return self._loop.wait(call, future)

    def submit(
        self,
        provider: str,
        prompt: str,
        *,
        cwd: str | Path = ".",
        approve: PortalApprove | None = None,
        **wishes: Unpack[CommonWishes],
    ) -> Future[RunResult]:
        """Start a run, and return the future of its result.

        `asyncio.wrap_future` awaits it. Cancelling the future, or the asyncio task that awaits
        it, cancels the run: the future is cancelled at once, and the run ends within the `close`
        clock (5 s by default). See `start` for the parameters. Refusals are exceptions of the
        future; the call itself raises errors about wrong arguments.

        Raises:
            ArgumentTypeInvalid: An argument has a wrong type.
            ArgumentValueInvalid: An argument has an invalid value; or `approve` is given, and the
                portal has no hook `call_approve`.
            PortalClosed: The portal is closed.

        >>> with open_portal() as portal:
        ...     futures = [portal.submit("shell", f"printf {n}") for n in range(3)]
        ...     [future.result().text for future in futures]
        ['0', '1', '2']
        """
        asking, _ = approver("submit", approve, self._call_approve, waits=False)
        begin = self._beginning("submit", provider, prompt, cwd, asking, wishes)

        async def run() -> RunResult:
            handle = await begin()
            try:
                result = await handle.result()
            except trio.Cancelled:
                if not self._loop.is_closed:  # else the manager ends the run, as all others
                    handle.cancel("its future was cancelled")
                raise
            handle.session.release()
            return result

        return self._loop.submit("submit", run)

    def submit_start(
        self,
        provider: str,
        prompt: str,
        *,
        cwd: str | Path = ".",
        approve: PortalApprove | None = None,
        **wishes: Unpack[CommonWishes],
    ) -> Future[PortalRun]:
        """Start a run as `start` does, and return the future of its handle.

        Cancelling the future before the run is admitted cancels the run.

        Raises:
            ArgumentTypeInvalid: An argument has a wrong type.
            ArgumentValueInvalid: An argument has an invalid value; or `approve` is given, and the
                portal has no hook `call_approve`.
            PortalClosed: The portal is closed.

        >>> with open_portal() as portal:
        ...     portal.submit_start("shell", "printf hello").result().result().text
        'hello'
        """
        asking, _ = approver("submit_start", approve, self._call_approve, waits=False)
        return self._submit_start("submit_start", provider, prompt, cwd, asking, None, wishes)

    # --- the rest --------------------------------------------------------------------------------

    def run_batch(
        self,
        jobs: Jobs,
        *,
        out: str | Path | None = None,
        approve: PortalApprove | None = None,
        **how: Unpack[BatchOptions],
    ) -> PortalBatch:
        """Return a batch of jobs, for use as a block and an iterator of results.

        Args:
            jobs: The path of a file of jobs, or `Job`s.
            out: The directory of the batch. The same call again continues the batch. The default
                is None: nothing is stored beside the portal's store.
            approve: As for `start`. The thread that iterates over the results calls it.
            **how: The settings of `sessionmgr.run_batch`, such as `concurrency` and `retries`.

        Raises:
            TypeError: A setting is unknown, or an argument has a wrong type.
            ValueError: A setting has an invalid value.

        >>> jobs = [Job(id=f"job-{n}", prompt=f"printf {n}", provider="shell") for n in range(3)]
        >>> with open_portal() as portal, portal.run_batch(jobs) as results:
        ...     sorted(result.text for result in results)
        ['0', '1', '2']
        """
        asking, queue = approver("run_batch", approve, self._call_approve, waits=True)
        return PortalBatch(self._loop, queue, jobs, out, asking, how)

    def call(self, function: Callable[[Manager], Awaitable[T]]) -> T:
        """Call an async function with the manager in the portal's loop, and return its result.

        Use it for everything that the portal has no method for.

        Args:
            function: An async function of trio; it must not block.

        Raises:
            PortalClosed: The portal is closed, or was closed meanwhile.
            PortalDeadlock: A callback in the portal's own thread calls.

        >>> with open_portal() as portal:
        ...     portal.call(lambda manager: manager.sessions())
        []
        """
        return self._loop.call("call", partial(function, self._loop.manager))

    def submit_call(self, function: Callable[[Manager], Awaitable[T]]) -> Future[T]:
        """Call an async function as `call` does, and return its future.

        Cancelling the future cancels the function.

        Args:
            function: An async function of trio; it must not block.

        Raises:
            PortalClosed: The portal is closed.
        """
        return self._loop.submit("submit_call", partial(function, self._loop.manager))

    # --- within ----------------------------------------------------------------------------------

    def _submit_start(
        self,
        call: str,
        provider: str,
        prompt: str,
        cwd: str | Path,
        approve: Approve | None,
        queue: ApprovalQueue | None,
        wishes: CommonWishes,
    ) -> Future[PortalRun]:
        begin = self._beginning(call, provider, prompt, cwd, approve, wishes)

        async def start() -> PortalRun:
            return PortalRun(self._loop, await begin(), queue)

        return self._loop.submit(call, start, undelivered=PortalRun.cancel)

    def _beginning(
        self,
        call: str,
        provider: str,
        prompt: str,
        cwd: str | Path,
        approve: Approve | None,
        wishes: CommonWishes,
    ) -> Callable[[], Awaitable[RunHandle]]:
        """Check the arguments of a run, and return what starts it in the loop."""
        require_arguments(call, SESSION_ARGUMENTS, {"provider": provider, "cwd": cwd})
        whole: RunArguments = {**wishes, "approve": approve}
        wish = request_of_arguments(call, prompt, whole)

        async def begin() -> RunHandle:
            session = await self._loop.manager.open_session(provider, cwd=cwd)
            return await session.admit(wish)

        return begin


def open_portal(
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
    call_approve: CallApprove | None = None,
) -> Portal:
    """Open a manager in a thread of its own, for programs that do not run on trio.

    The portal is open when this returns. Use it as a block, or call `close`: both end all runs,
    processes and the thread.

    Args:
        store: The path of a SQLite file, or a store of your own. The default is None: a store in
            memory, which is lost at the end.
        adapters: Adapters by name; they come before the installed ones. The default is none.
        agents: A registry file of agents, which adds the providers `acp:ID`. The default is none.
        clocks: The time limits of all runs. The default is `Clocks()`.
        budget: The budget for all runs together. The default is None: no limit.
        launcher: The launcher of child processes. The default is None: that of the system.
        environ: The variables from which the environments of children are built. The default is
            None: `os.environ` as it is now.
        now: The wall clock, for simulations. The default is `time.time`.
        bits: The source of ids, for simulations. The default is None: `secrets.randbits`.
        call_approve: A hook that calls approve functions in a loop of the program. It gets a
            coroutine function and its argument, must not block, and returns a
            `concurrent.futures.Future` of the answer; in asyncio: `lambda function, request:
            asyncio.run_coroutine_threadsafe(function(request), loop)`. Then `approve` may be a
            plain or a coroutine function. The default is None: the thread that waits for a run
            calls its approve function, which must be a plain one.

    Raises:
        TypeError: An argument has a wrong type.
        ValueError: An argument has an invalid value.
        ManagerDown: The manager does not start; `__cause__` is the reason.
        StoreError: The store cannot be used.

    >>> with open_portal() as portal:
    ...     portal.ask("shell", "printf hello").text
    'hello'
    """
    _require_hook(call_approve)
    manager = open_manager(
        store=store,
        adapters=adapters,
        agents=agents,
        clocks=clocks,
        budget=budget,
        launcher=launcher,
        environ=environ,
        now=now,
        bits=bits,
    )
    loop = LoopThread(manager)
    loop.start()
    return Portal(loop, call_approve)


def _require_hook(hook: object) -> None:
    if hook is not None and not callable(hook):
        wanted = "a function that takes a coroutine function and a request, and returns a Future"
        raise ArgumentTypeInvalid("open_portal", "call_approve", hook, wanted)
