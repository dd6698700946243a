"""Call cycles: an error at once, and never without a real cycle."""

from __future__ import annotations

import pytest
import trio
from hypothesis import given, strategies as st
from trio.testing import wait_all_tasks_blocked

from sessionmgr.otp import (
    NOREPLY,
    Actor,
    ActorDown,
    Call,
    CallCycle,
    Caller,
    Crashed,
    DynamicSupervisor,
    Ref,
    StartFailed,
    Supervisor,
    TaskSupervisor,
    child,
)
from tests.otp.puppets import Puppet, RunCall, RunCast, in_virtual_time, inside


class Visit(Call[list[int]]):
    """Go on to the stations that are left, and give those where the way was cut off."""

    way: tuple[int, ...]


class Station(Actor):
    """Sends a visit on, and says so when that would wait for itself."""

    def __init__(self, number: int, net: Net) -> None:
        self.number = number
        self.net = net

    async def handle_call(self, message: object, caller: Caller) -> object:
        assert isinstance(message, Visit)
        if not message.way:
            return []
        await trio.sleep(message.way[0] % 2)
        target = message.way[0]
        try:
            return await self.net.visit(self.number, message.way)
        except CallCycle:
            assert self.net.leads_back(target, self.number)
            return [target]


class Net:
    """Which station waits for which, as an onlooker sees it."""

    def __init__(self) -> None:
        self.stations: list[Ref[Station]] = []
        self.waits_for: dict[int, int] = {}

    async def visit(self, here: int, way: tuple[int, ...]) -> list[int]:
        self.waits_for[here] = way[0]
        try:
            return await self.stations[way[0]].call(Visit(way[1:]), timeout=None)
        finally:
            del self.waits_for[here]

    def leads_back(self, start: int, goal: int) -> bool:
        seen: set[int] = set()
        while start != goal and start in self.waits_for and start not in seen:
            seen.add(start)
            start = self.waits_for[start]
        return start == goal


@given(
    ways=st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=6).map(tuple), max_size=5),
    schedule=st.random_module(),
)
def test_p25_calls_that_cross_each_other_never_hang_and_are_refused_only_in_a_cycle(
    ways: list[tuple[int, ...]], schedule: object
) -> None:
    answers: list[list[int]] = []

    async def travel(net: Net, way: tuple[int, ...]) -> None:
        answers.append(await net.stations[way[0]].call(Visit(way[1:]), timeout=None))

    async def main() -> None:
        net = Net()
        stations = [child(Station, number, net, id=str(number)) for number in range(5)]
        with trio.fail_after(100):
            async with Supervisor(*stations, max_restarts=0) as sup:
                net.stations = [sup.ref(str(number), Station) for number in range(5)]
                async with trio.open_nursery() as nursery:
                    for way in ways:
                        nursery.start_soon(travel, net, way)

    in_virtual_time(main)
    assert len(answers) == len(ways)


@given(way=st.lists(st.integers(0, 3), min_size=1, max_size=6).map(tuple))
def test_p25_a_single_chain_is_cut_where_it_first_comes_back(way: tuple[int, ...]) -> None:
    async def main() -> list[int]:
        net = Net()
        stations = [child(Station, number, net, id=str(number)) for number in range(4)]
        async with Supervisor(*stations, max_restarts=0) as sup:
            net.stations = [sup.ref(str(number), Station) for number in range(4)]
            return await net.stations[way[0]].call(Visit(way[1:]), timeout=None)
        raise AssertionError

    first_repeat = [stop for n, stop in enumerate(way) if stop in way[:n]][:1]
    assert in_virtual_time(main) == first_repeat


def relay(*refs: Ref[Puppet]) -> RunCall[str]:
    """Make a message that each actor passes on to the next one, and the last answers."""

    async def deed(_puppet: Puppet, _caller: Caller) -> str:
        return await refs[0].call(relay(*refs[1:])) if refs else "arrived"

    return RunCall(deed)


