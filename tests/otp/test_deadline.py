"""Deadlines of calls."""

from __future__ import annotations

import gc
import math
from collections.abc import Awaitable, Callable
from typing import cast

import pytest
import trio
from hypothesis import given, strategies as st
from trio.testing import wait_all_tasks_blocked

from sessionmgr.otp import NOREPLY, Caller, CallTimeout, OtpError, Ref, Supervisor, child
from tests.otp.puppets import Puppet, RunCall, in_virtual_time, inside


async def never(_puppet: Puppet, _caller: Caller) -> object:
    return NOREPLY


async def slowly(_puppet: Puppet, _caller: Caller) -> str:
    await trio.sleep(80_000)
    return "at last"


@given(
    waits=st.lists(
        st.tuples(
            st.integers(0, 5),
            st.sampled_from([0, 0.5, 60]) | st.integers(0, 400).map(lambda quarters: quarters / 4),
        ),
        max_size=20,
    ),
    schedule=st.random_module(),
)
def test_every_call_times_out_at_its_own_time(
    waits: list[tuple[int, float]], schedule: object
) -> None:
    ended: list[tuple[float, float, float]] = []

    async def ask(ref: Ref[Puppet], start: float, seconds: float) -> None:
        await trio.sleep(start)
        began = trio.current_time()
        with pytest.raises(CallTimeout):
            await ref.call(RunCall(never), timeout=seconds)
        ended.append((began, seconds, trio.current_time()))

    async def main() -> int:
        async with Supervisor(child(Puppet, id="p")) as sup:
            async with trio.open_nursery() as nursery:
                for start, seconds in waits:
                    nursery.start_soon(ask, sup.ref("p", Puppet), start, seconds)
            await wait_all_tasks_blocked()
            return size_of_table(sup)
        raise AssertionError

    assert in_virtual_time(main) == 0
    assert len(ended) == len(waits)
    assert all(end == began + seconds for began, seconds, end in ended)


def size_of_table(sup: Supervisor) -> int:
    """Count what the table of deadlines holds."""
    held: list[object] = list(vars(sup.deadlines).values())
    return sum(len(cast("dict[object, object]", it)) for it in held if isinstance(it, dict))


async def test_an_answered_call_leaves_the_table(autojump_clock: object) -> None:
    async with Supervisor(child(Puppet, id="p")) as sup:
        ref = sup.ref("p", Puppet)
        for seconds in range(1, 20):
            assert await ref.call(RunCall(_one), timeout=seconds / 3) == 1
        # In a task of its own, which takes the traceback of its cancel with it.
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_be_cancelled, ref, never, 1)
        gc.collect()
        assert not [thing for thing in gc.get_objects() if isinstance(thing, Caller)]
        await trio.sleep(100)
        assert size_of_table(sup) == 0


async def _one(_puppet: Puppet, _caller: Caller) -> int:
    return 1


@pytest.mark.parametrize("ever", [None, math.inf])
async def test_without_a_timeout_a_call_waits_for_ever(
    ever: float | None, autojump_clock: object
) -> None:
    async with Supervisor(child(Puppet, id="p")) as sup:
        answer = await sup.ref("p", Puppet).call(RunCall(slowly), timeout=ever)
        assert answer == "at last"
    assert trio.current_time() >= 80_000


async def test_a_call_waits_five_seconds_unless_it_says_otherwise(autojump_clock: object) -> None:
    async with Supervisor(child(Puppet, id="p")) as sup:
        began = trio.current_time()
        with pytest.raises(CallTimeout):
            await sup.ref("p", Puppet).call(RunCall(never))
        assert trio.current_time() - began == 5.0


async def test_a_timeout_is_one_of_trios_and_one_of_ours(autojump_clock: object) -> None:
    async with Supervisor(child(Puppet, id="p"), name="root") as sup:
        with pytest.raises(trio.TooSlowError) as too_slow:
            await sup.ref("p", Puppet).call(RunCall(never), timeout=0.25)
        error = too_slow.value
        assert isinstance(error, CallTimeout)
        assert isinstance(error, OtpError)
        assert str(error).startswith("root/p did not answer RunCall(")
        assert str(error).endswith(" within 0.25 s")
        assert error.timeout == 0.25


async def test_the_time_in_which_a_call_waits_for_room_counts(autojump_clock: object) -> None:
    class Small(Puppet):
        mailbox = 1

    async with Supervisor(child(Small, id="p", shutdown="brutal_kill")) as sup:
        ref = sup.ref("p", Small)
        async with trio.open_nursery() as nursery:
            for patience in (20, 30):
                nursery.start_soon(_be_cancelled, ref, slowly, patience)
                await wait_all_tasks_blocked()
            assert ref.statistics().mailbox == 1
            with pytest.raises(CallTimeout):
                await inside_within(ref, 2)
            assert trio.current_time() == 2.0
            assert ref.statistics().tasks_waiting_send == 0
            nursery.cancel_scope.cancel()


async def _be_cancelled(
    ref: Ref[Puppet], deed: Callable[[Puppet, Caller], Awaitable[object]], patience: float
) -> None:
    with trio.move_on_after(patience):
        await ref.call(RunCall(deed), timeout=100)


async def inside_within(ref: Ref[Puppet], seconds: float) -> object:
    return await ref.call(RunCall(_one), timeout=seconds)


async def test_actors_of_another_tree_keep_their_own_deadlines(autojump_clock: object) -> None:
    async def ask_over(_puppet: Puppet, _caller: Caller) -> float:
        with pytest.raises(CallTimeout):
            await far.call(RunCall(never), timeout=1)
        return trio.current_time()

    async with Supervisor(child(Puppet, id="far")) as there:
        far = there.ref("far", Puppet)
        async with Supervisor(child(Puppet, id="near")) as here:
            assert await here.ref("near", Puppet).call(RunCall(ask_over)) == 1.0
        assert await inside(far, lambda _: "lives") == "lives"


async def test_a_child_may_call_with_a_timeout_before_the_tree_is_up(
    autojump_clock: object,
) -> None:
    ends: list[float] = []

    async def first_thing(task_status: trio.TaskStatus[None]) -> None:
        with pytest.raises(CallTimeout):
            await silent.call(RunCall(never), timeout=2)
        ends.append(trio.current_time())
        task_status.started()
        await trio.sleep_forever()

    async with Supervisor(child(Puppet, id="silent")) as there:
        silent = there.ref("silent", Puppet)
        async with Supervisor(first_thing):
            pass
    assert ends == [2.0]


async def test_timeouts_that_are_all_different_do_not_pile_up(autojump_clock: object) -> None:
    async with Supervisor(child(Puppet, id="p")) as sup:
        for number in range(2000):
            await sup.ref("p", Puppet).call(RunCall(_one), timeout=3600 + number / 1000)
        assert size_of_table(sup) < 1000
