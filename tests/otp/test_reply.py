"""Replies: at once, later, by another task, twice, in `terminate`; and wrong kinds of messages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from sessionmgr.otp import (
    NOREPLY,
    Actor,
    ActorDown,
    AlreadyReplied,
    Call,
    Caller,
    Cast,
    Continue,
    Crashed,
    ExitReason,
    MailboxFull,
    Normal,
    NotAnActor,
    NotInActor,
    Ref,
    Registry,
    Shutdown,
    Stop,
    Supervisor,
    TaskSupervisor,
    child,
)
from tests.otp.puppets import CrashError, Puppet, RunCall, RunCast, inside


class ReplyRefusedError(Exception):
    pass


class Clerk(Actor):
    """Puts every question off, and keeps who asked."""

    def __init__(self, asked: list[Caller]) -> None:
        self.asked = asked

    async def handle_call(self, message: object, caller: Caller) -> object:
        self.asked.append(caller)
        return NOREPLY


class AskCall(Call[str]):
    pass


class NoteCast(Cast):
    text: str = ""


class Inquirer:
    """Asks once, and keeps what came of it."""

    def __init__(self) -> None:
        self.answer: object = None

    async def ask(self, ref: Ref[Actor], message: Call[object] = AskCall()) -> None:  # noqa: B008
        try:
            self.answer = await ref.call(message, timeout=60)
        except Exception as error:  # noqa: BLE001  # whatever it is
            self.answer = error


async def test_an_answer_may_come_later_and_from_elsewhere(autojump_clock: object) -> None:
    asked: list[Caller] = []
    first, second = Inquirer(), Inquirer()
    async with Supervisor(child(Clerk, asked, id="clerk")) as sup, trio.open_nursery() as nursery:
        for inquirer in (first, second):
            nursery.start_soon(inquirer.ask, sup.ref("clerk"))
            await wait_all_tasks_blocked()
        one, two = asked
        two.reply("to the second")
        await wait_all_tasks_blocked()
        assert (first.answer, second.answer) == (None, "to the second")
        assert (one.waiting, two.waiting) == (True, False)
        one.fail(ReplyRefusedError("no"))
        await wait_all_tasks_blocked()
        assert repr(first.answer) == "ReplyRefusedError('no')"
        assert sup.ref("clerk").alive


async def test_a_reply_may_be_an_exception_object_without_being_raised(
    autojump_clock: object,
) -> None:
    async def answer(_puppet: Puppet, _caller: Caller) -> Exception:
        return ValueError("just a value")

    async with Supervisor(child(Puppet, id="p")) as sup:
        assert (
            repr(await sup.ref("p", Puppet).call(RunCall(answer))) == "ValueError('just a value')"
        )


@pytest.mark.parametrize("again", ["reply", "fail"])
async def test_to_answer_twice_is_wrong(again: str, autojump_clock: object) -> None:
    asked: list[Caller] = []
    inquirer = Inquirer()
    async with Supervisor(child(Clerk, asked, id="clerk")) as sup, trio.open_nursery() as nursery:
        nursery.start_soon(inquirer.ask, sup.ref("clerk"))
        await wait_all_tasks_blocked()
        asked[0].reply("once")
        with pytest.raises(AlreadyReplied, match=r"^supervisor/clerk answered AskCall\(\) twice: "):
            asked[0].reply("twice") if again == "reply" else asked[0].fail(ReplyRefusedError())
    assert inquirer.answer == "once"


async def test_to_reply_and_to_return_a_value_is_to_answer_twice(autojump_clock: object) -> None:
    async def hasty(_puppet: Puppet, caller: Caller) -> str:
        caller.reply("early")
        return "late"

    inquirer = Inquirer()
    async with Supervisor(child(Puppet, id="p", restart="temporary")) as sup:
        ref = sup.ref("p", Puppet)
        await inquirer.ask(ref, RunCall(hasty))
        reason = await ref.wait()
        assert inquirer.answer == "early"
        assert isinstance(reason, Crashed)
        assert isinstance(reason.error, AlreadyReplied)
        assert "returns NOREPLY" in str(reason.error)


@pytest.mark.parametrize("how", ["reply", "fail"])
async def test_an_answer_for_a_callee_that_has_died_meanwhile_is_dropped(
    how: str, autojump_clock: object
) -> None:
    asked: list[Caller] = []
    inquirer = Inquirer()
    async with Supervisor(child(Clerk, asked, id="clerk")) as sup, trio.open_nursery() as nursery:
        nursery.start_soon(inquirer.ask, sup.ref("clerk"))
        await wait_all_tasks_blocked()
        sup.ref("clerk").kill()
        await wait_all_tasks_blocked()
        assert not asked[0].waiting
        asked[0].reply("too late") if how == "reply" else asked[0].fail(ReplyRefusedError())
    assert isinstance(inquirer.answer, ActorDown)


async def test_a_handler_that_has_replied_may_go_on_working(autojump_clock: object) -> None:
    async def work(_puppet: Puppet, caller: Caller) -> object:
        caller.reply("begun")
        await trio.sleep(3)
        return NOREPLY

    async with Supervisor(child(Puppet, id="p")) as sup:
        ref = sup.ref("p", Puppet)
        assert await ref.call(RunCall(work)) == "begun"
        assert trio.current_time() == 0.0
        await inside(ref, lambda _: None)
        assert trio.current_time() == 3.0


async def test_a_reply_and_a_continue_go_together(autojump_clock: object) -> None:
    class Eager(Actor):
        went_on = 0

        async def handle_call(self, message: object, caller: Caller) -> object:
            caller.reply(self.went_on)
            return Continue(10)

        async def handle_continue(self, arg: object) -> None:
            assert isinstance(arg, int)
            self.went_on += arg

    async with Supervisor(child(Eager, id="eager")) as sup:
        ref = sup.ref("eager")
        assert [str(await ref.call(AskCall())) for _ in range(3)] == ["0", "10", "20"]


@pytest.mark.parametrize("reply", ["done", None])
async def test_stop_with_a_reply_answers_and_then_ends(
    reply: str | None, autojump_clock: object
) -> None:
    async def leave(_puppet: Puppet, _caller: Caller) -> object:
        raise Stop(Shutdown("told to"), reply=reply)

    async with Supervisor(child(Puppet, id="p", restart="temporary")) as sup:
        ref = sup.ref("p", Puppet)
        assert await ref.call(RunCall(leave)) == reply
        assert await ref.wait() == Shutdown("told to")


async def test_stop_without_a_reply_leaves_the_caller_without_one(autojump_clock: object) -> None:
    async def leave(_puppet: Puppet, _caller: Caller) -> object:
        raise Stop

    async with Supervisor(child(Puppet, id="p", restart="temporary")) as sup:
        with pytest.raises(ActorDown) as down:
            await sup.ref("p", Puppet).call(RunCall(leave))
        assert (down.value.reason, down.value.__cause__) == (Normal(), None)


async def test_who_asked_is_known_where_it_is_a_child(autojump_clock: object) -> None:
    asked: list[Caller] = []

    async def ask_on(_puppet: Puppet, _caller: Caller) -> str:
        return await clerk.call(AskCall())

    async with Supervisor(child(Clerk, asked, id="clerk"), child(Puppet, id="p")) as sup:
        clerk, puppet = sup.ref("clerk"), sup.ref("p", Puppet)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(Inquirer().ask, puppet, RunCall(ask_on))
            nursery.start_soon(Inquirer().ask, clerk)
            await wait_all_tasks_blocked()
            assert {caller.ref for caller in asked} == {puppet, None}
            assert {repr(caller) for caller in asked} == {"<Caller of AskCall(): open>"}
            for caller in asked:
                caller.reply("yes")
            assert {repr(caller) for caller in asked} == {"<Caller of AskCall(): answered>"}


# Messages of the wrong kind, or to the wrong one.


async def test_a_cast_is_no_call_and_a_call_no_cast(autojump_clock: object) -> None:
    async with Supervisor(child(Puppet, id="p")) as sup:
        ref = sup.ref("p")
        with pytest.raises(TypeError, match=r"^call\(\) takes a Call, not NoteCast"):
            await ref.call(NoteCast())  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        with pytest.raises(TypeError, match=r"^cast\(\) takes a Cast, but AskCall\(\) is a Call"):
            ref.cast(AskCall())  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        assert ref.statistics().handled == 0


@pytest.mark.parametrize("how", ["call", "cast", "send", "post"])
async def test_a_function_takes_no_messages(how: str, autojump_clock: object) -> None:
    async with Supervisor(child(trio.sleep_forever, id="f")) as sup:
        ref = sup.ref("f")
        speak: Callable[[], object] = {
            "call": lambda: ref.call(AskCall()),
            "send": lambda: ref.send("hello"),
            "cast": lambda: ref.cast(NoteCast()),
            "post": lambda: ref.post("hello"),
        }[how]
        with pytest.raises(NotAnActor, match=r"^supervisor/f is a function, not an actor"):
            await said if isinstance(said := speak(), Awaitable) else None


async def test_a_supervisor_takes_no_messages(autojump_clock: object) -> None:
    async with Supervisor(TaskSupervisor(name="tasks")) as sup:
        with pytest.raises(NotAnActor, match=r"^supervisor/tasks is a supervisor, not an actor"):
            await sup.ref("tasks").call(AskCall())


async def test_casts_to_the_dead_say_nothing(autojump_clock: object) -> None:
    async with Supervisor(child(Puppet, id="p", restart="temporary")) as sup:
        ref = sup.ref("p", Puppet)
        ref.kill()
        await ref.wait()
        ref.cast(NoteCast())
        ref.post("hello")
        assert ref.statistics().mailbox == 0
        assert not ref.alive


async def test_a_full_mailbox_says_what_to_do(autojump_clock: object) -> None:
    class Small(Puppet):
        mailbox = 2

    async with Supervisor(child(Small, id="p"), name="root") as sup:
        ref = sup.ref("p", Small)
        ref.cast(NoteCast())
        ref.post("hello")
        with pytest.raises(MailboxFull) as full:
            ref.cast(NoteCast())
        assert str(full.value) == (
            "the mailbox of root/p is full (2 messages): `await ref.send(...)` waits for room, "
            "`mailbox = N` on the class makes more"
        )
        assert (full.value.who, full.value.bound) == ("root/p", 2)
        with pytest.raises(MailboxFull):
            ref.post("hello")


async def test_what_only_children_can_do_is_refused_to_others(autojump_clock: object) -> None:
    async with Supervisor(child(Puppet, id="p")) as sup:
        ref = sup.ref("p")
        for deed, name in [
            (ref.monitor, r"ref\.monitor"),
            (ref.link, r"ref\.link"),
            (ref.unlink, r"ref\.unlink"),
            (lambda: Registry().register("x"), r"registry\.register"),
            (lambda: Registry().unregister("x"), r"registry\.unregister"),
        ]:
            with pytest.raises(NotInActor, match=rf"^{name}\(\) was called outside a supervised"):
                deed()


async def test_a_function_may_link_but_not_monitor(autojump_clock: object) -> None:
    async def lonely(task_status: trio.TaskStatus[type[Exception]]) -> None:
        try:
            puppet.monitor()
        except NotAnActor as error:
            task_status.started(type(error))
        puppet.link()
        await trio.sleep_forever()

    async with Supervisor(child(Puppet, id="p", restart="temporary")) as sup:
        puppet = sup.ref("p", Puppet)
        ref = await sup.start_child(child(lonely, restart="temporary"))
        assert ref.started_value is NotAnActor
        await wait_all_tasks_blocked()
        puppet.cast(RunCast(_fall))
        reason: ExitReason = await ref.wait()
        assert isinstance(reason, Crashed)
        assert isinstance(reason.error, CrashError)


async def _fall(_puppet: Puppet) -> None:
    raise CrashError
