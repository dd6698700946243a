"""How to reach an actor: references, names that stand for them, and monitors."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Generic, TypeVar

import trio
from trio.lowlevel import (
    Abort,
    cancel_shielded_checkpoint,
    checkpoint_if_cancelled,
    current_task,
    enable_ki_protection,
    wait_task_rescheduled,
)

from sessionmgr.otp.caller import actor_down, check_call_cycle, open_call
from sessionmgr.otp.context import current_child, require_child
from sessionmgr.otp.errors import ActorDown, MailboxFull, NotAnActor
from sessionmgr.otp.exit_reason import NOPROC, NORMAL, ExitReason, PlainReason, as_reason
from sessionmgr.otp.mailbox import InfoMessage, Mailbox, SendWaiter
from sessionmgr.otp.message import Call, Cast, Down
from sessionmgr.otp.statistics import ActorStatistics

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from sessionmgr.otp.actor import Actor
    from sessionmgr.otp.child_task import ChildTask
    from sessionmgr.otp.registry import Registry

A = TypeVar("A", bound="Actor", covariant=True)
R = TypeVar("R")


class Ref(Generic[A]):
    """A reference to one incarnation of a child; `A` is the class of the actor.

    It stays valid as an object when the child has ended: calls then raise `ActorDown`. A
    restarted child is a new incarnation and has a new reference; what survives restarts is
    a name, see `Registry.via`.
    """

    __slots__ = ("_life",)

    def __init__(self, life: ChildTask) -> None:
        self._life: ChildTask | None = life

    def __repr__(self) -> str:
        life = self._require_child_task()
        return f"<Ref {life.name}: {life.state}>"

    def child_task(self) -> ChildTask | None:
        """Give the library's own record of whom this stands for."""
        return self._life

    def _require_child_task(self) -> ChildTask:
        life = self.child_task()
        if life is None:
            raise ActorDown(repr(self), NOPROC)
        return life

    # Messages.

    @enable_ki_protection
    async def call(self, message: Call[R], timeout: float | None = 5.0) -> R:
        """Ask the actor and wait for its answer, which has the type that `message` promises.

        Waits for room first where the mailbox is full. After `timeout` seconds (None: never)
        the answer is not waited for any more, and dropped when it comes; a request that the
        actor had not begun by then is never executed.

        Args:
            message: The message.
            timeout: Seconds to wait for the answer, by default 5; None waits without a limit.

        Raises:
            ActorDown: the actor is dead, or ends before it answers; `__cause__` is its crash.
            CallTimeout: no answer in time.
            CallCycle: the actor waits, perhaps through others, for the one who calls.
            NotAnActor: this child has no mailbox.
        """
        callee = self._life
        if callee is None:
            raise ActorDown(repr(self), NOPROC)
        mailbox = callee.mailbox
        if mailbox is None or isinstance(message, Cast):
            raise _misdirected_error(callee, message)
        if callee.reason is not None:
            raise actor_down(callee, callee.reason)
        request = open_call(message, callee)
        if len(mailbox.queue) < mailbox.bound or mailbox.has_room():
            callee.receive(request)
        else:
            mailbox.add_waiter(request)
        if timeout is not None and timeout != math.inf:
            callee.owner.deadlines.add(request, timeout)
        answer: R = await wait_task_rescheduled(request.abandon)
        return answer

    @enable_ki_protection
    def cast(self, message: Cast) -> None:
        """Tell the actor something and go on. Never waits; to a dead actor it says nothing.

        Args:
            message: The message.

        Raises:
            MailboxFull: there is no room, and nothing was changed.
            NotAnActor: this child has no mailbox.
        """
        life = self._life
        if life is None or life.reason is not None:
            return
        mailbox = life.mailbox
        if mailbox is None or isinstance(message, Call):
            raise _misdirected_error(life, message)
        queue = mailbox.queue
        if len(queue) >= mailbox.bound and not mailbox.has_room():
            raise MailboxFull(life.name, mailbox.bound)
        queue.append(message)
        if life.parked:
            life.wake()

    @enable_ki_protection
    async def send(self, message: object) -> None:
        """Give the actor's `handle_info` any object; waits, in turn, while there is no room.

        Args:
            message: The message.

        Raises:
            ActorDown: the actor is dead, or ends while this waits for room.
            CallCycle: there is no room, and the actor waits for the one who sends.
            NotAnActor: this child has no mailbox.
        """
        await checkpoint_if_cancelled()
        life = self._require_child_task()
        mailbox = _require_mailbox(life)
        if life.reason is not None:
            raise actor_down(life, life.reason)
        if mailbox.has_room():
            life.receive(InfoMessage(message))
            await cancel_shielded_checkpoint()
            return
        caller = current_child()
        if caller is not None:
            check_call_cycle(caller, life)
            caller.begin_waiting(life)
        entry = SendWaiter(message, current_task())
        mailbox.add_waiter(entry)

        def give_up(_raise_cancel: Callable[[], None]) -> Abort:
            mailbox.remove_waiter(entry)
            return Abort.SUCCEEDED

        try:
            await wait_task_rescheduled(give_up)
        finally:
            if caller is not None:
                caller.end_waiting(life)

    @enable_ki_protection
    def post(self, message: object) -> None:
        """Give the actor's `handle_info` any object, at once or not at all.

        Args:
            message: The message.

        Raises:
            MailboxFull: there is no room, and nothing was changed.
            NotAnActor: this child has no mailbox.
        """
        life = self.child_task()
        if life is None or life.reason is not None:
            return
        mailbox = _require_mailbox(life)
        if not mailbox.has_room():
            raise MailboxFull(life.name, mailbox.bound)
        life.receive(InfoMessage(message))

    # Life and death.

    @property
    def alive(self) -> bool:
        """Whether this incarnation has not ended yet."""
        life = self.child_task()
        return life is not None and life.reason is None

    @property
    def id(self) -> str:
        """The child's id, as its supervisor knows it."""
        return self._require_child_task().id

    @property
    def name(self) -> str:
        """The path of ids from the root supervisor to this child."""
        return self._require_child_task().name

    @property
    def started_value(self) -> object:
        """What a function child passed to `task_status.started`."""
        return self._require_child_task().value

    async def wait(self) -> ExitReason:
        """Wait for the end and say how it was; at once, for the dead."""
        life = self.child_task()
        if life is None:
            await trio.lowlevel.checkpoint()
            return NOPROC
        return await life.wait_ended()

    def stop(self, reason: ExitReason | PlainReason = NORMAL) -> None:
        """Let the child end with `reason`, after its `terminate`. What is queued is lost.

        Its supervisor then does what it does after any exit with this reason: a permanent
        child is restarted. `Supervisor.terminate_child` is the way to stop it for good.

        Args:
            reason: The reason that the child ends with; by default `Normal`.
        """
        life = self.child_task()
        if life is not None:
            life.request_stop(as_reason(reason))

    def kill(self) -> None:
        """End the child without its `terminate`, at its next checkpoint; cannot be trapped."""
        life = self.child_task()
        if life is not None:
            life.kill()

    def monitor(self) -> Monitor:
        """Let the calling actor hear of the end, as one `Down` in its `handle_info`.

        Raises:
            NotInActor: outside of actors `await ref.wait()` does the same.
        """
        watcher = require_child("ref.monitor()", "use `await ref.wait()`")
        _require_mailbox(watcher)
        monitor = Monitor(watcher, self)
        target = self.child_task()
        if target is None or target.reason is not None:
            watcher.notify(Down(monitor, self, NOPROC))
        else:
            monitor.attach(target)
        return monitor

    def link(self) -> None:
        """Let the calling child and this one fall together, unless an end is `Normal`.

        An actor with `trap_exit` gets an `Exit` in its `handle_info` instead. Linking to the
        dead is hearing of their end at once, as `NoProc`.

        Raises:
            NotInActor: outside of supervised children there is nothing to link.
        """
        one = require_child("ref.link()", "use `await ref.wait()`")
        other = self.child_task()
        if other is None or other.reason is not None:
            one.handle_linked_exit(self, NOPROC)
        elif other is not one:
            one.link(other)

    def unlink(self) -> None:
        """Undo `link`."""
        one = require_child("ref.unlink()", "only a child that called link() has a link")
        other = self.child_task()
        if other is not None:
            one.unlink(other)

    def statistics(self) -> ActorStatistics:
        """Say how this child is: state, age, mailbox, restarts."""
        return ActorStatistics.of(self._require_child_task())


