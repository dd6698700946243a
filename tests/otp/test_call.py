"""Calls whose caller or callee ends before the answer."""

from __future__ import annotations

import contextlib

import pytest
import trio
from hypothesis import given, strategies as st
from trio.testing import wait_all_tasks_blocked

from sessionmgr.otp import (
    NOREPLY,
    ActorDown,
    Caller,
    CallTimeout,
    Crashed,
    DynamicSupervisor,
    Killed,
    Ref,
    Supervisor,
    child,
)
from tests.otp.puppets import CrashError, Puppet, RunCall, RunCast, crash, in_virtual_time, inside


@pytest.mark.parametrize("gone", ["timeout", "cancel"])
async def test_p14_a_reply_after_the_caller_has_gone_is_dropped_and_harms_nobody(
    gone: str, autojump_clock: object
) -> None:
    async def slow(_puppet: Puppet, _caller: Caller) -> str:
        await trio.sleep(2)
        return "late"

    async with Supervisor(child(Puppet, id="p"), max_restarts=0) as sup:
        ref = sup.ref("p", Puppet)
        if gone == "timeout":
            with pytest.raises(CallTimeout):
                await ref.call(RunCall(slow), timeout=1)
        else:
            with trio.move_on_after(1):
                await ref.call(RunCall(slow))
        assert await inside(ref, lambda _: "in time") == "in time"
        assert trio.current_time() == 2.0


@pytest.mark.parametrize("gone", ["timeout", "cancel"])
@pytest.mark.parametrize("room", [1, 1024])
async def test_p15_a_request_whose_caller_left_before_it_began_is_never_executed(
    gone: str, room: int, autojump_clock: object
) -> None:
    class Small(Puppet):
        mailbox = room

    begun: list[float] = []

    async def busy(_puppet: Puppet) -> None:
        await trio.sleep(5)

    async def work(_puppet: Puppet, _caller: Caller) -> None:
        begun.append(trio.current_time())

    async def ask(ref: Ref[Puppet], seconds: float) -> None:
        if gone == "timeout":
            with contextlib.suppress(CallTimeout):
                await ref.call(RunCall(work), timeout=seconds)
        else:
            with trio.move_on_after(seconds):
                await ref.call(RunCall(work), timeout=None)

    async with Supervisor(child(Small, id="p"), max_restarts=0) as sup:
        ref = sup.ref("p", Small)
        ref.cast(RunCast(busy))
        await wait_all_tasks_blocked()
        async with trio.open_nursery() as nursery:
            for seconds in (1, 2, 3, 7, 8):
                nursery.start_soon(ask, ref, seconds)
    assert begun == [5.0, 5.0]


@pytest.mark.parametrize("gone", ["timeout", "cancel"])
async def test_p15_a_request_that_had_begun_runs_to_its_end(
    gone: str, autojump_clock: object
) -> None:
    steps: list[float] = []

    async def work(_puppet: Puppet, caller: Caller) -> None:
        for _ in range(3):
            await trio.sleep(1)
            steps.append(trio.current_time())
        assert not caller.waiting

    async with Supervisor(child(Puppet, id="p"), max_restarts=0) as sup:
        ref = sup.ref("p", Puppet)
        if gone == "timeout":
            with pytest.raises(CallTimeout):
                await ref.call(RunCall(work), timeout=1.5)
        else:
            with trio.move_on_after(1.5):
                await ref.call(RunCall(work))
        await inside(ref, lambda _: None)
    assert steps == [1.0, 2.0, 3.0]


@given(callers=st.integers(1, 6), room=st.integers(1, 4), schedule=st.random_module())
def test_p16_a_crash_fails_the_call_and_all_that_wait_behind_it(
    callers: int, room: int, schedule: object
) -> None:
    class Small(Puppet):
        mailbox = room

    failures: list[ActorDown] = []

    async def fall(_puppet: Puppet, _caller: Caller) -> int:
        await trio.sleep(1)
        raise CrashError

    async def ask(ref: Ref[Puppet]) -> None:
        try:
            await ref.call(RunCall(fall))
        except ActorDown as down:
            failures.append(down)

    async def main() -> object:
        async with Supervisor(child(Small, id="p", restart="temporary")) as sup:
            ref = sup.ref("p", Small)
            async with trio.open_nursery() as nursery:
                for _ in range(callers):
                    nursery.start_soon(ask, ref)
            assert trio.current_time() == 1.0
            return await ref.wait()
        raise AssertionError

    reason = in_virtual_time(main)
    assert isinstance(reason, Crashed)
    assert isinstance(reason.error, CrashError)
    assert len(failures) == callers
    assert {(down.reason, down.__cause__, down.who) for down in failures} == {
        (reason, reason.error, "supervisor/p")
    }


async def test_p16_a_crash_fails_the_calls_that_were_put_off(autojump_clock: object) -> None:
    async def put_off(_puppet: Puppet, _caller: Caller) -> object:
        return NOREPLY

    async with Supervisor(child(Puppet, id="p", restart="temporary")) as sup:
        ref = sup.ref("p", Puppet)

        async def ask() -> None:
            with pytest.raises(ActorDown) as down:
                await ref.call(RunCall(put_off), timeout=None)
            assert isinstance(down.value.__cause__, CrashError)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            nursery.start_soon(ask)
            await wait_all_tasks_blocked()
            ref.cast(RunCast(crash))


async def test_a_call_to_the_dead_says_of_what_they_died(autojump_clock: object) -> None:
    async with Supervisor(child(Puppet, id="p", restart="temporary")) as sup:
        ref = sup.ref("p", Puppet)
        ref.cast(RunCast(crash))
        reason = await ref.wait()
        with pytest.raises(ActorDown, match=r"^supervisor/p is down: crashed \(CrashError") as down:
            await inside(ref, lambda _: None)
        assert down.value.reason == reason
        assert isinstance(down.value.__cause__, CrashError)
        with pytest.raises(ActorDown):
            await ref.send("hello")


async def test_a_call_to_the_killed_has_no_cause(autojump_clock: object) -> None:
    async with Supervisor(child(Puppet, id="p", restart="temporary")) as sup:
        ref = sup.ref("p", Puppet)
        ref.kill()
        with pytest.raises(ActorDown) as down:
            await inside(ref, lambda _: None)
        assert (down.value.reason, down.value.__cause__) == (Killed(), None)


async def test_an_actor_that_has_not_begun_takes_messages(autojump_clock: object) -> None:
    class Late(Puppet):
        async def init(self) -> None:
            await trio.sleep(3)

    async with DynamicSupervisor() as crew, trio.open_nursery() as nursery:
        nursery.start_soon(crew.start_child, child(Late, id="late"))
        await wait_all_tasks_blocked()
        ref = crew.ref("late", Late)
        assert ref.statistics().state == "starting"
        assert await ref.call(RunCall(answer_at_last)) == "at last"


async def answer_at_last(_puppet: Puppet, _caller: Caller) -> str:
    await trio.lowlevel.checkpoint()
    return "at last"