@pytest.mark.parametrize("length", [1, 2, 3])
async def test_p25_a_cycle_is_an_error_at_once_and_names_who_waits(
    length: int, autojump_clock: object
) -> None:
    ids = "abc"[:length]
    puppets = [child(Puppet, id=id, restart="temporary") for id in ids]
    async with Supervisor(*puppets, name="root") as sup:
        refs = [sup.ref(id, Puppet) for id in ids]
        with pytest.raises(ActorDown):
            await refs[0].call(relay(*refs[1:], refs[0]), timeout=None)
        assert trio.current_time() == 0.0
        reason = await refs[-1].wait()
        assert isinstance(reason, Crashed)
        cycle = reason.error
        assert isinstance(cycle, CallCycle)
        names = [f"root/{id}" for id in ids]
        assert cycle.path == (names[-1], *names)
        assert str(cycle) == f"the call would wait for its own caller: {' -> '.join(cycle.path)}"


async def test_p25_the_actor_that_was_refused_may_go_on(autojump_clock: object) -> None:
    async def try_it(puppet: Puppet, _caller: Caller) -> str:
        with pytest.raises(CallCycle):
            await inside(me, lambda _: None)
        return "refused"

    async with Supervisor(child(Puppet, id="p")) as sup:
        me = sup.ref("p", Puppet)
        assert await me.call(RunCall(try_it)) == "refused"
        assert await me.call(RunCall(try_it)) == "refused"


async def test_p25_a_cycle_through_a_nursery_in_a_handler_is_seen(autojump_clock: object) -> None:
    refused: list[CallCycle] = []

    async def ask(ref: Ref[Puppet]) -> None:
        try:
            await inside(ref, lambda _: None)
        except CallCycle as cycle:
            refused.append(cycle)

    async def fan_out(_puppet: Puppet, _caller: Caller) -> None:
        async with trio.open_nursery() as outer, trio.open_nursery() as inner:
            outer.start_soon(ask, me)
            inner.start_soon(ask, other)
            inner.start_soon(ask, me)

    async with Supervisor(child(Puppet, id="me"), child(Puppet, id="other")) as sup:
        me, other = sup.ref("me", Puppet), sup.ref("other", Puppet)
        await me.call(RunCall(fan_out), timeout=None)
        assert [cycle.path for cycle in refused] == [("supervisor/me", "supervisor/me")] * 2


class Newcomer(Actor):
    """Does in `init` what it is given to do."""

    def __init__(self, sup: Supervisor | Ref[Puppet]) -> None:
        self.other = sup

    async def init(self) -> None:
        if isinstance(self.other, Supervisor):
            await self.other.start_child(Puppet)
        else:
            await inside(self.other, lambda _: None)


async def test_p25_init_may_not_ask_its_own_supervisor_to_start_a_child(
    autojump_clock: object,
) -> None:
    async with Supervisor() as sup:
        with pytest.raises(StartFailed) as failed:
            await sup.start_child(child(Newcomer, sup))
        cycle = failed.value.__cause__
        assert isinstance(cycle, CallCycle)
        assert cycle.path == ("supervisor/Newcomer-1", "supervisor", "supervisor/Newcomer-1")


@pytest.mark.parametrize("kind", [Supervisor, DynamicSupervisor])
async def test_p25_init_may_not_call_the_actor_that_starts_it(
    kind: type[Supervisor | DynamicSupervisor], autojump_clock: object
) -> None:
    async def beget(puppet: Puppet, _caller: Caller) -> object:
        with pytest.raises(StartFailed) as failed:
            await nursery.start_child(child(Newcomer, puppet.ref))
        return failed.value.__cause__

    async with Supervisor(child(Puppet, id="p")) as sup, kind() as nursery:
        assert isinstance(await sup.ref("p", Puppet).call(RunCall(beget)), CallCycle)
        assert trio.current_time() == 0.0


async def test_p25_terminate_may_not_give_orders_to_the_supervisor_that_waits_for_it(
    autojump_clock: object,
) -> None:
    raised: list[Exception] = []

    class Leaver(Actor):
        async def terminate(self, reason: object) -> None:
            try:
                await sup.start_child(Puppet)
            except CallCycle as cycle:
                raised.append(cycle)

    async with Supervisor(child(Leaver, id="leaver")) as sup:
        await sup.terminate_child("leaver")
        assert [str(error).count("leaver") for error in raised] == [2]


# Where there is a way out.


