"""Actors: callbacks, their order, and the ways in which they end the actor."""

from __future__ import annotations

import functools
import logging
from typing import NamedTuple

import pytest
import trio
from hypothesis import given, strategies as st

from sessionmgr.otp import (
    NOREPLY,
    Actor,
    ActorDown,
    Call,
    Caller,
    Cast,
    Continue,
    Crashed,
    Exit,
    ExitReason,
    Normal,
    Ref,
    Shutdown,
    StartFailed,
    Stop,
    Supervisor,
    child,
)
from tests.otp.puppets import Puppet, RunCall, in_virtual_time, inside


class StepCast(Cast):
    number: int
    follow: int = 0


class AskCall(Call[int]):
    number: int = 0
    follow: int = 0


class ContinueTurn(NamedTuple):
    """One of the turns of `handle_continue` that follow a message."""

    what: object
    number: int
    last: int


class Diary(Actor):
    """Writes down what it does, and goes on as often as a message says."""

    def __init__(self, log: list[object], follow: int = 0) -> None:
        self.log = log
        self.follow = follow
        self.asked: Caller | None = None

    async def init(self) -> Continue | None:
        return await self.note("init", self.follow)

    async def handle_continue(self, arg: object) -> Continue | None:
        assert isinstance(arg, ContinueTurn)
        await trio.lowlevel.checkpoint()
        self.log.append(arg)
        if arg.number < arg.last:
            return Continue(arg._replace(number=arg.number + 1))
        if self.asked is not None:
            self.asked.reply(arg.number)
            self.asked = None
        return None

    async def handle_call(self, message: object, caller: Caller) -> object:
        assert isinstance(message, AskCall)
        follow = await self.note(message.number, message.follow)
        if follow is None:
            return 0
        self.asked = caller
        return follow

    async def handle_cast(self, message: Cast) -> Continue | None:
        assert isinstance(message, StepCast)
        return await self.note(message.number, message.follow)

    async def handle_info(self, message: object) -> Continue | None:
        assert isinstance(message, StepCast)
        return await self.note(message.number, message.follow)

    async def note(self, what: object, follow: int) -> Continue | None:
        self.log.append(what)
        await trio.lowlevel.checkpoint()
        return Continue(ContinueTurn(what, 1, follow)) if follow else None


@given(
    script=st.lists(st.tuples(st.sampled_from(["cast", "call", "info"]), st.integers(0, 3))),
    at_first=st.integers(0, 3),
    schedule=st.random_module(),
)
def test_p18_handle_continue_precedes_any_message(
    script: list[tuple[str, int]], at_first: int, schedule: object
) -> None:
    log: list[object] = []
    answers: dict[int, int] = {}

    async def ask(ref: Ref[Diary], number: int, follow: int) -> None:
        answers[number] = await ref.call(AskCall(number, follow))

    async def main() -> None:
        async with Supervisor(child(Diary, log, at_first, id="diary")) as sup:
            ref = sup.ref("diary", Diary)
            async with trio.open_nursery() as nursery:
                for number, (kind, follow) in enumerate(script):
                    if kind == "cast":
                        ref.cast(StepCast(number, follow))
                    elif kind == "info":
                        ref.post(StepCast(number, follow))
                    else:
                        nursery.start_soon(ask, ref, number, follow)
            await ref.call(AskCall(-1))

    in_virtual_time(main)
    expected = dict[object, int](enumerate(follow for _, follow in script))
    expected |= {"init": at_first, -1: 0}
    assert log[0] == "init"
    while log:
        what = log.pop(0)
        follow = expected.pop(what)
        assert log[:follow] == [
            ContinueTurn(what, number, follow) for number in range(1, follow + 1)
        ]
        del log[:follow]
    assert expected == {}
    assert answers == {n: follow for n, (kind, follow) in enumerate(script) if kind == "call"}


