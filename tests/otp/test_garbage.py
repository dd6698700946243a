"""Garbage: a reference alone keeps neither the actor nor its messages."""

from __future__ import annotations

import gc
import weakref

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from sessionmgr.otp import (
    NOREPLY,
    Actor,
    Call,
    Caller,
    CallTimeout,
    Cast,
    Continue,
    ExitReason,
    Ref,
    Supervisor,
    TaskSupervisor,
    child,
)


class Freight:
    """Something heavy."""


class Load(Cast):
    freight: Freight


class Weigh(Call[object]):
    freight: Freight


class Carrier(Actor):
    """Holds what it is given until the next message."""

    def __init__(self, born: list[weakref.ref[Carrier]]) -> None:
        self.freight = Freight()
        born.append(weakref.ref(self))

    async def handle_call(self, message: object, caller: Caller) -> object:
        return NOREPLY

    async def handle_cast(self, message: Cast) -> Continue:
        return Continue(message)

    async def handle_continue(self, arg: object) -> None:
        await trio.lowlevel.checkpoint()

    async def handle_info(self, message: object) -> None:
        await trio.lowlevel.checkpoint()

    async def terminate(self, reason: ExitReason) -> None:
        await trio.lowlevel.checkpoint()


def load(ref: Ref[Carrier], how: str) -> weakref.ref[Freight]:
    """Send freight, and remember it without holding it."""
    freight = Freight()
    ref.cast(Load(freight)) if how == "cast" else ref.post(freight)
    return weakref.ref(freight)


async def weigh(ref: Ref[Carrier], freight: list[weakref.ref[Freight]]) -> None:
    message = Weigh(Freight())
    freight.append(weakref.ref(message.freight))
    try:
        await ref.call(message, timeout=1)
    except CallTimeout:
        del message


@pytest.mark.parametrize("how", ["cast", "info"])
async def test_an_idle_actor_does_not_hold_its_last_message(
    how: str, autojump_clock: object
) -> None:
    async with Supervisor(child(Carrier, [], id="carrier")) as sup:
        freight = load(sup.ref("carrier", Carrier), how)
        assert freight() is not None
        await wait_all_tasks_blocked()
        gc.collect()
        assert freight() is None


async def test_a_call_that_timed_out_is_forgotten(autojump_clock: object) -> None:
    freight: list[weakref.ref[Freight]] = []
    async with Supervisor(child(Carrier, [], id="carrier")) as sup:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(weigh, sup.ref("carrier", Carrier), freight)
        gc.collect()
        assert freight[0]() is None


@pytest.mark.parametrize("how", ["stop", "kill", "terminate_child", "block ends"])
async def test_the_reference_of_a_dead_actor_holds_neither_it_nor_its_messages(
    how: str, autojump_clock: object
) -> None:
    born: list[weakref.ref[Carrier]] = []
    freight: list[weakref.ref[Freight]] = []
    refs: list[Ref[Carrier]] = []
    async with Supervisor(child(Carrier, born, id="carrier", restart="temporary")) as sup:
        ref = sup.ref("carrier", Carrier)
        refs.append(ref)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(weigh, ref, freight)
            await wait_all_tasks_blocked()
            freight.extend(load(ref, kind) for kind in ("cast", "info", "cast"))
        if how == "stop":
            ref.stop()
        elif how == "kill":
            ref.kill()
        elif how == "terminate_child":
            await sup.terminate_child("carrier")
        freight.extend(load(ref, kind) for kind in ("cast", "info"))
        await wait_all_tasks_blocked()
        if how != "block ends":
            gc.collect()
            assert born[0]() is None
    gc.collect()
    assert (len(born), len(freight), len(refs)) == (1, 6, 1)
    assert [one() for one in born] == [None]
    assert [one() for one in freight] == [None] * 6
    assert not refs[0].alive
    assert refs[0].statistics().state == "stopped"


async def test_a_task_that_has_ended_is_garbage_but_for_its_result(
    autojump_clock: object,
) -> None:
    async def carry() -> str:
        freight = Freight()
        seen.append(weakref.ref(freight))
        await trio.lowlevel.checkpoint()
        return "carried"

    seen: list[weakref.ref[Freight]] = []
    async with TaskSupervisor() as tasks:
        run = await tasks.async_nolink(carry)
        assert await run.result() == "carried"
        gc.collect()
        assert seen[0]() is None
        assert await run.result() == "carried"
