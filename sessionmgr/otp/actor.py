"""Actor: an object that handles one message at a time.

In OTP this is a GenServer. Its handlers never run at the same time, so `self` needs no lock; its
crash harms no other actor; and a supervisor can restart it.

| in OTP | here |
|---|---|
| `init/1` | `__init__` and `init` |
| `handle_call/3`, `{:reply, r, s}` | `handle_call`, `return r` |
| `{:noreply, s}`, `GenServer.reply` | `return NOREPLY`, `caller.reply(r)` |
| `handle_cast/2`, `handle_info/2` | `handle_cast`, `handle_info` |
| `{:continue, arg}` | `return Continue(arg)` |
| `{:stop, reason, reply, s}` | `raise Stop(reason, reply=r)` |
| `terminate/2` | `terminate`, on every end but a kill |
| `Process.flag(:trap_exit, true)` | `trap_exit = True` |
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final, cast

from trio.lowlevel import checkpoint, disable_ki_protection, wait_task_rescheduled

from sessionmgr.otp import report
from sessionmgr.otp.mailbox import CALL_ABANDONED, InfoMessage, SendWaiter
from sessionmgr.otp.message import NOREPLY, Cast, Continue, Stop
from sessionmgr.otp.ref import Caller, exit_message, ref_of

if TYPE_CHECKING:
    from sessionmgr.otp.child_task import ChildTask
    from sessionmgr.otp.exit_reason import ExitReason
    from sessionmgr.otp.ref import Ref

# How many messages an actor handles before it yields to other tasks. Yielding after each message
# would cost ten times as much; never yielding would starve the loop.
BUDGET: Final = 32


class Actor:
    """Base class of actors. Every callback is optional.

    `__init__` takes the arguments given to `child(...)`, and runs anew for every incarnation.
    """

    trap_exit: ClassVar[bool] = False
    """Whether the end of a linked child arrives as an `Exit` and does not end this actor."""
    mailbox: ClassVar[int] = 1024
    """Maximum number of queued messages."""
    ref: Ref[Actor]
    """The actor's own reference; set before `init`."""

    async def init(self) -> Continue | None:
        """Prepare the actor. Its start is complete when this returns."""
        return None

    async def handle_continue(self, arg: object, /) -> Continue | None:
        """Continue after `return Continue(arg)`, before any other message.

        Args:
            arg: The argument of the `Continue`.
        """
        raise TypeError(f"{type(self).__name__} returned Continue and has no handle_continue")

    async def handle_call(self, message: object, caller: Caller, /) -> object:
        """Answer a call: return the reply, or `NOREPLY` and use `caller` later.

        Args:
            message: The message.
            caller: The caller, who waits for the answer.
        """
        raise TypeError(f"{type(self).__name__} does not handle calls: {message!r}")

    async def handle_cast(self, message: Cast, /) -> Continue | None:
        """Handle a cast.

        Args:
            message: The message.
        """
        raise TypeError(f"{type(self).__name__} does not handle casts: {message!r}")

    async def handle_info(self, message: object, /) -> Continue | None:
        """Handle any other message: `Down`, `Exit`, `TaskDone`, or an object from `ref.send`.

        Args:
            message: The message.
        """
        report.unhandled_info(self.ref.name, message)
        return None

    async def terminate(self, reason: ExitReason, /) -> None:
        """Clean up, after the last handler, within the time that `shutdown` gives.

        Runs on every end but a kill, and never twice. Do not save important work here: a power cut
        calls no handler.

        Args:
            reason: The reason why the actor ends.
        """


@disable_ki_protection
def prepare_actor(record: ChildTask) -> None:
    """Start an actor that has no `init` of its own."""
    _present(record, _create(record))


def _create(record: ChildTask) -> Actor:
    actor = record.spec.target(*record.spec.args)
    assert isinstance(actor, Actor)
    actor.ref = ref_of(record)
    if actor.trap_exit:
        record.make_exit_message = exit_message
    return actor


def _present(record: ChildTask, actor: Actor) -> None:
    record.actor = actor
    if type(actor).terminate is not Actor.terminate:
        record.terminate_callback = actor.terminate
    record.mark_ready()


@disable_ki_protection
async def run_actor(record: ChildTask) -> None:
    """Run an actor from its start to its last message.

    One long function on purpose: each further function would cost every message a tenth of its
    time, and every idle actor a frame.
    """
    actor = cast("Actor | None", record.actor)
    follow: object = None
    if actor is None:
        actor = _create(record)
        follow = await actor.init()
        _present(record, actor)
    mailbox = record.mailbox
    assert mailbox is not None
    queue = mailbox.queue
    budget = BUDGET
    while record.stop_reason is None:
        if follow is not None and isinstance(follow, Continue):
            follow = await actor.handle_continue(follow.arg)
        elif queue:
            # The order matters, because Ctrl-C may come between any two lines: until a call is
            # answered, `finish` finds it in the queue or here.
            item = record.current = queue[0]
            queue.popleft()
            if mailbox.waiting:
                mailbox.admit_waiters()
            record.handled += 1
            kind = item.__class__
            if kind is Caller:
                follow = None
                if item.progress is CALL_ABANDONED:
                    mailbox.abandoned -= 1
                    continue
                try:
                    answer = await actor.handle_call(item.message, item)
                except Stop as stop:
                    if stop.reply is not NOREPLY:
                        item.reply(stop.reply)
                    raise
                if answer is NOREPLY:
                    item.defer()
                elif answer.__class__ is Continue:
                    item.defer()
                    follow = answer
                else:
                    item.reply(answer)
            elif kind is InfoMessage or kind is SendWaiter:
                follow = await actor.handle_info(item.message)
            else:
                follow = await actor.handle_cast(item)
        else:
            # Release the last message while the actor is idle.
            item = answer = record.current = None
            budget = BUDGET
            record.parked = True
            await wait_task_rescheduled(record.abort_pause)
            continue
        budget -= 1
        if not budget:
            budget = BUDGET
            await checkpoint()
