"""What all supervisors are: an `async with` block, or a child of another supervisor.

The strategy: whichever of the two it is, one task (`run`) holds the nursery in which the
children live, and does nothing but wait to be woken. As a block, that task and the user's
body are neighbours in an outer nursery:

- an outer cancel ends the body first; the children serve it until it has ended, and only
  then are they stopped. The cancel cannot reach them past us.
- giving up, and auto_shutdown, stop the children and then cancel the body. Giving up leaves
  the block as one bare exception; only if the body fails as well do both leave, as a group.
"""

from __future__ import annotations

import contextvars
import math
from abc import ABC, abstractmethod
from collections import deque
from typing import TYPE_CHECKING, Self, TypeVar, cast, overload

import trio
from trio.lowlevel import Abort, enable_ki_protection, reschedule, wait_task_rescheduled

from sessionmgr.errors import (
    OtpError,
    RestartIntensityExceeded,
    StartFailed,
    SupervisorNotRunning,
    SupervisorStopping,
    UnknownChild,
)
from sessionmgr.otp import report
from sessionmgr.otp.current import CURRENT
from sessionmgr.otp.deadlines import DeadlineTable
from sessionmgr.otp.exit import SHUTDOWN, Crashed, cause_of
from sessionmgr.otp.life import Life, live
from sessionmgr.otp.spec import ChildSpec
from sessionmgr.otp.statistics import ChildCounts, SupervisorStatistics
from sessionmgr.otp.tree import Branch, draw, leaf_text, supervisor_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType

    from sessionmgr.otp.actor import Actor
    from sessionmgr.otp.ref import Ref
    from sessionmgr.otp.statistics import ChildRow

A = TypeVar("A", bound="Actor")


