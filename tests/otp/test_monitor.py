"""Monitors: exactly one `Down` for each, and none after a cancel with flush."""

from __future__ import annotations

from typing import NamedTuple

import pytest
import trio
from hypothesis import given, strategies as st
from trio.testing import wait_all_tasks_blocked

from sessionmgr.otp import (
    Caller,
    Crashed,
    Down,
    ExitReason,
    Killed,
    Monitor,
    NoProc,
    Normal,
    Ref,
    Registry,
    Shutdown,
    Supervisor,
    child,
)
from tests.otp.puppets import (
    CrashError,
    Puppet,
    RunCall,
    RunCast,
    crash,
    in_virtual_time,
    notifications_of,
    watch,
)


class MonitorStep(NamedTuple):
    target: int


class EndStep(NamedTuple):
    target: int
    how: str


class CancelStep(NamedTuple):
    which: int
    flush: bool


class HandleStep(NamedTuple):
    """Handle what has come meanwhile."""


Act = MonitorStep | EndStep | CancelStep | HandleStep
acts: st.SearchStrategy[Act] = st.one_of(
    st.builds(MonitorStep, st.integers(0, 1)),
    st.builds(EndStep, st.integers(0, 1), st.sampled_from(["crash", "kill", "stop", "shutdown"])),
    st.builds(CancelStep, st.integers(0, 3), st.booleans()),
    st.builds(HandleStep),
)


async def end(ref: Ref[Puppet], how: str) -> None:
    if how == "crash":
        ref.cast(RunCast(crash))
    elif how == "kill":
        ref.kill()
    else:
        ref.stop(Normal() if how == "stop" else Shutdown("enough"))
    await ref.wait()


class Wish(NamedTuple):
    """A monitor, whom it is for, and whether that was dead by then."""

    monitor: Monitor
    target: int
    too_late: bool


@given(script=st.lists(acts, max_size=20), schedule=st.random_module())
def test_p20_there_is_exactly_one_down_for_each_monitor_and_none_after_a_flush(
    script: list[Act], schedule: object
) -> None:
    wishes: list[Wish] = []
    # Monitors for which a Down must come, and must not.
    due: set[Monitor] = set()
    taken_back: set[Monitor] = set()
    reasons: dict[int, ExitReason] = {}
    heard: list[Down] = []

    async def main() -> None:
        targets = [child(Puppet, id=str(n), restart="temporary") for n in range(2)]
        async with Supervisor(child(Puppet, id="watcher"), *targets, max_restarts=0) as sup:
            watcher = sup.ref("watcher", Puppet)
            refs: list[Ref[Puppet]] = [sup.ref(str(n), Puppet) for n in range(2)]

            async def act_until_listening(puppet: Puppet, _caller: Caller) -> None:
                while script:
                    match script.pop(0):
                        case HandleStep():
                            return
                        case MonitorStep(target):
                            monitor = refs[target].monitor()
                            wishes.append(Wish(monitor, target, target in reasons))
                            due.add(monitor)
                        case EndStep(target, how) if target not in reasons:
                            await end(refs[target], how)
                            reasons[target] = await refs[target].wait()
                        case CancelStep(which, flush) if which < len(wishes):
                            wish = wishes[which]
                            wish.monitor.cancel(flush=flush)
                            heard_of = {it.monitor for it in puppet.news if isinstance(it, Down)}
                            in_time = flush or wish.target not in reasons
                            if wish.monitor not in heard_of and in_time:
                                taken_back.add(wish.monitor)
                        case _:
                            pass

            while script:
                await watcher.call(RunCall(act_until_listening), timeout=None)
            for number, ref in enumerate(refs):
                ref.kill()
                reasons.setdefault(number, await ref.wait())
            for news in await notifications_of(watcher):
                assert isinstance(news, Down)
                heard.append(news)

    in_virtual_time(main)
    expected = [
        Down(wish.monitor, wish.monitor.ref, NoProc() if wish.too_late else reasons[wish.target])
        for wish in wishes
        if wish.monitor not in taken_back
    ]
    assert len(heard) == len(expected)
    assert all(down in expected for down in heard)
    assert {down.monitor for down in heard} == due - taken_back


@pytest.mark.parametrize(
    ("how", "reason"),
    [("kill", Killed()), ("stop", Normal()), ("shutdown", Shutdown("enough"))],
)
async def test_down_says_why(how: str, reason: ExitReason, autojump_clock: object) -> None:
    targets = child(Puppet, id="target", restart="temporary")
    async with Supervisor(child(Puppet, id="watcher"), targets) as sup:
        watcher, target = sup.ref("watcher", Puppet), sup.ref("target", Puppet)
        monitor = await watch(watcher, target)
        await end(target, how)
        assert await notifications_of(watcher) == [Down(monitor, target, reason)]


