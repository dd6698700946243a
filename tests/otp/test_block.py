"""Supervisors as blocks: what ends the block, what leaves it, and how long children run."""

from __future__ import annotations

from contextvars import ContextVar

import pytest
import trio
from trio.testing import MockClock

from sessionmgr.otp import (
    Actor,
    Call,
    Caller,
    Crashed,
    RestartIntensityExceeded,
    StartFailed,
    Supervisor,
    child,
)
from tests.otp.recording_children import (
    MemberCrashError,
    RecordingActor,
    RecordingChildren,
    crash,
    fine,
)

WHERE: ContextVar[str] = ContextVar("WHERE", default="nowhere")


@pytest.fixture
def troupe() -> RecordingChildren:
    return RecordingChildren()


class AskCall(Call[str]):
    pass


class Echo(Actor):
    async def handle_call(self, message: object, caller: Caller, /) -> object:
        return "here"


async def test_giving_up_cancels_the_body_and_leaves_bare(
    autojump_clock: MockClock, troupe: RecordingChildren
) -> None:
    cancelled = False
    with pytest.raises(RestartIntensityExceeded) as caught:  # noqa: PT012
        async with Supervisor(child(troupe.play, "a", id="a"), max_restarts=0):
            troupe.tell("a", deed=crash)
            try:
                await trio.sleep_forever()
            except trio.Cancelled:
                cancelled = True
                raise
    assert cancelled
    (last,) = caught.value.exits
    assert isinstance(last, Crashed)
    assert caught.value.__cause__ is last.error
    assert isinstance(last.error, MemberCrashError)


async def test_giving_up_stops_the_others_in_reverse_before_the_body_is_cancelled(
    autojump_clock: MockClock, troupe: RecordingChildren
) -> None:
    with pytest.raises(RestartIntensityExceeded):  # noqa: PT012
        async with Supervisor(
            child(RecordingActor, troupe, "a"),
            child(troupe.play, "b", id="b"),
            child(RecordingActor, troupe, "c"),
            max_restarts=0,
        ):
            troupe.take_log()
            troupe.tell("b", deed=crash)
            try:
                await trio.sleep_forever()
            finally:
                troupe.log.append("body")
    assert troupe.log == ["stop b", "stop c", "stop a", "body"]


@pytest.mark.parametrize(
    "error",
    [ValueError("one"), ExceptionGroup("several", [ValueError(), TypeError()])],
    ids=["error", "group"],
)
async def test_an_exception_of_the_body_leaves_as_it_is(error: Exception) -> None:
    with pytest.raises(type(error)) as caught:
        async with Supervisor(fine):
            raise error
    assert caught.value is error


async def test_ctrl_c_in_the_body_leaves_as_it_is() -> None:
    with pytest.raises(KeyboardInterrupt):
        async with Supervisor(fine):
            raise KeyboardInterrupt


async def test_giving_up_and_a_failing_body_leave_together(
    autojump_clock: MockClock, troupe: RecordingChildren
) -> None:
    error = ValueError("in the body's own clean-up")
    with pytest.RaisesGroup(RestartIntensityExceeded, ValueError) as caught:
        async with Supervisor(child(troupe.play, "a", id="a"), max_restarts=0):
            troupe.tell("a", deed=crash)
            try:
                await trio.sleep_forever()
            finally:
                raise error
    assert error in caught.value.exceptions


async def test_giving_up_while_cancelled_from_outside_leaves_bare(
    autojump_clock: MockClock, troupe: RecordingChildren
) -> None:
    with pytest.raises(RestartIntensityExceeded), trio.CancelScope() as outer:  # noqa: PT012
        async with Supervisor(
            child(troupe.play, "a", id="a"), child(RecordingActor, troupe, "b"), max_restarts=0
        ):
            troupe.farewells = {"b": 2.0}
            await troupe.crash("a")
            outer.cancel()
            await trio.sleep_forever()