class Block(ABC):
    """A supervisor, whatever its rules: the nursery, the block, the questions about it."""

    def __init__(self, name: str | None) -> None:
        self.given_name = name
        self._life: Life | None = None
        self._nursery: trio.Nursery | None = None
        self._context = contextvars.copy_context()
        # Exits, orders and due restarts, in the order in which they came.
        self._inbox: deque[object] = deque()
        self._restarts = 0
        self._root: _Root | None = None
        self._deadlines: DeadlineTable | None = None

    def __repr__(self) -> str:
        state = "not running" if self._life is None else self._life.state
        return f"<{type(self).__name__} {self.name}: {state}>"

    @property
    def name(self) -> str:
        """The path from the root supervisor to this one; before it runs, what it is called."""
        if self._life is not None:
            return self._life.name
        return self.given_name or _snake_case(type(self).__name__)

    @property
    def deadlines(self) -> DeadlineTable:
        """The timeouts of calls into this tree."""
        assert self._deadlines is not None
        return self._deadlines

    # As a block.

    @enable_ki_protection
    async def __aenter__(self) -> Self:
        self._refuse_second_use()
        self._root = _Root(self)
        await self._root.enter()
        return self

    @enable_ki_protection
    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        assert self._root is not None
        # Shielded in there, and bounded by the `shutdown` times.
        return await self._root.leave(error)  # noqa: ASYNC102

    # As a child.

    async def run(self, life: Life) -> None:
        """Bring the children up, look after them, and stop them: the whole life."""
        self._refuse_second_use()
        self._life = life
        self._deadlines = life.owner.deadlines
        # Children see the context of their supervisor, not of whoever asked for them.
        self._context = contextvars.copy_context()
        self._context.run(CURRENT.set, None)
        self._inbox.clear()
        self._restarts = 0
        failure: OtpError | None = None
        try:
            async with trio.open_nursery() as self._nursery:
                try:
                    await self._start_children()
                    if life.verdict is None:
                        life.mark_ready()
                        await self._supervise()
                except (StartFailed, RestartIntensityExceeded) as error:
                    failure = error
                finally:
                    # Whyever it ends: from now on nobody may come in.
                    life.verdict = life.verdict or SHUTDOWN
                    with trio.CancelScope(shield=True):
                        await self._stop_everything()
        except BaseExceptionGroup as group:
            # Children let nothing out but KeyboardInterrupt and its like.
            raise bare(group) from None
        finally:
            self._turn_everybody_away()
            self._life = self._nursery = None
        if failure is not None:
            raise failure

    @enable_ki_protection
    async def _stop_everything(self) -> None:
        try:
            await self._stop_children()
        finally:
            # Should that have been interrupted: nobody may be forgotten, or the nursery
            # would wait for ever.
            for life in self._lives():
                life.kill()
            self._turn_everybody_away()

    def _turn_everybody_away(self) -> None:
        for item in self._inbox:
            self._turn_away(item)
        self._inbox.clear()

    @abstractmethod
    def _turn_away(self, item: object) -> None:
        """Deal with what came into the inbox too late."""

    @abstractmethod
    async def _start_children(self) -> None: ...

    @abstractmethod
    async def _supervise(self) -> None: ...

    @abstractmethod
    async def _stop_children(self) -> None: ...

    @abstractmethod
    def _lives(self) -> Sequence[Life]:
        """The children which have not ended, in start order."""

    # What children say.

    def child_ready(self, life: Life) -> None:
        """Hear that a child is up."""
        self._wake()

    def child_exited(self, life: Life) -> None:
        """Hear that a child has ended."""
        if isinstance(life.reason, Crashed) and life.ready:
            report.child_crashed(life, life.reason)
        if life.interrupted:
            self._end_interrupted()
        else:
            self._inbox.append(life)
            self._wake()

    # For the kinds of supervisors.

    @property
    def _me(self) -> Life:
        assert self._life is not None
        return self._life

    def _end_interrupted(self) -> None:
        """Begin to stop: the nursery is about to hear of a KeyboardInterrupt or its like."""
        self._me.verdict = self._me.verdict or SHUTDOWN
        self._wake()

    @enable_ki_protection
    def _wake(self) -> None:
        if self._life is not None:
            self._life.wake()

    @enable_ki_protection
    async def _pause(self, until: float = math.inf) -> None:
        """Wait to be woken, or until a time has come."""
        assert self._life is not None
        self._life.parked = True
        if until == math.inf:
            await wait_task_rescheduled(self._life.stop_pausing)
        else:
            with trio.move_on_at(until):
                await wait_task_rescheduled(self._life.stop_pausing)

    @enable_ki_protection
    def _spawn(self, life: Life) -> None:
        self._context.run(self._start_task, life)

    @enable_ki_protection
    def _start_task(self, life: Life) -> None:
        assert self._nursery is not None
        self._nursery.start_soon(live, life, name=life.id)

    def _require_alive(self) -> Life:
        """Give the record of this supervisor.

        Raises:
            SupervisorNotRunning: its block has not begun, or has ended.
        """
        if self._life is None:
            raise SupervisorNotRunning(self.name)
        return self._life

    def _require_running(self) -> Life:
        """Give the record of this supervisor while it takes orders.

        Raises:
            SupervisorNotRunning: its block has not begun, or has ended.
            SupervisorStopping: its block ends.
        """
        life = self._require_alive()
        if life.verdict is not None:
            raise SupervisorStopping(self.name)
        return life

    def _refuse_second_use(self) -> None:
        if self._life is not None:
            raise RuntimeError(f"supervisor {self.name!r} is already running: one object, one use")

    # Introspection.

    @abstractmethod
    def which_children(self) -> list[ChildRow]:
        """List the children, in start order."""

    def count_children(self) -> ChildCounts:
        """Count the children: all that are known, those which run, and by kind."""
        rows = self.which_children()
        supervisors = sum(row.kind == "supervisor" for row in rows)
        return ChildCounts(
            specs=len(rows),
            active=sum(row.ref is not None for row in rows),
            supervisors=supervisors,
            workers=len(rows) - supervisors,
        )

    def statistics(self) -> SupervisorStatistics:
        """Say how this supervisor is."""
        life = self._require_alive()
        counts = self.count_children()
        return SupervisorStatistics(
            name=self.name,
            state=life.state,
            age=trio.current_time() - life.born,
            children=counts.specs,
            active=counts.active,
            restarts=self._restarts,
            restarts_in_window=self._restarts_in_window(),
        )

    @abstractmethod
    def _restarts_in_window(self) -> int: ...

    @abstractmethod
    def _find(self, id: str) -> Life | None:
        """Give the living child of that id."""

    @overload
    def ref(self, id: str) -> Ref[Actor]: ...
    @overload
    def ref(self, id: str, actor: type[A]) -> Ref[A]: ...
    def ref(self, id: str, actor: type[A] | None = None) -> Ref[A] | Ref[Actor]:
        """Give the present incarnation of the child `id`; `actor` is its class, for types.

        Raises:
            UnknownChild: there is none, or it does not run at the moment.
            TypeError: it is not an `actor`.
        """
        self._require_running()
        life = self._find(id)
        if life is None:
            raise UnknownChild(self.name, id)
        own = life.spec.actor
        if actor is not None and (own is None or not issubclass(own, actor)):
            raise TypeError(f"{life.name} is {life.spec.label}, not {actor.__name__}")
        return life.ref

    def tree(self, *, limit: int = 50) -> str:
        """Draw this supervisor and all below it as they are now; `print` it.

        Of each supervisor the first `limit` children are shown, the others counted.
        """
        return draw(self.branch(limit))

    def branch(self, limit: int) -> Branch:
        """Give what there is to draw of this supervisor, also when it has just ended."""
        if self._life is None:
            return Branch(text=f"{self.name} ({type(self).__name__})  not running", branches=[])
        rows = self.which_children()
        branches: list[Branch] = []
        for row in rows[:limit]:
            life = None if row.ref is None else row.ref.find()
            below = None if life is None else life.spec.supervisor
            if isinstance(below, Block):
                branches.append(below.branch(limit))
            else:
                branches.append(Branch(text=leaf_text(row), branches=[]))
        if len(rows) > limit:
            branches.append(Branch(text=f"… and {len(rows) - limit} more", branches=[]))
        return Branch(
            text=supervisor_text(type(self).__name__, self.statistics()), branches=branches
        )


