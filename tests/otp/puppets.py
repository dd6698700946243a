"""Puppets: actors that do what a message asks; and a clock for virtual time."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar, cast

import outcome
import trio
import trio.testing

from sessionmgr.otp import Actor, Call, Caller, Cast, Continue, Monitor, Ref

T = TypeVar("T")
R = TypeVar("R", covariant=True)


class RunCall(Call[R], Generic[R]):
    """Run `deed` in the actor; what it returns is the reply."""

    deed: Callable[[Puppet, Caller], Awaitable[R]]


class RunCast(Cast):
    """Run `deed` in the actor, and do not wait for it."""

    deed: Callable[[Puppet], Awaitable[Continue | None]]


class Puppet(Actor):
    """Actor that does what a message asks, and keeps all other messages."""

    def __init__(self) -> None:
        self.news: list[object] = []

    async def handle_call(self, message: object, caller: Caller) -> object:
        assert isinstance(message, RunCall)
        return await cast("RunCall[object]", message).deed(self, caller)

    async def handle_cast(self, message: Cast) -> Continue | None:
        assert isinstance(message, RunCast)
        return await message.deed(self)

    async def handle_info(self, message: object) -> None:
        self.news.append(message)


class TrappingPuppet(Puppet):
    """Hears of the end of those it is linked to, and lives on."""

    trap_exit = True


class CrashError(Exception):
    """The crash that a test wants."""


async def inside(ref: Ref[Puppet], deed: Callable[[Puppet], T]) -> T:
    """Do something in the task of the actor behind `ref`, on its behalf.

    What it raises is raised here, and is no crash of the actor.
    """

    async def do(puppet: Puppet, _caller: Caller) -> outcome.Outcome[T]:
        return outcome.capture(deed, puppet)

    return (await ref.call(RunCall(do))).unwrap()


async def link(one: Ref[Puppet], other: Ref[Actor]) -> None:
    """Link the two."""
    await inside(one, lambda _: other.link())


async def watch(watcher: Ref[Puppet], target: Ref[Actor]) -> Monitor:
    """Let the one monitor the other."""
    return await inside(watcher, lambda _: target.monitor())


async def notifications_of(ref: Ref[Puppet]) -> list[object]:
    """Give all that the actor has heard, when it has nothing left to hear."""
    await trio.testing.wait_all_tasks_blocked()
    return await inside(ref, lambda puppet: list(puppet.news))


async def crash(_puppet: Puppet) -> None:
    """Be a deed for `Tell` that ends the actor."""
    raise CrashError


def in_virtual_time(main: Callable[[], Awaitable[T]]) -> T:
    """Run `main` by a clock that jumps to the next deadline when nothing else is to do.

    Crashes, of which a search has thousands, are not logged; and what hangs is an error.
    """

    async def bounded() -> T:
        with trio.fail_after(10_000):
            return await main()

    log = logging.getLogger("sessionmgr.otp")
    log.disabled = True
    try:
        return trio.run(bounded, clock=trio.testing.MockClock(autojump_threshold=0))
    finally:
        log.disabled = False
