"""Sample program for type checkers, which is also run."""

from __future__ import annotations

from typing import assert_type

import trio

from sessionmgr.otp import (
    Actor,
    Call,
    Caller,
    Cast,
    ChildSpec,
    DynamicSupervisor,
    ExitReason,
    Monitor,
    Ref,
    Registry,
    Stream,
    Supervisor,
    TaskCrashed,
    TaskHandle,
    TaskSupervisor,
    Via,
    child,
)


class Get(Call[int]):
    key: str


class Names(Call[list[str]]):
    pass


class Add(Cast):
    key: str
    amount: int = 1


class Counter(Actor):
    def __init__(self, start: int = 0) -> None:
        self.counts: dict[str, int] = {}
        self.start = start

    async def handle_call(self, message: object, caller: Caller) -> object:
        match message:
            case Get(key):
                assert_type(key, str)
                return self.start + self.counts.get(key, 0)
            case Names():
                return sorted(self.counts)
            case _:
                return None

    async def handle_cast(self, message: Cast) -> None:
        match message:
            case Add(key, amount):
                assert_type(amount, int)
                self.counts[key] = self.counts.get(key, 0) + amount
            case _:
                pass


class Special(Counter):
    pass


async def double(number: int) -> str:
    await trio.lowlevel.checkpoint()
    return str(2 * number)


async def calls(counter: Ref[Counter]) -> int:
    assert_type(await counter.call(Get("a")), int)
    assert_type(await counter.call(Names(), timeout=None), list[str])
    counter.cast(Add("a"))
    counter.cast(Add("a", amount=2))
    # A call is no cast, a cast no call; neither takes what it has no field for.
    if not counter.alive:
        counter.cast(Get("a"))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        await counter.call(Add("a"))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        counter.cast(Add(1))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        Get(1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    return await counter.call(Get("a"))


async def children(sup: Supervisor, pool: DynamicSupervisor) -> int:
    assert_type(child(Counter, 3), ChildSpec[Counter])
    assert_type(child(double, 3), ChildSpec[Actor])
    assert_type(sup.ref("counter"), Ref[Actor])
    assert_type(sup.ref("counter", Counter), Ref[Counter])
    assert_type(await pool.start_child(child(Counter, 3)), Ref[Counter])
    special = await sup.start_child(child(Special, 10, restart="temporary"))
    assert_type(special, Ref[Special])
    # A reference to a special one is a reference to one.
    return await calls(special)


async def names(registry: Registry) -> int:
    assert_type(registry.via("x"), Via[Actor])
    counter = registry.via("x", Counter)
    assert_type(counter, Via[Counter])
    assert_type(await counter.wait(), ExitReason)
    return len(registry.lookup("x"))


async def tasks(supervisor: TaskSupervisor) -> list[str]:
    run = await supervisor.async_nolink(double, 21)
    assert_type(run, TaskHandle[str])
    result = await run.result()
    assert_type(result, str)
    async with supervisor.stream(double, [1, 2]) as results:
        assert_type(results, Stream[str])
        values = [value async for value in results]
    async with supervisor.stream(double, [3], return_exceptions=True) as mixed:
        async for value in mixed:
            assert_type(value, str | TaskCrashed)
    # What a function does not take, it is not given.
    if values == []:
        await supervisor.async_nolink(double, "x")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    return [result, *values]


async def main() -> list[object]:
    registry = Registry()
    seen: list[object] = []
    async with (
        Supervisor(child(Counter, id="counter")) as sup,
        DynamicSupervisor() as pool,
        TaskSupervisor() as supervisor,
    ):
        seen.append(await children(sup, pool))
        seen.append(await names(registry))
        seen.append(await tasks(supervisor))
    return seen


def monitors(ref: Ref[Counter]) -> Monitor:
    """Be read only: outside of an actor this is an error."""
    monitor = ref.monitor()
    assert_type(monitor, Monitor)
    return monitor