class _Root:
    """The outer nursery of a supervisor that is used as a block."""

    name = ""

    def __init__(self, block: Block) -> None:
        self.deadlines = DeadlineTable()
        self._block = block
        self._manager = trio.open_nursery()
        self._nursery: trio.Nursery | None = None
        self._entering: trio.lowlevel.Task | None = None
        self._leaving = False
        spec: ChildSpec[Actor] = ChildSpec(
            kind="supervisor",
            target=block.run,
            label=block.name,
            body=block.run,
            supervisor=block,
        )
        self._life = Life(spec, block.name, self)

    @enable_ki_protection
    async def enter(self) -> None:
        """Start the supervisor and wait until it is up."""
        self._nursery = await self._manager.__aenter__()
        try:
            self._nursery.start_soon(self.deadlines.run, name="sessionmgr.otp deadlines")
            self._nursery.start_soon(live, self._life)
            self._entering = trio.lowlevel.current_task()
            await wait_task_rescheduled(self._stop_waiting)
        except BaseException as error:  # noqa: ASYNC103  # `leave` says whether it goes on
            if not await self.leave(error):  # noqa: ASYNC102  # shielded in there
                raise
        else:
            if self._life.reason is None:
                return
        # It ended before it was up.
        await self.leave(None)

    def child_ready(self, life: Life) -> None:
        """Hear that the supervisor is up."""
        self._let_in()

    def child_exited(self, life: Life) -> None:
        """Hear that the supervisor has ended: so must the body."""
        self._let_in()
        # A body that has ended is not cancelled: trio would copy the group that it may raise.
        if not self._leaving and self._nursery is not None:
            self._nursery.cancel_scope.cancel()

    def _let_in(self) -> None:
        task, self._entering = self._entering, None
        if task is not None:
            reschedule(task)

    def _stop_waiting(self, _raise_cancel: Callable[[], None]) -> Abort:
        self._entering = None
        return Abort.SUCCEEDED

    @enable_ki_protection
    async def leave(self, error: BaseException | None) -> bool:
        """Stop the supervisor, and say whether the body's `error` goes no further."""
        self._leaving = True
        outcome = error
        try:
            with trio.CancelScope(shield=True):
                self._life.ask_to_stop(SHUTDOWN)
                await self._life.ended()
        except BaseException as interruption:  # noqa: ASYNC103, BLE001  # it leaves below
            # A second Ctrl-C: no more grace. The nursery below still waits for everyone.
            outcome = interruption
            self._life.kill()
        self.deadlines.close()
        outcome = await self._close_nursery(outcome)
        failure = cause_of(self._life.reason) if self._life.reason is not None else None
        if isinstance(failure, Exception):
            outcome = _with_failure(outcome, failure)
        if outcome is None or outcome is error:
            return outcome is None
        raise outcome

    async def _close_nursery(self, outcome: BaseException | None) -> BaseException | None:
        # Only a cancel is the nursery's business. Other errors pass it by: it would copy the
        # groups among them.
        own = None if outcome is None or _is_cancelled(outcome) else outcome
        given = outcome if own is None else None
        try:
            if await self._manager.__aexit__(None if given is None else type(given), given, None):
                given = None
        except BaseExceptionGroup as group:
            given = bare(group)
        if own is None or given is None or _is_cancelled(given):
            return given if own is None else own
        return BaseExceptionGroup("a supervisor was interrupted, and its body failed", [given, own])


def _is_cancelled(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        return group.subgroup(trio.Cancelled) is not None
    return isinstance(error, trio.Cancelled)


def _with_failure(outcome: BaseException | None, failure: Exception) -> BaseException:
    """Say what leaves the block of a supervisor that has given up."""
    if outcome is None or isinstance(outcome, trio.Cancelled):
        # A body that was cancelled has not failed.
        return failure
    if isinstance(outcome, Exception):
        return ExceptionGroup("a supervisor gave up, and its body failed", [failure, outcome])
    # Ctrl-C and the like: nobody looks for them in a group. Giving up is in the log.
    return outcome


def bare(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Take the nursery's wrapping off, where it wraps one exception only.

    A cancel beside something worse is not worth a mention; and if there are several, they
    are all the same.
    """
    cancelled, rest = group.split(trio.Cancelled)
    # A split makes copies of groups within groups, so only where there is something to split.
    kept = group if cancelled is None or rest is None else rest
    if rest is None or len(kept.exceptions) == 1:
        return kept.exceptions[0]
    return kept


def _snake_case(name: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")
