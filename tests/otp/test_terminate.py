"""`terminate`: whether it runs, when, and for how long."""

from __future__ import annotations

import contextlib
import logging
import math
from typing import Literal, NamedTuple

import pytest
import trio
from hypothesis import given, strategies as st

from sessionmgr.otp import (
    NOREPLY,
    Actor,
    Call,
    Caller,
    Cast,
    Crashed,
    ExitReason,
    Killed,
    Normal,
    Ref,
    Shutdown,
    StartFailed,
    Stop,
    Supervisor,
    UnknownChild,
    child,
)
from tests.otp.puppets import CrashError, in_virtual_time

Grace = float | Literal["brutal_kill"]


class WorkCast(Cast):
    """Be busy for so many seconds, and then end in this way."""

    seconds: float
    then: str = ""


class AskCall(Call[str]):
    pass


class Mortal(Actor):
    """Writes down when its handlers and its `terminate` begin and end."""

    def __init__(self, log: list[tuple[str, float]], farewell: float) -> None:
        self.log = log
        self.farewell = farewell

    def note(self, what: str) -> None:
        self.log.append((what, trio.current_time()))

    async def handle_cast(self, message: Cast) -> None:
        assert isinstance(message, WorkCast)
        self.note("handler")
        try:
            await trio.sleep(message.seconds)
        finally:
            self.note("handler ended")
        if message.then == "crash":
            raise CrashError
        if message.then == "Stop":
            raise Stop

    async def terminate(self, reason: ExitReason) -> None:
        self.note("terminate")
        await trio.sleep(self.farewell)
        self.note("terminate ended")


class PlannedEnd(NamedTuple):
    """Something that ends the actor, and when."""

    time: int
    how: str


BLOWS = ["stop", "kill", "terminate_child", "crash", "Stop"]


@given(
    grace=st.sampled_from([0.5, 1.5, math.inf, "brutal_kill"]),
    farewell=st.sampled_from([0.0, 1.0, 2.0, 7.0]),
    work=st.lists(
        st.sampled_from([WorkCast(0.0), WorkCast(2.0), WorkCast(1.0, "crash")]), max_size=4
    ),
    blows=st.lists(st.builds(PlannedEnd, st.integers(0, 6), st.sampled_from(BLOWS)), max_size=4),
    schedule=st.random_module(),
)
def test_p19_terminate_runs_at_most_once_after_the_last_handler_and_never_after_a_kill(
    grace: Grace, farewell: float, work: list[WorkCast], blows: list[PlannedEnd], schedule: object
) -> None:
    log: list[tuple[str, float]] = []
    reasons: list[ExitReason] = []

    async def strike(sup: Supervisor, ref: Ref[Mortal], blow: PlannedEnd) -> None:
        await trio.sleep(blow.time)
        if blow.how == "stop":
            ref.stop()
        elif blow.how == "kill" and ref.alive:
            log.append(("kill", trio.current_time()))
            ref.kill()
        elif blow.how == "terminate_child":
            with contextlib.suppress(UnknownChild):
                await sup.terminate_child(ref)
        else:
            ref.cast(WorkCast(0, blow.how))

    async def main() -> None:
        mortal = child(Mortal, log, farewell, id="m", shutdown=grace, restart="temporary")
        refs: list[Ref[Mortal]] = []
        async with Supervisor(mortal) as sup, trio.open_nursery() as nursery:
            ref = sup.ref("m", Mortal)
            refs.append(ref)
            for message in work:
                ref.cast(message)
            for blow in blows:
                nursery.start_soon(strike, sup, ref, blow)
            with trio.move_on_after(10):
                await ref.wait()
            nursery.cancel_scope.cancel()
        log.append(("end", trio.current_time()))
        reasons.append(await refs[0].wait())

    in_virtual_time(main)
    story = [what for what, _ in log]
    when = dict(log)
    assert story.count("terminate") <= 1
    assert reasons != [Normal()] or "terminate" in story
    if "kill" in story and "terminate" in story:
        assert story.index("terminate") < story.index("kill")
    elif "kill" not in story and grace != "brutal_kill":
        assert "terminate" in story
    if "terminate" in story:
        after = story[story.index("terminate") + 1 :]
        assert set(after) <= {"kill", "terminate ended", "end"}
        patience = 5.0 if grace == "brutal_kill" else grace
        assert when["end"] - when["terminate"] <= min(patience, farewell)
        cut_short = "terminate ended" not in story
        assert not cut_short or isinstance(reasons[0], Killed | Crashed)


@pytest.mark.parametrize(
    ("grace", "farewell", "reason", "duration"),
    [
        (5.0, 0.0, Shutdown(), 0.0),
        (5.0, 4.0, Shutdown(), 4.0),
        (5.0, 6.0, Killed(), 5.0),
        (0.5, math.inf, Killed(), 0.5),
        (math.inf, 1000.0, Shutdown(), 1000.0),
        ("brutal_kill", 1.0, Killed(), 0.0),
    ],
)
async def test_p19_the_overrun_of_terminate_never_delays_a_stop_beyond_shutdown(
    grace: Grace, farewell: float, reason: ExitReason, duration: float, autojump_clock: object
) -> None:
    log: list[tuple[str, float]] = []
    began = trio.current_time()
    refs: list[Ref[Actor]] = []
    async with Supervisor(child(Mortal, log, farewell, id="m", shutdown=grace)) as sup:
        refs.append(sup.ref("m"))
    assert trio.current_time() - began == duration
    assert await refs[0].wait() == reason
    assert [what for what, _ in log][:1] == ([] if grace == "brutal_kill" else ["terminate"])