class SlowActor(Actor):
    """Takes as many seconds for a message as it says, in several steps."""

    def __init__(self, at_work: list[object], done: list[object]) -> None:
        self.at_work = at_work
        self.done = done

    async def handle_call(self, message: object, caller: Caller) -> object:
        await self.work(message)
        return 0

    async def handle_cast(self, message: Cast) -> Continue:
        await self.work(message)
        return Continue(message)

    async def handle_continue(self, arg: object) -> None:
        await self.work(arg)

    async def handle_info(self, message: object) -> None:
        await self.work(message)

    async def terminate(self, reason: ExitReason) -> None:
        await self.work(StepCast(-1, 3))

    async def work(self, message: object) -> None:
        assert isinstance(message, StepCast | AskCall)
        self.at_work.append(message)
        for pause in range(message.follow):
            await trio.sleep(pause)
            assert self.at_work == [message]
        self.at_work.remove(message)
        self.done.append(message.number)


@given(
    script=st.lists(st.tuples(st.sampled_from(["cast", "call", "send"]), st.integers(0, 3))),
    schedule=st.random_module(),
)
def test_p17_one_handler_at_a_time(script: list[tuple[str, int]], schedule: object) -> None:
    at_work: list[object] = []
    done: list[object] = []

    async def ask(ref: Ref[SlowActor], message: AskCall) -> None:
        await ref.call(message, timeout=None)

    async def main() -> None:
        async with Supervisor(child(SlowActor, at_work, done, id="worker")) as sup:
            ref = sup.ref("worker", SlowActor)
            async with trio.open_nursery() as nursery:
                for number, (kind, pauses) in enumerate(script):
                    if kind == "cast":
                        ref.cast(StepCast(number, pauses))
                    elif kind == "send":
                        nursery.start_soon(ref.send, StepCast(number, pauses))
                    else:
                        nursery.start_soon(ask, ref, AskCall(number, pauses))
            await ref.call(AskCall(len(script)), timeout=None)

    in_virtual_time(main)
    casts = [number for number, (kind, _) in enumerate(script) if kind == "cast"]
    assert sorted(map(repr, done)) == sorted(map(repr, [-1, *range(len(script) + 1), *casts]))


async def test_an_actor_may_leave_out_every_callback(
    autojump_clock: object, caplog: pytest.LogCaptureFixture
) -> None:
    class Plain(Actor):
        pass

    async with Supervisor(child(Plain, id="plain")) as sup:
        plain = sup.ref("plain", Plain)
        with caplog.at_level(logging.WARNING, "sessionmgr.otp"):
            await plain.send("nonsense")
            await trio.testing.wait_all_tasks_blocked()
        assert plain.alive
        plain.stop(Shutdown())
        assert await plain.wait() == Shutdown()
    said = [record for record in caplog.records if vars(record).get("event") == "unhandled_info"]
    assert [record.getMessage() for record in said] == [
        "An actor has no handle_info for this message. child=supervisor/plain message='nonsense'"
    ]


@pytest.mark.parametrize(
    ("message", "complaint"),
    [
        (StepCast(1), "Plain does not handle casts: StepCast(number=1, follow=0)"),
        (AskCall(), "Plain does not handle calls: AskCall(number=0, follow=0)"),
    ],
    ids=["cast", "call"],
)
async def test_a_message_that_nobody_handles_is_a_crash(
    message: StepCast | AskCall, complaint: str, autojump_clock: object
) -> None:
    class Plain(Actor):
        pass

    async with Supervisor(child(Plain, id="plain", restart="temporary")) as sup:
        plain = sup.ref("plain")
        if isinstance(message, StepCast):
            plain.cast(message)
        else:
            with pytest.raises(ActorDown, match="does not handle calls"):
                await plain.call(message)
        reason = await plain.wait()
        assert isinstance(reason, Crashed)
        assert isinstance(reason.error, TypeError)
        assert str(reason.error) == complaint


