"""A task that somebody wants the result of, but whose crash is its own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Generic, TypeVar

from outcome import Error, Outcome, Value
from trio.lowlevel import checkpoint, disable_ki_protection

from sessionmgr.errors import RunCancelled, RunCrashed
from sessionmgr.otp.current import current_life
from sessionmgr.otp.exit import SHUTDOWN, Crashed, ExitReason, cause_of
from sessionmgr.otp.mailbox import Info
from sessionmgr.otp.message import Down, TaskDone

if TYPE_CHECKING:
    from sessionmgr.otp.actor import Actor
    from sessionmgr.otp.life import Life
    from sessionmgr.otp.ref import Ref

T = TypeVar("T", covariant=True)


class Run(Generic[T]):
    """One call of a function under a `TaskSupervisor`."""

    __slots__ = ("_args", "_awaited", "_fn", "_life", "_listener", "_owner", "_result")

    def __init__(
        self,
        fn: Callable[..., Awaitable[T]],
        args: tuple[object, ...],
        owner: Life | None,
        listener: Callable[[], None] | None = None,
    ) -> None:
        self._fn = fn
        self._args = args
        self._owner = owner
        self._listener = listener
        # Whether the owner waits in `result`, so that it needs no message.
        self._awaited = False
        self._result: list[T] = []
        self._life: Life | None = None

    def __repr__(self) -> str:
        return f"<Run {self._own_life.name}: {self._own_life.state}>"

    @property
    def label(self) -> str:
        """What to call it."""
        return getattr(self._fn, "__name__", "task")

    @disable_ki_protection
    async def execute(self, life: Life) -> None:
        """Be the body of the child `life`."""
        life.mark_ready()
        self._result.append(await self._fn(*self._args))

    def begin(self, life: Life) -> None:
        """Hear which child this run is."""
        self._life = life

    def finish(self) -> None:
        """Hear that the child has ended, and tell whoever waits for that."""
        if self._listener is not None:
            self._listener()
        if not self._awaited:
            self._tell_owner()

    def _tell_owner(self) -> None:
        if self._owner is None:
            return
        if self._result:
            self._owner.tell(TaskDone(self, self._result[0]))
        else:
            reason = self._own_life.reason
            assert reason is not None
            self._owner.tell(Down(self, self.ref, reason))

    @property
    def _own_life(self) -> Life:
        assert self._life is not None
        return self._life

    @property
    def ref(self) -> Ref[Actor]:
        """The child that runs it."""
        return self._own_life.ref

    @property
    def done(self) -> bool:
        """Whether it has ended, whichever way."""
        return self._own_life.reason is not None

    @property
    def reason(self) -> ExitReason | None:
        """How it ended; None while it runs."""
        return self._own_life.reason

    @property
    def outcome(self) -> Outcome[T] | None:
        """What it came to: a value or an error; None while it runs."""
        if not self.done:
            return None
        return Value(self._result[0]) if self._result else Error(self._error())

    async def result(self) -> T:
        """Wait for the end and give the result.

        When the actor that owns the run calls this, it gets no message about it as well.

        Raises:
            RunCrashed: the function raised; that is the `__cause__`.
            RunCancelled: it was cancelled before it had a result.
        """
        is_owner = self._owner is not None and self._owner is current_life()
        was_done = self.done
        if is_owner and not was_done:
            self._awaited = True
        try:
            if was_done:
                await checkpoint()
            else:
                await self._own_life.ended()
        except BaseException:
            # Cancelled while it waited: then the message has to do. It may have ended in
            # this very tick, and kept silent because of us.
            if is_owner and not was_done:
                self._awaited = False
                if self.done:
                    self._tell_owner()
            raise
        if is_owner and self._owner is not None and self._owner.mailbox is not None:
            self._owner.mailbox.discard(self._announced_by)
        if self._result:
            return self._result[0]
        raise self._error()

    def cancel(self) -> None:
        """Stop it; without effect when it has ended."""
        self._own_life.ask_to_stop(SHUTDOWN)

    def _error(self) -> RunCrashed | RunCancelled:
        life = self._own_life
        if not isinstance(life.reason, Crashed):
            return RunCancelled(life.name)
        error = RunCrashed(life.name, life.reason)
        error.__cause__ = cause_of(life.reason)
        return error

    def _announced_by(self, item: object) -> bool:
        if not isinstance(item, Info):
            return False
        news = item.message
        return (isinstance(news, TaskDone) and news.run is self) or (
            isinstance(news, Down) and news.monitor is self
        )
