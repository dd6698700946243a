"""Bound of a mailbox: its room, the tasks that wait for it, and their order."""

from __future__ import annotations

import contextlib
from typing import Literal, NamedTuple

import pytest
import trio
from hypothesis import given, strategies as st
from trio.testing import wait_all_tasks_blocked

from sessionmgr.otp import (
    Actor,
    ActorDown,
    Call,
    Caller,
    CallTimeout,
    Cast,
    Killed,
    MailboxFull,
    Monitor,
    Ref,
    Supervisor,
    TaskSupervisor,
    child,
)
from tests.otp.puppets import Puppet, RunCall, RunCast, in_virtual_time, inside

How = Literal["cast", "post", "send", "call"]


class QueuedCast(Cast):
    number: int


class QueuedCall(Call[int]):
    number: int


class Gatekeeper(Actor):
    """Handles one message for each time that its gate is opened."""

    def __init__(self, gate: trio.Semaphore, handled: list[int]) -> None:
        self.gate = gate
        self.handled = handled

    async def pass_through(self, number: int) -> int:
        self.handled.append(number)
        await self.gate.acquire()
        return number

    async def handle_call(self, message: object, caller: Caller) -> object:
        assert isinstance(message, QueuedCall)
        return await self.pass_through(message.number)

    async def handle_cast(self, message: Cast) -> None:
        assert isinstance(message, QueuedCast)
        await self.pass_through(message.number)

    async def handle_info(self, message: object) -> None:
        assert isinstance(message, int)
        await self.pass_through(message)


class MailboxModel:
    """What should become of messages: a queue, a line of those who wait, one being handled."""

    def __init__(self, bound: int) -> None:
        self.bound = bound
        self.queue: list[int] = []
        self.line: list[int] = []
        self.handled: list[int] = []
        self.busy = False

    def arrive(self, number: int, waits: bool) -> bool:
        """Say whether there was room, or a place in the line."""
        if len(self.queue) < self.bound:
            self.queue.append(number)
        elif waits:
            self.line.append(number)
        else:
            return False
        self.settle()
        return True

    def leave(self, number: int) -> None:
        for place in (self.queue, self.line):
            if number in place:
                place.remove(number)
        self.settle()

    def finish_one(self) -> None:
        self.busy = False
        self.settle()

    def settle(self) -> None:
        if not self.busy and self.queue:
            self.handled.append(self.queue.pop(0))
            self.busy = True
        while self.line and len(self.queue) < self.bound:
            self.queue.append(self.line.pop(0))


class Arrival(NamedTuple):
    how: How


class Departure(NamedTuple):
    """One of those who wait, for room or for an answer, goes away."""

    which: int


class Opening(NamedTuple):
    """The handler that is at work ends."""


events = st.one_of(
    st.builds(Arrival, st.sampled_from(["cast", "post", "send", "call", "call"])),
    st.builds(Departure, st.integers(0, 30)),
    st.builds(Opening),
)


@given(script=st.lists(events, max_size=30), bound=st.integers(1, 4))
def test_p23_the_mailbox_is_bounded_and_room_goes_to_whoever_waits_longest(
    script: list[Arrival | Departure | Opening], bound: int
) -> None:
    handled: list[int] = []
    model = MailboxModel(bound)
    scopes: dict[int, trio.CancelScope] = {}

    class Bounded(Gatekeeper):
        mailbox = bound

    async def speak(ref: Ref[Bounded], how: How, number: int) -> None:
        with trio.CancelScope() as scopes[number]:
            if how == "send":
                await ref.send(number)
            else:
                await ref.call(QueuedCall(number), timeout=None)
        del scopes[number]

    async def arrive(ref: Ref[Bounded], nursery: trio.Nursery, how: How, number: int) -> None:
        if how in ("send", "call"):
            nursery.start_soon(speak, ref, how, number)
            await wait_all_tasks_blocked()
            model.arrive(number, waits=True)
            return
        welcome = True
        try:
            ref.cast(QueuedCast(number)) if how == "cast" else ref.post(number)
        except MailboxFull:
            welcome = False
        assert welcome == model.arrive(number, waits=False)

    async def main() -> None:
        gate = trio.Semaphore(0)
        spec = child(Bounded, gate, handled, id="small")
        async with Supervisor(spec, max_restarts=0) as sup, trio.open_nursery() as nursery:
            ref = sup.ref("small", Bounded)
            for number, event in enumerate(script):
                match event:
                    case Arrival(how):
                        await arrive(ref, nursery, how, number)
                    case Departure(which):
                        for waiting in sorted(scopes)[which : which + 1]:
                            scopes[waiting].cancel()
                            model.leave(waiting)
                    case Opening() if model.busy:
                        gate.release()
                        model.finish_one()
                    case Opening():
                        pass
                await wait_all_tasks_blocked()
                assert ref.statistics().mailbox <= bound
                assert handled == model.handled
            while model.busy:
                gate.release()
                model.finish_one()
                await wait_all_tasks_blocked()
            assert handled == model.handled
            assert scopes == {}

    in_virtual_time(main)


class Small(Puppet):
    """A puppet with room for two messages."""

    mailbox = 2


