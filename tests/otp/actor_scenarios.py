"""Scenarios of actors that exchange messages with each other and with supervisors while they end.

See `scenarios`, where all are listed.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable

import trio

from sessionmgr.otp import Actor, DynamicSupervisor, Ref, Registry, Supervisor, child
from tests.otp.scenario_trace import CrashCast, EchoCall, ReleaseCast, ScenarioTrace, TracedActor


async def together(*jobs: Callable[[], Awaitable[object]]) -> None:
    """Do all at once; what goes wrong with one leaves bare."""
    try:
        async with trio.open_nursery() as nursery:
            for job in jobs:
                nursery.start_soon(job)
    except BaseExceptionGroup as group:
        _, others = group.split(trio.Cancelled)
        (error,) = (group if others is None else others).exceptions[:1]
        raise error from None


async def calls(trace: ScenarioTrace) -> None:
    async def clerk(number: int) -> None:
        # Two clerks in the tree, whose calls wait in every possible way.
        async def work() -> None:
            await trace.ask(trace.ref("desk"), EchoCall(10 + number, wait=0.2))
            await trace.ask(trace.ref("desk"), EchoCall(20 + number, later=True), patience=3)

        await trace.body(f"clerk {number}", work)

    async with Supervisor(
        child(TracedActor, trace, "desk", id="desk", shutdown=1),
        child(clerk, 1, restart="temporary"),
        child(clerk, 2, restart="temporary"),
    ):
        trace.up = True
        desk = trace.ref("desk")

        def asks(message: EchoCall, patience: float | None = 5.0) -> Callable[[], Awaitable[None]]:
            async def ask() -> None:
                trace.say(message.n, await trace.ask(desk, message, patience))

            return ask

        async def impatient() -> None:
            with trio.move_on_after(0.3):
                await trace.ask(desk, EchoCall(3, wait=0.2))

        async def letter() -> None:
            await trace.attempt("send", desk.send("a letter"))

        async def release() -> None:
            await trio.sleep(2)
            await trace.attempt("send", desk.send("a release"))
            desk.cast(ReleaseCast())

        await together(
            asks(EchoCall(1, wait=0.5)),
            asks(EchoCall(2, later=True)),
            asks(EchoCall(4, wait=0.2), patience=0.1),
            impatient,
            letter,
            release,
        )

        async def stop() -> None:
            await trio.sleep(0.5)
            desk.stop()

        # These wait while it ends: one is being handled, one put off, others queued or not even
        # that.
        await together(
            asks(EchoCall(5, wait=2)),
            asks(EchoCall(6, later=True), patience=None),
            lambda: trace.ask(desk, EchoCall(7)),
            lambda: trace.ask(desk, EchoCall(8)),
            letter,
            stop,
        )
        await trio.sleep(1)
        trace.say(await trace.ask(trace.ref("desk"), EchoCall(9)))


async def foreman(trace: ScenarioTrace) -> None:
    """Actors start children, in their own supervisor and in another one."""
    pool = DynamicSupervisor(name="pool")
    crew = Supervisor(name="crew")

    class Foreman(TracedActor):
        async def handle_call(self, message: object, caller: object) -> object:
            await self.start(crew.start_child(child(TracedActor, trace, "near", 0.2, id="near")))
            await self.start(pool.start_child(child(TracedActor, trace, "far", 0.2, id="far")))
            await trace.attempt("end", crew.terminate_child("near"))
            return 1

        async def start(self, order: Awaitable[Ref[Actor]]) -> None:
            async def start() -> None:
                (await order).monitor()

            await self.trace.attempt("start", start())

    async with Supervisor(pool, crew):
        trace.up = True
        await trace.attempt("start", crew.start_child(child(Foreman, trace, "foreman")))
        if "foreman" in trace.refs:
            trace.say(await trace.ask(trace.ref("foreman"), EchoCall(1)))
            trace.say(await trace.attempt("end", pool.terminate_child("far")))
            trace.say(await trace.attempt("end", crew.terminate_child(trace.ref("foreman"))))
        await trio.sleep(1)
    trace.say(len(trace.monitors))


async def monitors(trace: ScenarioTrace) -> None:
    class Watcher(TracedActor):
        def __init__(self, trace: ScenarioTrace, key: str, *others: str) -> None:
            super().__init__(trace, key)
            self.others = others

        async def init(self) -> None:
            await super().init()
            for key in self.others:
                self.trace.ref(key).monitor()
                self.trace.ref(key).monitor().cancel(flush=True)
                self.trace.ref(key).link()

    class Trapper(Watcher):
        trap_exit = True

    async def member(trace: ScenarioTrace, key: str) -> None:
        trace.ref(key).link()
        await trace.body("member", trio.sleep_forever)

    async with Supervisor(
        child(TracedActor, trace, "a", id="a", restart="temporary"),
        child(TracedActor, trace, "b", id="b", restart="temporary"),
        child(Watcher, trace, "c", "a", id="c", restart="temporary"),
        child(Watcher, trace, "d", "a", "c", id="d", restart="temporary"),
        child(Trapper, trace, "t", "a", "b", "d", id="t"),
        child(member, trace, "b", restart="temporary"),
    ) as sup:
        trace.up = True
        trace.ref("b").stop()
        trace.cast("a", CrashCast())
        trace.say(str(await trace.ref("a").wait()).partition(" ")[0])
        trace.say(str(await trace.ref("b").wait()))
        await trio.sleep(1)
        trace.say(len(trace.monitors))
        trace.say(*(row.id for row in sup.which_children()))


async def registry(trace: ScenarioTrace) -> None:
    names = Registry()

    class Named(TracedActor):
        async def init(self) -> None:
            await super().init()
            names.register("name", self.key)
            await trio.sleep(0.1)

    class Heir(TracedActor):
        async def init(self) -> None:
            await super().init()
            names.via("name").monitor()

        async def handle_info(self, message: object) -> None:
            taken = [entry for entry in names.lookup("name") if not entry.ref.alive]
            self.trace.check(not taken, "P22: a name outlived its owner")
            await super().handle_info(message)

    async with Supervisor(
        child(Named, trace, "first", id="first"), child(Heir, trace, "heir", id="heir")
    ) as sup:
        trace.up = True
        via = names.via("name")
        trace.say(await trace.ask(via, EchoCall(1)))
        second = child(Named, trace, "second", id="second")
        trace.say(await trace.attempt("start", sup.start_child(second)))
        trace.ref("first").kill()
        trace.say(await trace.ask(via, EchoCall(2, wait=0.1)))
        await trio.sleep(1)
        trace.say(await trace.ask(via, EchoCall(3)))
        trace.say(names.dispatch("name", "hello").sent)
    trace.check(not names.keys(), "P22: a name outlived everybody")


async def last_words(trace: ScenarioTrace) -> None:
    """The body has something to say to its children, whatever ends it."""
    async with Supervisor(
        child(TracedActor, trace, "a", id="a"),
        child(TracedActor, trace, "b", id="b", shutdown=math.inf),
    ):
        trace.up = True
        try:
            await trio.sleep(1)
        finally:
            with trio.CancelScope(shield=True):
                trace.say(await trace.ask(trace.ref("a"), EchoCall(1, wait=0.3)))
                trace.say(await trace.ask(trace.ref("b"), EchoCall(2)))
                trace.left = True