async def test_auto_shutdown_ends_the_block_silently(
    autojump_clock: MockClock, troupe: RecordingChildren
) -> None:
    reached = False
    async with Supervisor(
        child(RecordingActor, troupe, "a"),
        child(troupe.play, "b", id="b", restart="temporary", significant=True),
        auto_shutdown="any_significant",
    ):
        troupe.take_log()
        await troupe.finish("b")
        await trio.sleep(100)
        reached = True
    assert not reached
    assert troupe.log == ["stop b", "stop a"]


async def test_children_serve_a_cancelled_body_until_it_has_ended(
    autojump_clock: MockClock, troupe: RecordingChildren
) -> None:
    answers: list[str] = []
    with trio.move_on_after(1):
        async with Supervisor(child(Echo, id="echo"), child(RecordingActor, troupe, "b")) as sup:
            troupe.take_log()
            try:
                await trio.sleep_forever()
            finally:
                with trio.CancelScope(shield=True):
                    await trio.sleep(2)
                    answers.append(await sup.ref("echo", Echo).call(AskCall()))
                    troupe.log.append("body")
    assert answers == ["here"]
    assert troupe.log == ["body", "stop b"]


async def test_a_cancel_while_the_block_is_entered_stops_what_has_started(
    autojump_clock: MockClock, troupe: RecordingChildren
) -> None:
    troupe.inits = {"c": 10.0}
    with trio.move_on_after(3) as scope:
        async with Supervisor(*(child(RecordingActor, troupe, name) for name in "abcd")):
            pytest.fail("the body ran")
    assert scope.cancelled_caught
    assert trio.current_time() == 3.0
    assert troupe.log == ["start a", "start b", "start c", "stop b", "stop a"]


async def test_a_block_can_be_entered_again_and_starts_anew(
    autojump_clock: MockClock, troupe: RecordingChildren
) -> None:
    sup = Supervisor(child(troupe.play, "a", id="a"), max_restarts=1)
    for lives in (2, 4):
        async with sup:
            await troupe.crash("a")
            assert sup.statistics().restarts == 1
            assert troupe.born["a"] == lives


async def test_a_supervisor_below_that_gives_up_is_a_crash_for_the_one_above(
    autojump_clock: MockClock, troupe: RecordingChildren
) -> None:
    below = Supervisor(
        child(RecordingActor, troupe, "x"),
        child(troupe.play, "y", id="y"),
        max_restarts=0,
        name="below",
    )
    async with Supervisor(child(below, restart="transient")) as top:
        first = top.ref("below")
        troupe.take_log()
        await troupe.crash("y")
        reason = await first.wait()
        assert isinstance(reason, Crashed)
        assert isinstance(reason.error, RestartIntensityExceeded)
        assert reason.error.supervisor == "supervisor/below"
        assert troupe.take_log() == ["stop y", "stop x", "start x", "start y"]


async def test_a_supervisor_below_that_does_not_start_fails_the_one_above(
    autojump_clock: MockClock, troupe: RecordingChildren
) -> None:
    troupe.failing = {"x": {1}}
    below = Supervisor(child(RecordingActor, troupe, "x", id="x"), name="below")
    with pytest.raises(StartFailed) as caught:
        async with Supervisor(child(RecordingActor, troupe, "a"), below, name="top"):
            pytest.fail("the body ran")
    cause = caught.value.__cause__
    assert isinstance(cause, StartFailed)
    assert (cause.supervisor, cause.child) == ("top/below", "x")
    assert troupe.log == ["start a", "start x", "stop a"]


async def test_children_see_the_context_of_the_supervisor_not_of_who_asks() -> None:
    seen: list[str] = []

    async def look() -> None:
        seen.append(WHERE.get())
        await trio.sleep_forever()

    token = WHERE.set("supervisor")
    async with Supervisor(look) as sup:
        WHERE.set("asker")
        await sup.start_child(look)
    WHERE.reset(token)
    assert seen == ["supervisor", "supervisor"]