async def sleep(_puppet: Puppet) -> None:
    await trio.sleep(10)


async def test_p23_a_cast_that_finds_no_room_changes_nothing(autojump_clock: object) -> None:
    async with Supervisor(child(Small, id="small")) as sup:
        ref = sup.ref("small", Small)
        for _ in range(2):
            ref.cast(RunCast(sleep))
        before = ref.statistics()
        for _ in range(3):
            with pytest.raises(MailboxFull):
                ref.cast(RunCast(sleep))
        assert ref.statistics() == before
        assert (before.mailbox, before.mailbox_bound) == (2, 2)


async def test_p23_a_call_waits_for_room(autojump_clock: object) -> None:
    async with Supervisor(child(Small, id="small")) as sup:
        ref = sup.ref("small", Small)
        for _ in range(2):
            ref.cast(RunCast(sleep))
        assert await ref.call(RunCall(_now), timeout=None) == 20.0


async def _now(_puppet: Puppet, _caller: Caller) -> float:
    return trio.current_time()


@pytest.mark.parametrize("gone", ["cancel", "timeout"])
async def test_p23_calls_that_were_given_up_make_room(gone: str, autojump_clock: object) -> None:
    async def give_up(ref: Ref[Small]) -> None:
        with trio.move_on_after(1 if gone == "cancel" else 60), contextlib.suppress(CallTimeout):
            await ref.call(RunCall(_now), timeout=60 if gone == "cancel" else 1)

    async with Supervisor(child(Small, id="small")) as sup:
        ref = sup.ref("small", Small)
        ref.cast(RunCast(sleep))
        await wait_all_tasks_blocked()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(give_up, ref)
            nursery.start_soon(give_up, ref)
            await wait_all_tasks_blocked()
            with pytest.raises(MailboxFull):
                ref.cast(RunCast(sleep))
        ref.cast(RunCast(sleep))
        ref.cast(RunCast(sleep))
        with pytest.raises(MailboxFull):
            ref.cast(RunCast(sleep))


async def test_p23_those_who_wait_for_room_hear_that_the_actor_has_ended(
    autojump_clock: object,
) -> None:
    heard: list[object] = []

    async def insist(ref: Ref[Small]) -> None:
        try:
            await ref.send("hello")
        except ActorDown as down:
            heard.append(down.reason)

    async with Supervisor(child(Small, id="small", restart="temporary")) as sup:
        ref = sup.ref("small", Small)
        for _ in range(2):
            ref.cast(RunCast(sleep))
        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(insist, ref)
            await wait_all_tasks_blocked()
            assert ref.statistics().tasks_waiting_send == 4
            ref.kill()
    assert heard == [Killed()] * 4


async def test_news_of_the_system_find_room_where_there_is_none(autojump_clock: object) -> None:
    async def watch_and_sleep(puppet: Puppet) -> None:
        victim.monitor()
        puppet.ref.post("one")
        puppet.ref.post("two")
        await trio.sleep(1)

    async with Supervisor(child(Small, id="small"), child(Puppet, id="victim")) as sup:
        ref, victim = sup.ref("small", Small), sup.ref("victim")
        ref.cast(RunCast(watch_and_sleep))
        await wait_all_tasks_blocked()
        victim.kill()
        await wait_all_tasks_blocked()
        assert ref.statistics().mailbox == 3
        with pytest.raises(MailboxFull):
            ref.post("three")
        await trio.sleep(1)
        assert len(await inside(ref, lambda puppet: puppet.news)) == 3


@pytest.mark.parametrize("news", ["Down", "TaskDone"])
async def test_p23_news_taken_out_of_the_mailbox_make_room(
    news: str, autojump_clock: object
) -> None:
    class Tiny(Puppet):
        mailbox = 1

    async def hear_and_forget(puppet: Puppet) -> None:
        if news == "Down":
            monitor: Monitor = victim.monitor()
            victim.kill()
            await trio.sleep(1)
            monitor.cancel(flush=True)
        else:
            run = await tasks.async_nolink(trio.sleep, 0.5)
            await trio.sleep(1)
            await run.result()

    victims = child(Puppet, id="victim", restart="temporary")
    async with TaskSupervisor() as tasks, Supervisor(victims, child(Tiny, id="tiny")) as sup:
        tiny, victim = sup.ref("tiny", Tiny), sup.ref("victim")
        tiny.cast(RunCast(hear_and_forget))
        await trio.sleep(0.75)
        assert tiny.statistics().mailbox == 1
        await tiny.send("hello")
        assert trio.current_time() == 1.0
        assert await inside(tiny, lambda puppet: puppet.news) == ["hello"]


async def test_a_send_lets_others_run_also_where_there_is_room(autojump_clock: object) -> None:
    async with Supervisor(child(Puppet, id="p")) as sup:
        ref = sup.ref("p", Puppet)
        with trio.testing.assert_checkpoints():
            await ref.send("hello")
        with trio.CancelScope() as scope:
            scope.cancel()
            await ref.send("never sent")
        assert scope.cancelled_caught
        assert await inside(ref, lambda puppet: puppet.news) == ["hello"]
