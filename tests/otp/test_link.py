"""Links: which children end together, and which only receive a message."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import pytest
import trio
from hypothesis import given, strategies as st
from trio.testing import wait_all_tasks_blocked

from sessionmgr.otp import (
    Actor,
    Crashed,
    Exit,
    ExitReason,
    Killed,
    NoProc,
    Normal,
    Ref,
    Shutdown,
    Supervisor,
    child,
)
from tests.otp.puppets import (
    CrashError,
    Puppet,
    RunCast,
    TrappingPuppet,
    crash,
    in_virtual_time,
    inside,
    link,
    notifications_of,
)

SIZE = 6


class ActorEnd(NamedTuple):
    """An actor is made to end."""

    whom: int
    how: str


class Society:
    """Model of links: which children have ended why, and the messages to the others."""

    def __init__(self, traps: list[bool], links: set[tuple[int, int]]) -> None:
        self.traps = traps
        self.links = {frozenset(pair) for pair in links if pair[0] != pair[1]}
        self.dead: dict[int, str] = {}
        self.told: Counter[tuple[int, int, str]] = Counter()

    def end(self, whom: int, how: str) -> None:
        falling = [] if whom in self.dead else [whom]
        while falling:
            one = falling.pop()
            if one in self.dead:
                continue
            self.dead[one] = how
            for pair in [pair for pair in self.links if one in pair]:
                self.links.remove(pair)
                (other,) = pair - {one}
                if self.traps[other]:
                    self.told[other, one, how] += 1
                elif how != "stop":
                    falling.append(other)


def describe(reason: ExitReason) -> str:
    """Name the blow that has this effect."""
    match reason:
        case Normal():
            return "stop"
        case Shutdown():
            return "shutdown"
        case Killed():
            return "kill"
        case Crashed(error):
            assert isinstance(error, CrashError)
            return "crash"
        case _:
            return str(reason)


blows = st.builds(
    ActorEnd, st.integers(0, SIZE - 1), st.sampled_from(["stop", "shutdown", "kill", "crash"])
)


@given(
    traps=st.lists(st.booleans(), min_size=SIZE, max_size=SIZE),
    links=st.sets(st.tuples(st.integers(0, SIZE - 1), st.integers(0, SIZE - 1)), max_size=12),
    cut=st.sets(st.tuples(st.integers(0, SIZE - 1), st.integers(0, SIZE - 1)), max_size=2),
    script=st.lists(blows, max_size=4),
    schedule=st.random_module(),
)
def test_p21_an_abnormal_end_takes_with_it_whoever_is_linked_and_does_not_trap_exits(
    traps: list[bool],
    links: set[tuple[int, int]],
    cut: set[tuple[int, int]],
    script: list[ActorEnd],
    schedule: object,
) -> None:
    both_ways = cut | {(two, one) for one, two in cut}
    society = Society(traps, links - both_ways)

    async def main() -> None:
        specs = [
            child(TrappingPuppet if trap else Puppet, id=str(number), restart="temporary")
            for number, trap in enumerate(traps)
        ]
        async with Supervisor(*specs) as sup:
            refs = [sup.ref(str(number), Puppet) for number in range(SIZE)]
            for this, that in links:
                await link(refs[this], refs[that])
            for this, that in cut:
                await unlink(refs[this], refs[that])
            for whom, how in script:
                await strike(refs[whom], how)
                society.end(whom, how)
            dead = {n: describe(await ref.wait()) for n, ref in enumerate(refs) if not ref.alive}
            assert dead == society.dead
            told = Counter[tuple[int, int, str]]()
            for number, ref in enumerate(refs):
                for news in await notifications_of(ref) if ref.alive else []:
                    assert isinstance(news, Exit)
                    told[number, int(news.ref.id), describe(news.reason)] += 1
            assert told == Counter(
                {key: n for key, n in society.told.items() if refs[key[0]].alive}
            )

    in_virtual_time(main)


async def unlink(one: Ref[Puppet], other: Ref[Puppet]) -> None:
    await inside(one, lambda _: other.unlink())


async def strike(ref: Ref[Puppet], how: str) -> None:
    match how:
        case "stop":
            ref.stop()
        case "shutdown":
            ref.stop(Shutdown())
        case "kill":
            ref.kill()
        case _:
            ref.cast(RunCast(crash))
    await wait_all_tasks_blocked()


@given(
    first=st.sampled_from(["kill", "crash", "shutdown"]),
    second=st.sampled_from(["kill", "crash", "shutdown"]),
    schedule=st.random_module(),
)
def test_p21_ends_in_the_same_tick_reach_everybody_once(
    first: str, second: str, schedule: object
) -> None:
    async def main() -> list[object]:
        ids = ["trapper", "a", "b", "c"]
        specs = [
            child(TrappingPuppet if id == "trapper" else Puppet, id=id, restart="temporary")
            for id in ids
        ]
        async with Supervisor(*specs) as sup, trio.open_nursery() as nursery:
            trapper, a, b, c = (sup.ref(id, Puppet) for id in ids)
            for one, two in [(a, b), (b, c), (c, a), (trapper, a), (trapper, b), (trapper, c)]:
                await link(one, two)
            nursery.start_soon(strike, a, first)
            nursery.start_soon(strike, c, second)
            await wait_all_tasks_blocked()
            assert [one.alive for one in (a, b, c)] == [False] * 3
            return await notifications_of(trapper)
        raise AssertionError

    news = in_virtual_time(main)
    assert sorted(one.ref.id for one in news if isinstance(one, Exit)) == ["a", "b", "c"]
    assert {describe(one.reason) for one in news if isinstance(one, Exit)} <= {first, second}


async def test_p21_a_kill_cannot_be_trapped_and_reaches_others_as_killed(
    autojump_clock: object,
) -> None:
    farewells: list[ExitReason] = []

    class Polite(Puppet):
        async def terminate(self, reason: ExitReason) -> None:
            farewells.append(reason)

    trappers = [child(TrappingPuppet, id=id, restart="temporary") for id in ("one", "two")]
    async with Supervisor(*trappers, child(Polite, id="polite", restart="temporary")) as sup:
        one, two, polite = (sup.ref(id, Puppet) for id in ("one", "two", "polite"))
        await link(two, one)
        await link(polite, one)
        one.kill()
        assert await one.wait() == Killed()
        assert await polite.wait() == Killed()
        assert await notifications_of(two) == [Exit(one, Killed())]
        assert farewells == [Killed()]


async def test_p21_a_normal_end_harms_nobody_but_is_told_to_those_who_trap(
    autojump_clock: object,
) -> None:
    specs = (
        child(Puppet, id="p", restart="temporary"),
        child(TrappingPuppet, id="trapper"),
        child(Puppet, id="q"),
    )
    async with Supervisor(*specs) as sup:
        p, trapper, q = (sup.ref(id, Puppet) for id in ("p", "trapper", "q"))
        for other in (trapper, q):
            await link(other, p)
        p.stop()
        await p.wait()
        assert await notifications_of(trapper) == [Exit(p, Normal())]
        assert await notifications_of(q) == []


async def test_p21_a_link_to_the_dead_is_an_end_at_once(autojump_clock: object) -> None:
    specs = [
        child(kind, id=kind.__name__, restart="temporary") for kind in (Puppet, TrappingPuppet)
    ]
    async with Supervisor(*specs, child(Puppet, id="dead", restart="temporary")) as sup:
        puppet, trapper = sup.ref("Puppet", Puppet), sup.ref("TrappingPuppet", TrappingPuppet)
        dead = sup.ref("dead")
        dead.kill()
        await dead.wait()

        async def link_and_wait(_puppet: Puppet) -> None:
            dead.link()
            await trio.sleep(60)

        puppet.cast(RunCast(link_and_wait))
        assert await puppet.wait() == NoProc()
        await link(trapper, dead)
        assert await notifications_of(trapper) == [Exit(dead, NoProc())]
        assert trio.current_time() == 0.0


async def test_a_link_to_oneself_means_nothing(autojump_clock: object) -> None:
    async with Supervisor(child(TrappingPuppet, id="trapper", restart="temporary")) as sup:
        ref = sup.ref("trapper", TrappingPuppet)
        await inside(ref, lambda puppet: puppet.ref.link())
        ref.stop(Shutdown())
        assert await ref.wait() == Shutdown()


async def test_whoever_falls_with_another_is_interrupted_at_work(autojump_clock: object) -> None:
    async def link_and_work(_puppet: Puppet) -> None:
        other.link()
        await trio.sleep(60)

    specs = [child(Puppet, id=id, restart="temporary") for id in ("worker", "other")]
    async with Supervisor(*specs) as sup:
        worker, other = sup.ref("worker", Puppet), sup.ref("other", Puppet)
        worker.cast(RunCast(link_and_work))
        await trio.sleep(1)
        other.cast(RunCast(crash))
        reason = await worker.wait()
        assert reason == await other.wait()
        assert isinstance(reason, Crashed)
        assert trio.current_time() == 1.0


@pytest.mark.parametrize("linker", ["actor", "function"])
async def test_functions_fall_with_actors_and_actors_with_functions(
    linker: str, autojump_clock: object
) -> None:
    async def function(task_status: trio.TaskStatus[None]) -> None:
        if linker == "function":
            puppet.link()
        task_status.started()
        await trio.sleep(1)
        if linker == "actor":
            raise CrashError
        await trio.sleep_forever()

    async with Supervisor(child(Puppet, id="p", restart="temporary")) as sup:
        puppet = sup.ref("p", Puppet)
        ref: Ref[Actor] = await sup.start_child(child(function, restart="temporary"))
        if linker == "actor":
            await link(puppet, ref)
        else:
            puppet.cast(RunCast(crash))
        reasons = {await puppet.wait(), await ref.wait()}
        assert [type(reason) for reason in reasons] == [Crashed]


async def test_a_supervisor_that_falls_with_another_stops_its_children(
    autojump_clock: object,
) -> None:
    below = Supervisor(child(Puppet, id="leaf"), name="below")
    specs = child(Puppet, id="p", restart="temporary"), child(below, restart="temporary")
    async with Supervisor(*specs) as sup:
        puppet, leaf = sup.ref("p", Puppet), below.ref("leaf")
        branch = sup.ref("below")
        await link(puppet, branch)
        puppet.kill()
        assert await branch.wait() == Killed()
        assert await leaf.wait() == Shutdown()
