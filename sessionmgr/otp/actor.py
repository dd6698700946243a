"""An actor: an object that handles one message at a time.

For those who know OTP this is GenServer; for those who do not: a class whose handlers never
run at the same time, so that `self` needs no lock, whose crash harms nobody else, and whom
a supervisor can start anew.

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

from typing import TYPE_CHECKING, ClassVar, Final

from trio.lowlevel import checkpoint, disable_ki_protection, wait_task_rescheduled

from sessionmgr.otp import report
from sessionmgr.otp.caller import CALL_ABANDONED, Caller
from sessionmgr.otp.mailbox import InfoMessage, SendWaiter
from sessionmgr.otp.message import NOREPLY, Cast, Continue, Stop

if TYPE_CHECKING:
    from sessionmgr.otp.child_task import ChildTask
    from sessionmgr.otp.exit_reason import ExitReason
    from sessionmgr.otp.ref import Ref

# How many messages an actor handles before it lets others have a turn. One by one would cost
# ten times as much a message; all at once would starve the loop.
BUDGET: Final = 32


class Actor:
    """What actors inherit from. Every callback may be left out.

    `__init__` takes what `child(...)` was given, and runs anew for every incarnation.
    """

    trap_exit: ClassVar[bool] = False
    """Whether the end of a linked child comes as an `Exit` message, not as one's own end."""
    mailbox: ClassVar[int] = 1024
    """How many messages may wait."""
    ref: Ref[Actor]
    """The actor's own reference; there from `init` on."""

    async def init(self) -> Continue | None:
        """Get ready. Whoever starts this actor waits until it returns."""
        return None

    async def handle_continue(self, arg: object, /) -> Continue | None:
        """Go on after `return Continue(arg)`, before any other message.

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
        """Take note of a cast.

        Args:
            message: The message.
        """
        raise TypeError(f"{type(self).__name__} does not handle casts: {message!r}")

    async def handle_info(self, message: object, /) -> Continue | None:
        """Take note of anything else: `Down`, `Exit`, `TaskDone`, what `ref.send` sent.

        Args:
            message: The message.
        """
        report.unhandled_info(self.ref.name, message)
        return None

    async def terminate(self, reason: ExitReason, /) -> None:
        """Say farewell, after the last handler, within the time that `shutdown` gives.

        Runs on every end but a kill, and never twice. Work that must not be lost does not
        belong here: a power cut calls nobody.

        Args:
            reason: The reason why the actor ends.
        """


@disable_ki_protection
def prepare_actor(life: ChildTask) -> None:
    """Bring an actor up that has no `init` of its own."""
    _present(life, _create(life))


def _create(life: ChildTask) -> Actor:
    actor = life.spec.target(*life.spec.args)
    assert isinstance(actor, Actor)
    actor.ref = life.ref
    if actor.trap_exit:
        life.traps_exits = True
    return actor


def _present(life: ChildTask, actor: Actor) -> None:
    life.actor = actor
    if type(actor).terminate is not Actor.terminate:
        life.terminate_callback = actor.terminate
    life.mark_ready()


@disable_ki_protection
async def run_actor(life: ChildTask) -> None:
    """Run an actor from its first line to its last message.

    Long, and in one piece: each function more would cost every message a tenth of its time,
    and every idle actor a frame.
    """
    actor = life.actor
    follow: object = None
    if actor is None:
        actor = _create(life)
        follow = await actor.init()
        _present(life, actor)
    mailbox = life.mailbox
    assert mailbox is not None
    queue = mailbox.queue
    budget = BUDGET
    while life.stop_reason is None:
        if follow is not None and isinstance(follow, Continue):
            follow = await actor.handle_continue(follow.arg)
        elif queue:
            # In this order, for Ctrl-C may come between any two lines: until it is answered, a
            # call is known to `settle`, from the queue or from here.
            item = life.current = queue[0]
            queue.popleft()
            if mailbox.waiting:
                mailbox.admit_waiters()
            life.handled += 1
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
            # Not to keep the last message alive while there is none.
            item = answer = life.current = None
            budget = BUDGET
            life.parked = True
            await wait_task_rescheduled(life.abort_pause)
            continue
        budget -= 1
        if not budget:
            budget = BUDGET
            await checkpoint()