@pytest.mark.parametrize("then", ["crash", "Stop"])
async def test_p19_an_end_of_its_own_gives_terminate_the_same_time(
    then: str, autojump_clock: object
) -> None:
    log: list[tuple[str, float]] = []
    mortal = child(Mortal, log, math.inf, id="m", shutdown=2.0, restart="temporary")
    async with Supervisor(mortal) as sup:
        ref = sup.ref("m", Mortal)
        ref.cast(WorkCast(0, then))
        reason = await ref.wait()
        assert trio.current_time() - dict(log)["terminate"] == 2.0
        assert isinstance(reason, Crashed if then == "crash" else Killed)


async def test_p19_a_kill_cuts_terminate_short(autojump_clock: object) -> None:
    log: list[tuple[str, float]] = []
    mortal = child(Mortal, log, 60.0, id="m", shutdown=math.inf, restart="temporary")
    async with Supervisor(mortal) as sup:
        ref = sup.ref("m")
        ref.stop()
        await trio.sleep(1)
        ref.kill()
        assert await ref.wait() == Killed()
        assert trio.current_time() - dict(log)["terminate"] == 1.0


async def test_an_outer_cancel_does_not_reach_terminate(autojump_clock: object) -> None:
    log: list[tuple[str, float]] = []
    with trio.move_on_after(1) as outer:
        async with Supervisor(child(Mortal, log, 3.0, id="m")) as sup:
            sup.ref("m", Mortal).cast(WorkCast(60))
            await trio.sleep_forever()
    assert outer.cancelled_caught
    assert [what for what, _ in log] == ["handler", "handler ended", "terminate", "terminate ended"]
    assert dict(log)["terminate ended"] - dict(log)["terminate"] == 3.0


class Loud(Actor):
    """Actor that raises in `terminate`, and elsewhere on request."""

    def __init__(self, error: Exception, at_birth: bool = False) -> None:
        self.error = error
        self.at_birth = at_birth
        self.asked: list[Caller] = []
        self.told: list[ExitReason] = []

    async def init(self) -> None:
        if self.at_birth:
            raise CrashError

    async def handle_call(self, message: object, caller: Caller) -> object:
        self.asked.append(caller)
        return NOREPLY

    async def handle_cast(self, message: Cast) -> None:
        raise CrashError

    async def terminate(self, reason: ExitReason) -> None:
        for caller in self.asked:
            caller.reply(f"farewell ({type(reason).__name__})")
        raise self.error


async def test_an_error_in_terminate_makes_a_clean_end_a_crash(autojump_clock: object) -> None:
    error = ValueError("no farewell")
    async with Supervisor(child(Loud, error, id="loud", restart="temporary")) as sup:
        ref = sup.ref("loud")
        ref.stop()
        assert await ref.wait() == Crashed(error)


async def test_an_error_in_terminate_does_not_hide_the_crash_before_it(
    autojump_clock: object, caplog: pytest.LogCaptureFixture
) -> None:
    error = ValueError("no farewell")
    async with Supervisor(child(Loud, error, id="loud", restart="temporary")) as sup:
        ref = sup.ref("loud", Loud)
        with caplog.at_level(logging.ERROR, "sessionmgr.otp"):
            ref.cast(WorkCast(0))
            reason = await ref.wait()
        assert isinstance(reason, Crashed)
        assert isinstance(reason.error, CrashError)
        said = {vars(record)["event"]: vars(record)["reason"] for record in caplog.records}
        assert said == {"terminate_failed": Crashed(error), "child_crashed": reason}


async def test_stop_in_terminate_is_no_crash(autojump_clock: object) -> None:
    stop = Stop(Shutdown("in other words"))
    async with Supervisor(child(Loud, stop, id="loud", restart="temporary")) as sup:
        ref = sup.ref("loud")
        ref.stop()
        assert await ref.wait() == Shutdown("in other words")


async def test_stop_in_terminate_does_not_hide_the_crash_before_it(autojump_clock: object) -> None:
    async with Supervisor(child(Loud, Stop(), id="loud", restart="temporary")) as sup:
        ref = sup.ref("loud", Loud)
        ref.cast(WorkCast(0))
        assert isinstance(await ref.wait(), Crashed)


async def test_what_never_came_up_says_no_farewell(
    autojump_clock: object, caplog: pytest.LogCaptureFixture
) -> None:
    async with Supervisor() as sup:
        with pytest.raises(StartFailed) as failed:
            await sup.start_child(child(Loud, ValueError("said a farewell"), True))
        assert isinstance(failed.value.__cause__, CrashError)
    assert "said a farewell" not in caplog.text


async def test_terminate_may_still_answer_what_was_put_off(autojump_clock: object) -> None:
    answers: list[str] = []

    async def ask(ref: Ref[Loud]) -> None:
        answers.append(await ref.call(AskCall()))

    async with Supervisor(child(Loud, Stop(), id="loud", restart="temporary")) as sup:
        ref = sup.ref("loud", Loud)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, ref)
            nursery.start_soon(ask, ref)
            await trio.sleep(1)
            ref.stop(Shutdown())
    assert answers == ["farewell (Shutdown)"] * 2