async def test_p25_a_call_that_was_put_off_is_no_cycle(autojump_clock: object) -> None:
    async def put_off(puppet: Puppet, caller: Caller) -> object:
        async def answer_later(me: Puppet) -> None:
            # While `a` waits for us, we ask it: it is `b` that will answer `a`.
            with trio.move_on_after(1):
                await inside(a, lambda _: None)

        async def let_b_answer(_b: Puppet) -> None:
            await trio.sleep(0.5)
            caller.reply("from b")

        puppet.ref.cast(RunCast(answer_later))
        b.cast(RunCast(let_b_answer))
        return NOREPLY

    async def ask(_puppet: Puppet, _caller: Caller) -> object:
        return await c.call(RunCall(put_off))

    async with Supervisor(*(child(Puppet, id=id) for id in "abc"), max_restarts=0) as sup:
        a, b, c = (sup.ref(id, Puppet) for id in "abc")
        assert await a.call(RunCall(ask)) == "from b"
        assert await inside(c, lambda _: "free") == "free"
        assert trio.current_time() == 0.5


@pytest.mark.parametrize("where", ["system task", "outer nursery", "supervised task"])
async def test_p25_a_background_task_that_inherits_the_context_is_somebody_else(
    where: str, autojump_clock: object
) -> None:
    answers: list[str] = []

    async def report_back() -> None:
        answers.append(await inside(me, lambda _: "heard"))

    async def set_off(_puppet: Puppet, _caller: Caller) -> None:
        if where == "system task":
            trio.lowlevel.spawn_system_task(report_back)
        elif where == "outer nursery":
            nursery.start_soon(report_back)
        else:
            await tasks.async_nolink(report_back)
        await wait_all_tasks_blocked()
        assert answers == []

    async with (
        TaskSupervisor() as tasks,
        Supervisor(child(Puppet, id="me"), max_restarts=0) as sup,
        trio.open_nursery() as nursery,
    ):
        me = sup.ref("me", Puppet)
        await me.call(RunCall(set_off))
        await wait_all_tasks_blocked()
        assert answers == ["heard"]


async def test_p25_those_who_wait_for_the_same_one_are_no_cycle(autojump_clock: object) -> None:
    async with Supervisor(*(child(Puppet, id=id) for id in "abc"), max_restarts=0) as sup:
        a, b, c = (sup.ref(id, Puppet) for id in "abc")

        async def nap(_puppet: Puppet) -> None:
            await trio.sleep(1)

        answers: list[str] = []

        async def ask(*way: Ref[Puppet]) -> None:
            answers.append(await way[0].call(relay(*way[1:])))

        c.cast(RunCast(nap))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, a, c)
            nursery.start_soon(ask, b, c)
            nursery.start_soon(ask, a, b, c)
        assert answers == ["arrived"] * 3


async def test_p25_an_end_of_waiting_is_forgotten(autojump_clock: object) -> None:
    async def ask_in_vain(_puppet: Puppet, _caller: Caller) -> None:
        with trio.move_on_after(1):
            await b.call(RunCall(put_off), timeout=None)
        with trio.move_on_after(1):
            await b.call(RunCall(sleep), timeout=None)
        with pytest.raises(trio.TooSlowError):
            await b.call(RunCall(sleep), timeout=1)

    async def put_off(_puppet: Puppet, _caller: Caller) -> object:
        return NOREPLY

    async def sleep(_puppet: Puppet, _caller: Caller) -> None:
        await trio.sleep(5)

    async with Supervisor(*(child(Puppet, id=id) for id in "ab"), max_restarts=0) as sup:
        a, b = (sup.ref(id, Puppet) for id in "ab")
        await a.call(RunCall(ask_in_vain))
        assert await b.call(relay(a), timeout=None) == "arrived"


class Snug(Puppet):
    mailbox = 1


async def test_p25_no_actor_waits_for_room_in_its_own_mailbox(autojump_clock: object) -> None:
    async def talk_to_oneself(puppet: Puppet) -> None:
        puppet.ref.cast(RunCast(nothing))
        with pytest.raises(CallCycle, match=r"snug -> .*snug$"):
            await puppet.ref.send("there is no room for this")
        done.set()

    async def nothing(_puppet: Puppet) -> None:
        await trio.lowlevel.checkpoint()

    done = trio.Event()
    async with Supervisor(child(Snug, id="snug"), max_restarts=0) as sup:
        sup.ref("snug").cast(RunCast(talk_to_oneself))
        await done.wait()
