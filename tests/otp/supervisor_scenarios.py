"""Small programs that together use every feature, for fault injection.

Each takes a trace, notes what it sees there, and comes to an end by itself. Without a fault
it says what stands beside it in `SCENARIOS`; with one, the laws of the trace must hold.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

import trio

from sessionmgr.otp import (
    DynamicSupervisor,
    RestartIntensityExceeded,
    Supervisor,
    TaskSupervisor,
    child,
)
from tests.otp.actor_scenarios import calls, foreman, last_words, monitors, registry, together
from tests.otp.scenario_trace import (
    CrashCast,
    EchoCall,
    ScenarioCrashError,
    ScenarioTrace,
    TracedActor,
)


async def ordered(trace: ScenarioTrace) -> None:
    async with Supervisor(
        child(TracedActor, trace, "a", id="a"),
        child(TracedActor, trace, "b", id="b"),
        child(TracedActor, trace, "c", 0.1, id="c"),
    ) as sup:
        trace.up = True
        trace.say(await trace.ask(trace.ref("b"), EchoCall(1, wait=0.1)))
        trace.say(await trace.ask(trace.ref("c"), EchoCall(2)))
        trace.say(len(sup.tree().splitlines()))
        trace.left = True
    trace.say(*trace.farewells)


async def group_restart(trace: ScenarioTrace) -> None:
    async def restless() -> None:
        await trace.body("b", trio.sleep, 0.5)

    async with Supervisor(
        child(TracedActor, trace, "a", 0.1, id="a"),
        child(restless, id="b", restart="transient"),
        child(TracedActor, trace, "t", id="t", restart="temporary"),
        child(TracedActor, trace, "c", 0.1, id="c"),
        strategy="one_for_all",
    ) as sup:
        trace.up = True
        a, c = trace.ref("a"), trace.ref("c")
        # Both in one tick: one restart, not two.
        a.cast(CrashCast())
        c.cast(CrashCast())
        trace.say(await trace.ask(c, EchoCall(1, wait=0.1)))
        await trio.sleep(1)
        trace.say(await trace.ask(trace.ref("a"), EchoCall(2)))
        trace.say(*(f"{row.id} {row.state} {row.restarts}" for row in sup.which_children()))


async def storm(trace: ScenarioTrace) -> None:
    class Shaky(TracedActor):
        async def init(self) -> None:
            await super().init()
            if len(self.trace.refs[self.key]) > 1:
                raise ScenarioCrashError

    body = "ran on"
    try:
        async with Supervisor(
            child(TracedActor, trace, "calm", id="calm"),
            child(Shaky, trace, "shaky", 0.1, id="shaky"),
            strategy="rest_for_one",
            max_restarts=2,
        ):
            trace.up = True
            trace.cast("shaky", CrashCast())
            await trio.sleep(60)
    except RestartIntensityExceeded as error:
        body = f"gave up after {len(error.exits)}"
        trace.check(not trace.ref("calm").alive, "P1: a child outlived its supervisor")
    trace.say(body, len(trace.refs["calm"]))


async def pool_storm(trace: ScenarioTrace) -> None:
    pool = DynamicSupervisor(name="pool", max_restarts=2)
    try:
        async with Supervisor(pool, max_restarts=0):
            trace.up = True
            shaky = child(TracedActor, trace, "shaky", 0.1)
            await trace.attempt("start", pool.start_child(shaky))
            await trace.attempt("start", pool.start_child(child(TracedActor, trace, "calm")))
            for _ in range(3):
                trace.cast("shaky", CrashCast())
                await trio.sleep(0.2)
            # Too late, or nearly so.
            await trace.attempt("start", pool.start_child(child(TracedActor, trace, "late")))
            await trio.sleep(60)
    except RestartIntensityExceeded as error:
        trace.say("gave up", error.supervisor)
    trace.say(len(trace.refs["shaky"]))


async def patience(trace: ScenarioTrace) -> None:
    async with Supervisor(
        child(TracedActor, trace, "a", id="a", backoff=(1, 4, 0)),
        child(TracedActor, trace, "b", id="b"),
        max_restarts=5,
    ):
        trace.up = True
        for _ in range(2):
            trace.cast("a", CrashCast())
            await trio.sleep(0.5)
            trace.say(trace.ref("a").alive)
            await trio.sleep(2)
        trace.say(await trace.ask(trace.ref("a"), EchoCall(1)))
        trace.cast("b", CrashCast())


async def orders(trace: ScenarioTrace) -> None:
    async def fails() -> None:
        raise ScenarioCrashError

    class Unborn(TracedActor):
        async def init(self) -> None:
            await super().init()
            raise ScenarioCrashError

    async with Supervisor(child(TracedActor, trace, "a", id="a")) as sup:
        trace.up = True

        async def slow() -> None:
            with trio.move_on_after(1):
                await trace.attempt(
                    "start", sup.start_child(child(TracedActor, trace, "b", 3, id="b"))
                )
            with trio.move_on_after(4):
                trace.say(
                    await trace.attempt(
                        "start", sup.start_child(child(TracedActor, trace, "b", 1, id="b"))
                    )
                )

        async def others() -> None:
            trace.say(await trace.attempt("start", sup.start_child(child(Unborn, trace, "u"))))
            trace.say(
                await trace.attempt("start", sup.start_child(child(fails, restart="temporary")))
            )
            trace.say(await trace.attempt("terminate", sup.terminate_child("a")))
            trace.say(await trace.attempt("restart", sup.restart_child("a")))
            trace.say(await trace.attempt("delete", sup.delete_child("a")))
            trace.say(await trace.attempt("terminate", sup.terminate_child("nobody")))

        await together(slow, others)
        # It comes up in the very tick in which its caller gives up.
        started = ""
        with trio.move_on_after(1):
            spec = child(TracedActor, trace, "e", 1, id="e")
            started = await trace.attempt("start", sup.start_child(spec))
        await trio.sleep(1)
        trace.check(trace.lives("e") == (started == "done"), "P11: half a start")
    trace.say(*sorted(trace.refs))


async def nested(trace: ScenarioTrace) -> None:
    inner = Supervisor(
        child(TracedActor, trace, "x", id="x"),
        child(TracedActor, trace, "y", 0.1, id="y"),
        name="inner",
        max_restarts=0,
    )
    middle = Supervisor(
        child(TracedActor, trace, "m", id="m"), inner, name="middle", max_restarts=1
    )
    async with Supervisor(middle, child(TracedActor, trace, "z", id="z"), name="outer") as sup:
        trace.up = True
        # The inner one gives up and is restarted.
        trace.cast("x", CrashCast())
        await trio.sleep(1)
        trace.say(await trace.ask(trace.ref("x"), EchoCall(1)))
        # The middle one, too.
        trace.cast("y", CrashCast())
        await trio.sleep(1)
        trace.say(await trace.ask(trace.ref("m"), EchoCall(2)))
        trace.say(sup.which_children()[0].restarts, len(trace.refs["m"]), len(trace.refs["x"]))


async def dynamic(trace: ScenarioTrace) -> None:
    async with DynamicSupervisor(max_children=3) as pool:
        trace.up = True

        def start(key: str, init: float = 0.0) -> Awaitable[str]:
            return trace.attempt(
                "start", pool.start_child(child(TracedActor, trace, key, init, id=key))
            )

        async def short() -> None:
            with trio.move_on_after(0.5):
                await start("late", 3)
            trace.say("late", await start("late"))

        async def a() -> None:
            trace.say("a", await start("a"))
            trace.cast("a", CrashCast())

        async def b() -> None:
            trace.say("b", await start("b", 0.2))
            trace.say("end of b", await trace.attempt("terminate", pool.terminate_child("b")))

        await together(short, a, b)
        trace.say("b again", await start("b"))
        trace.say("one too many", await start("d"))
        if "a" in trace.refs:
            trace.say("a", await trace.ask(trace.ref("a"), EchoCall(1)))
        await trace.attempt("terminate", pool.terminate_child("b"))
        # It comes up in the very tick in which its caller gives up.
        started = ""
        with trio.move_on_after(1):
            started = await start("e", 1)
        await trio.sleep(1)
        trace.check(trace.lives("e") == (started == "done"), "P11: half a start")
        trace.cast("a", CrashCast())


async def tasks(trace: ScenarioTrace) -> None:
    async def double(n: int) -> int:
        await trio.sleep(n / 10)
        if n == 3:
            raise ScenarioCrashError
        return 2 * n

    class Owner(TracedActor):
        async def handle_call(self, message: object, caller: object) -> object:
            run = await pool.async_nolink(double, 1)
            unheard = await pool.async_nolink(double, 3)
            await self.trace.attempt("result", run.result())
            self.trace.say(unheard.done)
            return 7

        async def handle_info(self, message: object) -> None:
            self.trace.say("told of", type(message).__name__)

    pool = TaskSupervisor(name="pool")
    async with Supervisor(pool, child(Owner, trace, "owner")):
        trace.up = True

        async def ask() -> None:
            await trace.ask(trace.ref("owner"), EchoCall(7))

        async def wait() -> None:
            crashed = await pool.async_nolink(double, 3)
            ended = await pool.async_nolink(double, 1)
            endless = await pool.async_nolink(double, 1000)
            trace.say(await trace.attempt("result", ended.result()))
            endless.cancel()
            trace.say(await trace.attempt("result", endless.result()))
            trace.say(await trace.attempt("result", crashed.result()))

        async def wait_in_vain() -> None:
            await trace.attempt("runs", wait())

        await together(ask, wait_in_vain)

        async def all_of_them() -> None:
            async with pool.stream(
                double, range(6), max_concurrency=2, return_exceptions=True
            ) as results:
                trace.say(
                    *[value if isinstance(value, int) else "crash" async for value in results]
                )

        await trace.attempt("stream", all_of_them())

        async def first() -> None:
            async with pool.stream(double, [1, 1000, 1000], ordered=False) as some:
                trace.say(await anext(some))

        await trace.attempt("stream", first())


async def deaf(trace: ScenarioTrace) -> None:
    """Farewells that take too long are cut short."""
    began = trio.current_time()
    try:
        async with Supervisor(
            child(TracedActor, trace, "a", 0.0, 100.0, id="a", shutdown=1),
            child(TracedActor, trace, "b", 0.0, 100.0, id="b", shutdown="brutal_kill"),
            DynamicSupervisor(name="pool"),
            child(TracedActor, trace, "c", 0.0, 100.0, id="c", shutdown=2),
        ) as sup:
            trace.up = True
            pool = sup.which_children()[2].ref
            assert pool is not None
            pool.kill()
            # It ends by itself, without a request.
            trace.cast("a", CrashCast())
            await trio.sleep(1.5)
        trace.say(*trace.farewells)
    finally:
        took = trio.current_time() - began
        trace.check(took <= 4.501, f"P10: it took {took} s")


class SupervisorScenario(NamedTuple):
    """One program, what it says, in whatever order, and in which one its actors say farewell."""

    run: Callable[[ScenarioTrace], Awaitable[None]]
    says: str
    farewells: str = ""

    @property
    def name(self) -> str:
        return self.run.__name__


SCENARIOS = [
    SupervisorScenario(ordered, "1, 2, 4, c b a", "cba"),
    SupervisorScenario(group_restart, "ActorDown, 2, a running 1 b stopped 1 c running 1"),
    SupervisorScenario(storm, "gave up after 3 1"),
    SupervisorScenario(pool_storm, "gave up supervisor, 3"),
    SupervisorScenario(patience, "False, False, 1"),
    SupervisorScenario(
        orders, "StartFailed, done, done, done, done, ChildRunning, UnknownChild, a b e u"
    ),
    SupervisorScenario(nested, "1, 2, 1 2 3"),
    SupervisorScenario(
        dynamic,
        "a done, b done, end of b done, late done, b again done, one too many MaxChildren, a 1",
    ),
    SupervisorScenario(
        tasks, "2, False, TaskCancelled, TaskCrashed, told of Down, 0 2 4 crash 8 10, 2"
    ),
    SupervisorScenario(deaf, "a c a"),
    SupervisorScenario(calls, "4 CallTimeout, 1 1, 2 2, 5 ActorDown, 6 ActorDown, 9"),
    SupervisorScenario(foreman, "1, done, done, 2"),
    SupervisorScenario(
        monitors,
        "crashed, normal, t heard an exit, t heard an exit, t heard an exit, 3, t member-1",
    ),
    SupervisorScenario(registry, "1, StartFailed, ActorDown, 3, 1"),
    SupervisorScenario(last_words, "1, 2", "ba"),
]