async def test_continue_without_a_handler_for_it_is_a_crash(autojump_clock: object) -> None:
    class Hopeful(Actor):
        async def handle_cast(self, message: Cast) -> Continue:
            return Continue()

    async with Supervisor(child(Hopeful, id="hopeful", restart="temporary")) as sup:
        ref = sup.ref("hopeful")
        ref.cast(StepCast(0))
        reason = await ref.wait()
        assert isinstance(reason, Crashed)
        assert str(reason.error) == "Hopeful returned Continue and has no handle_continue"


async def test_every_incarnation_is_a_new_object_made_of_the_same_arguments(
    autojump_clock: object,
) -> None:
    made: list[Counting] = []

    class Counting(Puppet):
        def __init__(self, start: int, *, step: int) -> None:
            super().__init__()
            self.count = start
            self.step = step
            made.append(self)

    target = functools.partial(Counting, step=3)
    async with Supervisor(child(target, 5, id="counting")) as sup:
        first = sup.ref("counting", Counting)
        await inside(first, lambda puppet: vars(puppet).update(count=99))
        first.kill()
        await trio.testing.wait_all_tasks_blocked()
        second = sup.ref("counting", Counting)
        assert second is not first
        assert (first.alive, second.alive) == (False, True)
        assert await second.call(RunCall(_own_name)) == "supervisor/counting"
    assert [(one.count, one.step) for one in made] == [(99, 3), (5, 3)]


async def _own_name(puppet: Puppet, _caller: Caller) -> str:
    return puppet.ref.name


class Quitter(Actor):
    """Actor that ends with `reason` in a given callback."""

    def __init__(self, where: str, reason: ExitReason) -> None:
        self.where = where
        self.reason = reason

    def leave(self, here: str) -> None:
        if here == self.where:
            raise Stop(self.reason)

    async def init(self) -> None:
        self.leave("init")

    async def handle_continue(self, arg: object) -> None:
        self.leave("continue")

    async def handle_call(self, message: object, caller: Caller) -> object:
        self.leave("call")
        return NOREPLY

    async def handle_cast(self, message: Cast) -> Continue:
        self.leave("cast")
        return Continue()

    async def handle_info(self, message: object) -> None:
        self.leave("info")


@pytest.mark.parametrize("reason", [Normal(), Shutdown("enough")], ids=str)
@pytest.mark.parametrize("where", ["continue", "call", "cast", "info"])
async def test_stop_ends_the_actor_with_its_reason_from_any_handler(
    where: str, reason: ExitReason, autojump_clock: object
) -> None:
    quitter = child(Quitter, where, reason, id="quitter", restart="temporary")
    async with Supervisor(quitter) as sup:
        ref = sup.ref("quitter", Quitter)
        if where in ("cast", "continue"):
            ref.cast(StepCast(0))
        elif where == "info":
            await ref.send("go")
        else:
            with pytest.raises(ActorDown) as down:
                await ref.call(AskCall())
            assert down.value.reason == reason
            assert down.value.__cause__ is None
        assert await ref.wait() == reason


async def test_stop_in_init_means_that_the_start_failed(autojump_clock: object) -> None:
    async with Supervisor() as sup:
        with pytest.raises(StartFailed, match="did not start: normal"):
            await sup.start_child(child(Quitter, "init", Normal(), restart="temporary"))
        assert sup.which_children() == []


@pytest.mark.parametrize("bound", [0, -1])
def test_an_actor_with_room_for_no_message_is_refused(bound: int) -> None:
    class Deaf(Actor):
        mailbox = bound

    with pytest.raises(ValueError, match=f"^Deaf.mailbox={bound}: must be at least 1$"):
        child(Deaf)


async def test_trap_exit_of_the_class_is_what_counts(autojump_clock: object) -> None:
    class Gentle(Puppet):
        trap_exit = True

    async with Supervisor(child(Gentle, id="gentle"), child(Puppet, id="other")) as sup:
        gentle, other = sup.ref("gentle", Gentle), sup.ref("other", Puppet)
        await inside(gentle, lambda _: other.link())
        other.kill()
        reason = await other.wait()
        await trio.testing.wait_all_tasks_blocked()
        assert await inside(gentle, lambda me: me.news) == [Exit(other, reason)]
