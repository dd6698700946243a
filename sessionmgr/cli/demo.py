"""The verb `demo`: supervision at work, told while it happens.

Three scenes, each a tree of its own. The signals are the program's business, not the library's:
they become a cancelled scope here, and the trees stop in order on the way out.
"""

import argparse
import os
import signal
import sys
from collections import deque
from typing import Final

import trio

from sessionmgr.cli.narrator import Narrator, log_told_by, standard_output
from sessionmgr.otp import (
    Actor,
    Call,
    Caller,
    Crashed,
    Ref,
    RestartIntensityExceeded,
    Supervisor,
    child,
)

COMPLETED: Final = 0
NOT_COMPLETED: Final = 3
INTERRUPTED: Final = 130

BEAT: Final = 0.4  # seconds between two things that happen, so that a person can follow


HELP: Final = """\
Show supervision at work: a worker that crashes and comes back, one that will not
get well, and an ordered stop. Needs no network, no key and no terminal."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take none."""
    del parser


def run(args: argparse.Namespace) -> int:
    """Show the demo on stdout and return the exit code."""
    del args
    narrator = Narrator(standard_output())
    code = trio.run(perform, narrator)
    if narrator.lost.is_set():
        # Nobody reads any more: the interpreter's last flush must not complain about it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return NOT_COMPLETED
    return code


async def perform(narrator: Narrator) -> int:
    """Play the three scenes and return the exit code: a signal ends them early, in order."""
    code = INTERRUPTED
    with log_told_by(narrator, "sessionmgr.otp"):
        async with trio.open_nursery() as nursery:
            scope = nursery.cancel_scope
            await nursery.start(cancel_on_signal, scope, narrator)
            nursery.start_soon(cancel_when_lost, scope, narrator)
            await scenes(narrator)
            code = COMPLETED
            scope.cancel()
    return code


async def cancel_on_signal(
    scope: trio.CancelScope,
    narrator: Narrator,
    *,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Turn the first Ctrl-C or SIGTERM into a cancelled `scope`."""
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        task_status.started()
        async for number in signals:
            narrator.tell("you", f"{signal.Signals(number).name}: stopping, in order", "bold")
            scope.cancel()


async def cancel_when_lost(scope: trio.CancelScope, narrator: Narrator) -> None:
    """Stop when nobody reads the story any more."""
    await narrator.lost.wait()
    scope.cancel()


async def scenes(narrator: Narrator) -> None:
    """Play the scenes, one after the other."""
    narrator.explain(
        "sessionmgr demo: supervision on trio, in three scenes and a few seconds.\n"
        "What is marked `log` are the library's own log records: event, child, reason."
    )
    for scene in comes_back, gives_up, stops_in_order:
        await trio.sleep(BEAT)
        await scene(narrator)
    narrator.title("That was all. The README does the same in a program of your own.")


class Serve(Call[int]):
    """Count one order; the reply is how many there have been."""


class Till(Actor):
    """Keep the count of the orders that were served."""

    def __init__(self) -> None:
        self.served = 0

    async def handle_call(self, message: object, caller: Caller) -> int:
        """Answer a `Serve`."""
        assert isinstance(message, Serve)
        self.served += 1
        return self.served


async def clerk(
    narrator: Narrator, orders: deque[str], till: Ref[Till], sold_out: trio.Event
) -> None:
    """Serve the orders, and crash on one that is torn."""
    narrator.tell("clerk", "comes to work")
    while orders:
        await trio.sleep(BEAT)
        order = orders.popleft()
        if order == "torn":
            raise ValueError("the order is torn")
        narrator.tell("clerk", f"serves {order}; the till counts {await till.call(Serve())}")
    sold_out.set()
    await trio.sleep_forever()


async def comes_back(narrator: Narrator) -> None:
    """Play the worker that crashes and is started again, beside one that never notices."""
    narrator.title("1. A worker crashes and comes back")
    narrator.explain("A supervisor has two children: a till that counts and a clerk who serves.")
    sold_out = trio.Event()
    orders = deque(["tea", "coffee", "torn", "cake"])
    async with Supervisor(child(Till, id="till"), name="shop") as shop:
        till = shop.ref("till", Till)
        await shop.start_child(child(clerk, narrator, orders, till, sold_out, id="clerk"))
        await sold_out.wait()
        narrator.explain("The till lived on and kept its count. The tree, as shop.tree() has it:")
        narrator.show(shop.tree())


async def printer(narrator: Narrator) -> None:
    """Jam, every time."""
    narrator.tell("printer", "warms up")
    await trio.sleep(BEAT)
    raise OSError("paper jam")


async def gives_up(narrator: Narrator) -> None:
    """Play the worker that no restart helps, until its supervisor says so."""
    narrator.title("2. A worker that no restart helps")
    narrator.explain(
        "Three restarts in five seconds are allowed. One more, and the supervisor gives up:\n"
        "its block is left with an ordinary exception, which your program catches or dies of."
    )
    try:
        async with Supervisor(
            child(printer, narrator, id="printer"),
            name="office",
            max_restarts=3,
            max_seconds=5.0,
        ):
            await trio.sleep_forever()
    except RestartIntensityExceeded as gave_up:
        what = type(gave_up).__name__
        narrator.tell("program", f"catches {what}: {gave_up.child} failed again", "bold red")
        causes = [str(reason.error) for reason in gave_up.exits if isinstance(reason, Crashed)]
        narrator.explain(f"The exception carries its causes: {', '.join(causes)}.")


async def department(
    narrator: Narrator,
    name: str,
    *,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Be up until stopped, and take a moment to close."""
    narrator.tell(name, "is up")
    task_status.started()
    try:
        await trio.sleep_forever()
    finally:
        with trio.move_on_after(1, shield=True):
            await trio.sleep(BEAT / 2)
        narrator.tell(name, "has closed")


async def stops_in_order(narrator: Narrator) -> None:
    """Play a tree that is stopped from outside, as Ctrl-C does it."""
    narrator.title("3. An ordered stop, as on Ctrl-C")
    narrator.explain("Whoever started last stops first, and nobody is cut off in mid-sentence.")

    with trio.CancelScope() as scope:
        async with Supervisor(
            child(department, narrator, "store", id="store"),
            Supervisor(
                child(department, narrator, "reader", id="reader"),
                child(department, narrator, "writer", id="writer"),
                name="pipeline",
            ),
            child(department, narrator, "door", id="door"),
            name="house",
            strategy="rest_for_one",
        ) as house:
            await trio.sleep(BEAT)
            narrator.show(house.tree())
            narrator.tell(
                "you", "press Ctrl-C (not really: the demo cancels its own scope)", "bold"
            )
            scope.cancel()
            await trio.sleep_forever()
    narrator.explain("All closed, in reverse, the door first and the store last.")