async def test_down_carries_the_crash_itself(autojump_clock: object) -> None:
    targets = child(Puppet, id="target", restart="temporary")
    async with Supervisor(child(Puppet, id="watcher"), targets) as sup:
        watcher, target = sup.ref("watcher", Puppet), sup.ref("target", Puppet)
        await watch(watcher, target)
        await end(target, "crash")
        (down,) = await notifications_of(watcher)
        assert isinstance(down, Down)
        assert isinstance(down.reason, Crashed)
        assert isinstance(down.reason.error, CrashError)
        assert down.reason == await target.wait()


async def test_p20_a_monitor_of_the_dead_is_answered_at_once(autojump_clock: object) -> None:
    targets = child(Puppet, id="target", restart="temporary")
    async with Supervisor(child(Puppet, id="watcher"), targets) as sup:
        watcher, target = sup.ref("watcher", Puppet), sup.ref("target", Puppet)
        await end(target, "kill")
        monitor = await watch(watcher, target)
        assert await notifications_of(watcher) == [Down(monitor, target, NoProc())]
        assert trio.current_time() == 0.0


@pytest.mark.parametrize("flush", [False, True])
async def test_p20_a_down_that_waits_to_be_handled_is_taken_back_by_a_flush_only(
    flush: bool, autojump_clock: object
) -> None:
    async def watch_and_cancel(_puppet: Puppet, _caller: Caller) -> None:
        monitor = target.monitor()
        await end(target, "kill")
        monitor.cancel(flush=flush)
        monitor.cancel(flush=flush)

    targets = child(Puppet, id="target", restart="temporary")
    async with Supervisor(child(Puppet, id="watcher"), targets) as sup:
        watcher, target = sup.ref("watcher", Puppet), sup.ref("target", Puppet)
        await watcher.call(RunCall(watch_and_cancel))
        assert len(await notifications_of(watcher)) == (0 if flush else 1)


async def test_a_monitor_of_a_name_that_nobody_has_is_answered_at_once(
    autojump_clock: object,
) -> None:
    nobody = Registry().via("nobody")
    async with Supervisor(child(Puppet, id="watcher")) as sup:
        watcher = sup.ref("watcher", Puppet)
        monitor = await watch(watcher, nobody)
        assert await notifications_of(watcher) == [Down(monitor, nobody, NoProc())]
        assert await nobody.wait() == NoProc()


async def test_a_monitor_holds_for_one_incarnation_only(autojump_clock: object) -> None:
    async with Supervisor(child(Puppet, id="watcher"), child(Puppet, id="target")) as sup:
        watcher, first = sup.ref("watcher", Puppet), sup.ref("target", Puppet)
        await watch(watcher, first)
        await end(first, "kill")
        await wait_all_tasks_blocked()
        second = sup.ref("target", Puppet)
        assert second is not first
        await end(second, "kill")
        assert len(await notifications_of(watcher)) == 1


async def test_functions_and_supervisors_can_be_monitored(autojump_clock: object) -> None:
    async def brief() -> None:
        await trio.sleep(1)

    below = Supervisor(name="below")
    async with Supervisor(
        child(Puppet, id="watcher"),
        child(brief, id="brief", restart="temporary"),
        child(below, restart="temporary"),
    ) as sup:
        watcher = sup.ref("watcher", Puppet)
        for id in ("brief", "below"):
            await watch(watcher, sup.ref(id))
        await trio.sleep(2)
        await sup.terminate_child("below")
        downs = await notifications_of(watcher)
        assert [(down.ref.id, down.reason) for down in downs if isinstance(down, Down)] == [
            ("brief", Normal()),
            ("below", Shutdown()),
        ]


async def test_the_watchers_own_end_ends_its_wishes(autojump_clock: object) -> None:
    watchers = child(Puppet, id="watcher", restart="temporary")
    async with Supervisor(watchers, child(Puppet, id="target")) as sup:
        watcher, target = sup.ref("watcher", Puppet), sup.ref("target", Puppet)
        monitor = await watch(watcher, target)
        await watch(watcher, watcher)
        await end(watcher, "stop")
        assert watcher.statistics().mailbox == 0
        await end(target, "kill")
        monitor.cancel(flush=True)
        assert watcher.statistics().mailbox == 0


async def test_anybody_may_wait_for_an_end(autojump_clock: object) -> None:
    reasons: list[ExitReason] = []

    async def wait(ref: Ref[Puppet]) -> None:
        reasons.append(await ref.wait())

    async with Supervisor(child(Puppet, id="p", restart="temporary")) as sup:
        ref = sup.ref("p", Puppet)
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(wait, ref)
            with trio.move_on_after(1):
                await ref.wait()
            assert reasons == []
            ref.stop(Shutdown("now"))
        assert reasons == [Shutdown("now")] * 3
        with trio.testing.assert_checkpoints():
            assert await ref.wait() == Shutdown("now")