class Via(Ref[A]):
    """A name that stands for whoever has it at the moment: each use looks it up anew.

    With nobody there, calls raise `ActorDown` with `NoProc`, and casts say nothing.
    """

    __slots__ = ("_key", "_registry")

    def __init__(self, registry: Registry, key: Hashable) -> None:
        self._registry = registry
        self._key = key

    def __repr__(self) -> str:
        return f"<Via {self._key!r}>"

    @property
    def _life(self) -> ChildTask | None:  # type: ignore[override]
        return self._registry.find_child(self._key)


class Monitor:
    """One actor's wish to hear of one end."""

    __slots__ = ("_target", "_watcher", "ref")

    def __init__(self, watcher: ChildTask, ref: Ref[Actor]) -> None:
        self._watcher = watcher
        self._target: ChildTask | None = None
        self.ref = ref

    def attach(self, target: ChildTask) -> None:
        """Be told by `target` when it ends.

        Args:
            target: The record of the monitored child.
        """
        self._target = target
        if target.monitors is None:
            target.monitors = {}
        if self._watcher.watching is None:
            self._watcher.watching = {}
        target.monitors[self] = self._watcher.watching[self] = None

    def notify(self, reason: ExitReason) -> None:
        """Tell the watcher, once.

        Args:
            reason: The reason why it has ended.
        """
        self._target = None
        if self._watcher.watching is not None:
            self._watcher.watching.pop(self, None)
        self._watcher.notify(Down(self, self.ref, reason))

    def cancel(self, *, flush: bool = False) -> None:
        """Wish it no more; with `flush`, a `Down` that waits to be handled is removed too.

        Args:
            flush: Whether a waiting `Down` is removed as well; by default it stays.
        """
        if self._target is not None:
            if self._target.monitors is not None:
                self._target.monitors.pop(self, None)
            if self._watcher.watching is not None:
                self._watcher.watching.pop(self, None)
            self._target = None
        elif flush and self._watcher.mailbox is not None:
            self._watcher.mailbox.discard(self._is_own_notification)

    def _is_own_notification(self, item: object) -> bool:
        return (
            isinstance(item, InfoMessage)
            and isinstance(item.message, Down)
            and item.message.monitor is self
        )


def _require_mailbox(life: ChildTask) -> Mailbox:
    if life.mailbox is None:
        raise NotAnActor(life.name, life.spec.kind)
    return life.mailbox


def _misdirected_error(life: ChildTask, message: object) -> Exception:
    if life.mailbox is None:
        return NotAnActor(life.name, life.spec.kind)
    if isinstance(message, Call):
        return TypeError(f"cast() takes a Cast: {message!r} wants an answer, use ref.call()")
    return TypeError(f"call() takes a Call: nobody answers {message!r}, use ref.cast()")
