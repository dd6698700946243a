"""Base class of an adapter that executes each run as one conversation on a leased connection.

It owns the pool of connections and the drivers of the current runs, opens and runs the conversation
of each run, abandons a connection that is not fit for another run, and fails a run whose connection
ended. A subclass implements what a run needs, and how it ends with its turn.

A connection is abandoned when its run was cancelled at the end of its grace, crashed or was silent,
when its child ended, and when `is_fit` returns False. An abandoned connection gets no new runs; its
current runs continue, and it is closed after the last of them, or after ten minutes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, TypeVar
from weakref import WeakSet

from sessionmgr.adapter import KeyedSpec
from sessionmgr.adapter.kit.connection_pool import ConnectionPool
from sessionmgr.adapter.kit.conversation_run import ConversationRun
from sessionmgr.adapter.kit.run_adapter import RunAdapter
from sessionmgr.adapter.kit.run_end import (
    ChildConnection,
    connection_failure,
    process_exit_event,
    start_failure,
)
from sessionmgr.process import ProcessError

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from sessionmgr.adapter import Conversation, RunContext
    from sessionmgr.model import Failure


Spec = TypeVar("Spec", bound=KeyedSpec)
C = TypeVar("C", bound=ChildConnection)
D = TypeVar("D", bound=ConversationRun[Any, Any])

MAX_ATTEMPTS: Final = 3
"""Connections that are tried for a run, if those before have ended before they knew of it."""


class ConversationAdapter(RunAdapter[D], Generic[Spec, C, D]):
    """Base class of adapters that execute runs as conversations on leased connections."""

    max_leases: ClassVar[int] = 1
    """Maximum number of runs that a connection serves at once.

    More than 1 needs a connection that serves several conversations, such as `JsonRpcConnection`.
    """

    def __init__(self) -> None:
        super().__init__()
        self._pool: Final = self.make_pool()
        self._used: Final[WeakSet[C]] = WeakSet()
        """The connections that have served a run."""

    # --- what a subclass implements --------------------------------------------------------------

    @staticmethod
    def connect(spec: Any) -> AbstractAsyncContextManager[Any]:
        """Connect from a `Spec` for the length of a block; tests replace it by a mock SDK.

        It starts the child without waiting for an answer: the connection sends a handshake as a
        request.

        Raises:
            ProcessError: The child could not be started. This becomes the failure of the run; any
                other exception becomes `adapter_crashed`.
        """
        raise NotImplementedError

    def spec(self, run: RunContext) -> Spec:
        """Return the specification of the run's connection.

        A free connection with the same key is used again. The key of a `ConnectionSpec` is its
        command, environment, account and directory.
        """
        raise NotImplementedError

    def make_driver(self, run: RunContext) -> D:
        """Return a new driver for a run. It receives frames from `open` on, and is used once."""
        raise NotImplementedError

    async def open(self, run: RunContext, connection: C, driver: D) -> Conversation[Any]:
        """Open the run's session on a connection: `run.provider_session_id`, or a new one.

        It does not wait for the provider's answer, which is a frame.
        """
        raise NotImplementedError

    async def finish(self, run: RunContext, driver: D) -> None:
        """End a run whose conversation is over: call `run.finish` or `run.fail`.

        It is not called for a cancelled run, nor if the connection ended before the turn did.
        """
        raise NotImplementedError

    def is_fit(self, run: RunContext, driver: D) -> bool:
        """Whether the connection may serve another run after this one.

        It is called only if the base class would keep the connection. Return False if the child
        might still write about this run, or must not be kept.
        """
        return True

    def was_unreached(self, driver: D) -> bool:
        """Whether the connection ended before the agent could know of the run.

        The run is then repeated on another connection, if this one has served other runs: it may
        have been about to end when it was leased.
        """
        return False

    def make_pool(self) -> ConnectionPool[Spec, C]:
        """Return the pool of connections; a `SessionPool` keeps one process for each session."""
        return ConnectionPool(type(self).connect, max_leases=self.max_leases)

    def lost_failure(self, driver: D, connection: C) -> Failure:
        """Return the failure of a run whose connection ended before its turn did."""
        return connection_failure(connection)

    # --- a run -----------------------------------------------------------------------------------

    async def run(self, run: RunContext) -> None:
        """Execute one run as one conversation."""
        attempts = 1
        try:
            while not await self._run_attempt(run, is_last=attempts == MAX_ATTEMPTS):
                attempts += 1
        except ProcessError as error:
            await run.fail(start_failure(error))

    async def _run_attempt(self, run: RunContext, *, is_last: bool) -> bool:
        """Run once and report the end; return False if another connection must be tried."""
        async with self._pool.lease(self.spec(run), run.connections) as lease:
            connection = lease.connection
            was_used = connection in self._used
            self._used.add(connection)
            driver = self.make_driver(run)
            with self.active_runs(run, driver):
                await driver.run_conversation(await self.open(run, connection, driver))
            if driver.is_broken or run.was_silent or not self.is_fit(run, driver):
                lease.abandon()
            is_lost = driver.is_broken and was_used and not is_last and run.cancelling is None
            if is_lost and self.was_unreached(driver):
                return False
            await self._end(run, driver, connection)
            return True

    async def _end(self, run: RunContext, driver: D, connection: C) -> None:
        facts = connection.facts
        if driver.is_broken and facts is not None:
            run.emit_nowait(process_exit_event(facts))
        if run.cancelling is not None:
            return  # the component that stopped the run ends it
        if not driver.is_broken:
            await self.finish(run, driver)
        else:  # exit code 0 is not a success in the middle of a turn
            await run.fail(self.lost_failure(driver, connection))
