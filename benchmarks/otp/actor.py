"""Costs of a message to an actor."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, TypeVar

import trio

from benchmarks.effort import Clock, Effort, Figures, adopt_gc_policy, cpu, wall
from sessionmgr.otp import Actor, Call, Caller, Cast, Ref, Supervisor, child

BURST: Final = 1_000
CALLERS: Final = 100


class GetCall(Call[int]):
    """Ask for the count."""


class AddCast(Cast):
    """Add one."""


class CountingActor(Actor):
    """Counts messages."""

    mailbox = 1_024

    def __init__(self) -> None:
        self.count = 0

    async def handle_call(self, msg: object, caller: Caller) -> int:
        self.count += 1
        return self.count

    async def handle_cast(self, msg: object) -> None:
        self.count += 1


class LongMailboxActor(CountingActor):
    """A counting actor with a long mailbox."""

    mailbox = 200_000


def call(effort: Effort) -> Figures:
    """Call an actor that has nothing else to do."""
    return with_server(CountingActor, lambda ref: time_calls(effort, ref))


def call_wall(effort: Effort) -> Figures:
    """Call an actor; wall time."""
    return with_server(CountingActor, lambda ref: time_calls(effort, ref, clock=wall))


def call_timeout(effort: Effort) -> Figures:
    """Call an actor with a timeout that does not expire."""
    return with_server(CountingActor, lambda ref: time_calls(effort, ref, seconds=5.0))


def call_default(effort: Effort) -> Figures:
    """Call an actor with the default timeout."""

    async def ask(ref: Ref[CountingActor], times: int) -> None:
        for _ in range(times):
            await ref.call(GetCall())

    async def measure(ref: Ref[CountingActor]) -> Figures:
        return {"call": await effort.time(partial(ask, ref), 10_000)}

    return with_server(CountingActor, measure)


def call_many(effort: Effort) -> Figures:
    """Call an actor from a hundred tasks at once."""

    async def crowd(ref: Ref[CountingActor], times: int) -> None:
        async with trio.open_nursery() as nursery:
            for _ in range(CALLERS):
                nursery.start_soon(ask, ref, None, max(times // CALLERS, 1))

    async def measure(ref: Ref[CountingActor]) -> Figures:
        return {"call": await effort.time(partial(crowd, ref), 100 * CALLERS)}

    return with_server(CountingActor, measure)


def cast(effort: Effort) -> Figures:
    """Cast in bursts, each followed by one call that waits until all are handled."""

    async def bursts(ref: Ref[CountingActor], times: int) -> None:
        for _ in range(max(times // BURST, 1)):
            for _ in range(BURST):
                ref.cast(AddCast())
            await ref.call(GetCall(), timeout=None)

    async def measure(ref: Ref[CountingActor]) -> Figures:
        return {"cast": await effort.time(partial(bursts, ref), 200 * BURST)}

    return with_server(CountingActor, measure)


def queue(effort: Effort, length: int) -> Figures:
    """Fill a mailbox, then let the actor empty it."""

    async def fill_and_empty(ref: Ref[LongMailboxActor], times: int) -> None:
        for _ in range(times):
            ref.cast(AddCast())
        await ref.call(GetCall(), timeout=None)

    async def measure(ref: Ref[LongMailboxActor]) -> Figures:
        adopt_gc_policy()
        return {"item": await effort.time(partial(fill_and_empty, ref), length)}

    return with_server(LongMailboxActor, measure)


C = TypeVar("C", bound=CountingActor)


async def ask(ref: Ref[CountingActor], seconds: float | None, times: int) -> None:
    """Make calls, one after the other."""
    for _ in range(times):
        await ref.call(GetCall(), timeout=seconds)


async def time_calls(
    effort: Effort, ref: Ref[CountingActor], *, seconds: float | None = None, clock: Clock = cpu
) -> Figures:
    """Time calls, one after the other."""
    return {"call": await effort.time(partial(ask, ref, seconds), 10_000, clock)}


def with_server(server: type[C], measure: Callable[[Ref[C]], Awaitable[Figures]]) -> Figures:
    """Run `measure` with a server below a supervisor."""

    async def main() -> Figures:
        async with Supervisor(child(server, id="server")) as sup:
            return await measure(sup.ref("server", server))

    return trio.run(main)
