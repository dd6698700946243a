"""Registry: owners of names, how long they keep them, and messages by name."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Literal, NamedTuple

import pytest
import trio
from hypothesis import given, strategies as st
from trio.testing import wait_all_tasks_blocked

from sessionmgr.otp import (
    NOREPLY,
    Actor,
    ActorDown,
    AlreadyRegistered,
    CallCycle,
    Caller,
    Cast,
    DispatchResult,
    Down,
    Exit,
    NoProc,
    Ref,
    Registry,
    RegistryEntry,
    RegistryStatistics,
    Shutdown,
    Supervisor,
    child,
)
from tests.otp.puppets import (
    Puppet,
    RunCall,
    RunCast,
    TrappingPuppet,
    crash,
    in_virtual_time,
    inside,
    link,
    watch,
)

Keys = Literal["unique", "duplicate"]


class RegistryStep(NamedTuple):
    """One worker registers or gives up a name, or ends in some way."""

    worker: int
    do: str
    key: str


steps = st.builds(
    RegistryStep,
    st.integers(0, 2),
    st.sampled_from(["register", "register", "register", "unregister", "crash", "kill", "stop"]),
    st.sampled_from("xyz"),
)


@given(
    script=st.lists(steps, max_size=20),
    keys=st.sampled_from(["unique", "duplicate"]),
    schedule=st.random_module(),
)
def test_p22_names_go_with_their_owners_and_unique_ones_stay_unique(
    script: list[RegistryStep], keys: Keys, schedule: object
) -> None:
    owners: dict[str, dict[int, int]] = {key: {} for key in "xyz"}

    async def act(sup: Supervisor, names: Registry, number: int, step: RegistryStep) -> None:
        ref = sup.ref(str(step.worker), Puppet)
        own = owners[step.key]
        match step.do:
            case "register" if keys == "unique" and own and step.worker not in own:
                with pytest.raises(AlreadyRegistered):
                    await register(ref, names, step.key, number)
            case "register":
                await register(ref, names, step.key, number)
                own[step.worker] = number
            case "unregister":
                await inside(ref, lambda _: names.unregister(step.key))
                own.pop(step.worker, None)
            case how:
                if how == "crash":
                    ref.cast(RunCast(crash))
                else:
                    ref.kill() if how == "kill" else ref.stop()
                for some in owners.values():
                    some.pop(step.worker, None)
                await wait_all_tasks_blocked()

    async def main() -> None:
        names = Registry(keys)
        workers = [child(Puppet, id=str(n)) for n in range(3)]
        async with Supervisor(*workers, max_restarts=1000) as sup:
            for number, step in enumerate(script):
                await act(sup, names, number, step)
                for key, own in owners.items():
                    assert {(one.ref, one.value) for one in names.lookup(key)} == {
                        (sup.ref(str(worker)), value) for worker, value in own.items()
                    }
                assert names.statistics() == RegistryStatistics(
                    keys=sum(map(bool, owners.values())),
                    entries=sum(map(len, owners.values())),
                    owners=len({worker for own in owners.values() for worker in own}),
                )
        assert names.statistics() == RegistryStatistics(keys=0, entries=0, owners=0)

    in_virtual_time(main)


async def register(ref: Ref[Puppet], names: Registry, key: Hashable, value: object = None) -> None:
    await inside(ref, lambda _: names.register(key, value))


class RegisteredPuppet(Puppet):
    """Has a name from its first moment."""

    def __init__(self, names: Registry, key: str = "it") -> None:
        super().__init__()
        self.names = names
        self.key = key

    async def init(self) -> None:
        self.names.register(self.key, id(self))


@given(
    how=st.sampled_from(["crash", "kill", "stop"]),
    restart=st.sampled_from(["permanent", "temporary"]),
    schedule=st.random_module(),
)
def test_p22_a_name_is_free_before_anybody_hears_that_its_owner_has_ended(
    how: str, restart: Literal["permanent", "temporary"], schedule: object
) -> None:
    names = Registry()
    heard: list[str] = []

    async def hear(who: str, dead: Ref[Actor]) -> None:
        assert dead not in [entry.ref for entry in names.lookup("it")]
        heard.append(who)

    class Attentive(TrappingPuppet):
        async def handle_info(self, message: object) -> None:
            assert isinstance(message, Down | Exit)
            await hear(type(message).__name__, message.ref)

    async def put_off(_puppet: Puppet, _caller: Caller) -> object:
        return NOREPLY

    async def ask(ref: Ref[Puppet]) -> None:
        with pytest.raises(ActorDown):
            await ref.call(RunCall(put_off), timeout=None)
        await hear("caller", ref)

    async def wait(ref: Ref[Puppet]) -> None:
        await ref.wait()
        await hear("waiter", ref)

    async def main() -> None:
        named = child(RegisteredPuppet, names, id="named", restart=restart)
        async with Supervisor(child(Attentive, id="a"), named, max_restarts=1) as sup:
            attentive, ref = sup.ref("a", Attentive), sup.ref("named", RegisteredPuppet)
            await watch(attentive, ref)
            await link(attentive, ref)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(ask, ref)
                nursery.start_soon(wait, ref)
                await wait_all_tasks_blocked()
                if how == "crash":
                    ref.cast(RunCast(crash))
                else:
                    ref.kill() if how == "kill" else ref.stop()
            await wait_all_tasks_blocked()
            now = [entry.ref for entry in names.lookup("it")]
            assert now == ([sup.ref("named")] if restart == "permanent" else [])

    in_virtual_time(main)
    assert sorted(heard) == ["Down", "Exit", "caller", "waiter"]


async def test_a_name_that_is_taken_says_by_whom(autojump_clock: object) -> None:
    names = Registry()
    specs = child(RegisteredPuppet, names, id="first"), child(Puppet, id="second")
    async with Supervisor(*specs, name="root") as sup:
        with pytest.raises(AlreadyRegistered, match=r"^the name 'it' is already taken by root/fir"):
            await register(sup.ref("second", Puppet), names, "it")
        assert names.keys() == ["it"]


async def test_whoever_has_a_name_may_change_its_value(autojump_clock: object) -> None:
    names = Registry()
    async with Supervisor(child(Puppet, id="p")) as sup:
        ref = sup.ref("p", Puppet)
        await register(ref, names, "x", "one")
        await register(ref, names, "x", "two")
        assert names.lookup("x") == [RegistryEntry("x", ref, "two")]
        assert names.lookup("y") == []


async def test_a_name_belongs_to_whoever_registered_it(autojump_clock: object) -> None:
    names = Registry()
    async with Supervisor(child(RegisteredPuppet, names, id="named"), child(Puppet, id="p")) as sup:
        await inside(sup.ref("p", Puppet), lambda _: names.unregister("it"))
        assert names.keys() == ["it"]


async def test_an_actor_may_have_names_in_several_registries(autojump_clock: object) -> None:
    registries = [Registry(), Registry(), Registry("duplicate")]
    async with Supervisor(child(Puppet, id="p")) as sup:
        ref = sup.ref("p", Puppet)
        for names in registries:
            await register(ref, names, "x")
        assert [names.lookup("x")[0].ref for names in registries] == [ref] * 3
        ref.kill()
        await ref.wait()
        assert [names.lookup("x") for names in registries] == [[], [], []]


async def test_a_function_may_have_a_name(autojump_clock: object) -> None:
    names = Registry()

    async def function(task_status: trio.TaskStatus[None]) -> None:
        names.register("f", "value")
        task_status.started()
        await trio.sleep(1)

    async with Supervisor() as sup:
        ref = await sup.start_child(child(function, restart="temporary"))
        assert names.lookup("f") == [RegistryEntry("f", ref, "value")]
        await ref.wait()
        assert names.lookup("f") == []


# Via.


async def test_via_finds_whoever_has_the_name_now(autojump_clock: object) -> None:
    names = Registry()
    it = names.via("it", RegisteredPuppet)
    async with Supervisor(child(RegisteredPuppet, names, id="named")) as sup:
        first = sup.ref("named", RegisteredPuppet)
        assert await inside(it, lambda named: named.ref) is first
        first.kill()
        await wait_all_tasks_blocked()
        second = sup.ref("named", RegisteredPuppet)
        assert second is not first
        assert await inside(it, lambda named: named.ref) is second
        assert (it.alive, it.id, it.name) == (True, "named", "supervisor/named")
        it.cast(RunCast(crash))
        await wait_all_tasks_blocked()
        assert not second.alive
        await it.send("hello")
        await wait_all_tasks_blocked()
        assert await inside(it, lambda named: named.news) == ["hello"]
        it.stop(Shutdown())
        assert await it.wait() == Shutdown()
    assert repr(it) == "<Via 'it'>"


async def test_with_nobody_there_calls_say_so_and_casts_say_nothing(
    autojump_clock: object,
) -> None:
    nobody = Registry().via("nobody", Puppet)
    with pytest.raises(ActorDown, match=r"^<Via 'nobody'> is down: no such actor$") as down:
        await inside(nobody, lambda _: None)
    assert down.value.reason == NoProc()
    with pytest.raises(ActorDown):
        await nobody.send("hello")
    nobody.cast(RunCast(crash))
    nobody.post("hello")
    nobody.stop()
    nobody.kill()
    assert not nobody.alive
    assert await nobody.wait() == NoProc()


async def test_a_name_does_not_hide_a_cycle(autojump_clock: object) -> None:
    names = Registry()

    async def ask_itself(puppet: Puppet, _caller: Caller) -> str:
        with pytest.raises(CallCycle):
            await inside(names.via("it", RegisteredPuppet), lambda _: None)
        return "refused"

    async with Supervisor(child(RegisteredPuppet, names)):
        assert await names.via("it", RegisteredPuppet).call(RunCall(ask_itself)) == "refused"


def test_via_needs_unique_names() -> None:
    with pytest.raises(ValueError, match=r"^via\(\) needs unique names"):
        Registry("duplicate").via("x")


def test_a_registry_is_unique_or_duplicate() -> None:
    with pytest.raises(ValueError, match=r"^keys='both': must be 'unique' or 'duplicate'$"):
        Registry("both")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


# Dispatch.


class TopicCast(Cast):
    text: str


class Subscriber(Actor):
    """Listens to a topic, and has room for two messages."""

    mailbox = 2

    def __init__(self, names: Registry, heard: list[tuple[str, object]]) -> None:
        self.names = names
        self.heard = heard

    async def init(self) -> None:
        self.names.register("topic")

    async def handle_cast(self, message: Cast) -> None:
        self.heard.append((self.ref.id, message))

    async def handle_info(self, message: object) -> None:
        self.heard.append((self.ref.id, message))
        if message == "sleep":
            await trio.sleep(1)


@pytest.mark.parametrize("message", [TopicCast("hello"), "hello"], ids=["cast", "info"])
async def test_dispatch_tells_all_who_have_the_name(
    message: object, autojump_clock: object
) -> None:
    names = Registry("duplicate")
    heard: list[tuple[str, object]] = []
    async with Supervisor(*(child(Subscriber, names, heard, id=id) for id in "abc")):
        assert names.dispatch("topic", message) == DispatchResult(3, [])
        assert names.dispatch("another topic", message) == DispatchResult(0, [])
        await wait_all_tasks_blocked()
    assert sorted(heard, key=repr) == [(id, message) for id in "abc"]


async def test_a_full_mailbox_keeps_nobody_else_from_hearing_a_dispatch(
    autojump_clock: object,
) -> None:
    names = Registry("duplicate")
    heard: list[tuple[str, object]] = []
    async with Supervisor(*(child(Subscriber, names, heard, id=id) for id in "abc")) as sup:
        busy = sup.ref("b", Subscriber)
        busy.post("sleep")
        await wait_all_tasks_blocked()
        busy.post("one")
        busy.post("two")
        assert names.dispatch("topic", TopicCast("hello")) == DispatchResult(2, [busy])
        assert names.dispatch("topic", "hello") == DispatchResult(2, [busy])
        await wait_all_tasks_blocked()
        told = [who for who, what in heard if what in (TopicCast("hello"), "hello")]
        assert sorted(told) == ["a", "a", "c", "c"]


async def test_a_name_may_be_any_hashable_thing(autojump_clock: object) -> None:
    names = Registry()
    async with Supervisor(child(Puppet, id="p")) as sup:
        ref = sup.ref("p", Puppet)
        keys: list[Hashable] = [("session", 1), frozenset("ab"), Puppet, None]
        for key in keys:
            await register(ref, names, key)
            assert names.via(key).id == "p"
        assert names.keys() == keys
