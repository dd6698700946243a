"""Guarantees of every supervisor, one test for each."""

from __future__ import annotations

import math

import outcome
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from sessionmgr.otp import (
    Crashed,
    DynamicSupervisor,
    ExitReason,
    Killed,
    NoProc,
    Normal,
    RestartIntensityExceeded,
    Shutdown,
    StartFailed,
    Supervisor,
    SupervisorStopping,
    UnknownChild,
    child,
)
from tests.otp.recording_children import (
    MemberCrashError,
    RecordingActor,
    RecordingChildren,
    fine,
    stop_with,
)
from tests.otp.supervisor_scripts import AutoShutdown, Restart


@pytest.fixture
def troupe() -> RecordingChildren:
    return RecordingChildren()


async def test_p01_no_task_is_left_when_the_block_has_ended(
    autojump_clock: MockClock, troupe: RecordingChildren
) -> None:
    before = trio.lowlevel.current_statistics().tasks_living
    nurseries = list(trio.lowlevel.current_task().child_nurseries)
    below = Supervisor(child(troupe.play, "x", id="x"), name="below")
    pool = DynamicSupervisor(name="pool")
    async with Supervisor(child(RecordingActor, troupe, "a"), below, pool, name="top"):
        await pool.start_child(child(troupe.play, "y"))
        await pool.start_child(fine)
        await troupe.crash("x", "y")
        assert trio.lowlevel.current_statistics().tasks_living > before
    assert trio.lowlevel.current_statistics().tasks_living == before
    assert trio.lowlevel.current_task().child_nurseries == nurseries


async def test_p02_the_old_incarnation_has_ended_before_the_new_one_begins(
    autojump_clock: MockClock, troupe: RecordingChildren
) -> None:
    troupe.farewells = {"a": 3.0, "b": 2.0}
    async with Supervisor(
        child(troupe.play, "a", id="a"),
        child(troupe.play, "b", id="b"),
        strategy="one_for_all",
    ) as sup:
        first = sup.ref("b")
        troupe.take_log()
        await troupe.crash("a")
        assert troupe.take_log() == ["stop a"]
        await trio.sleep(10)
        assert troupe.take_log() == ["stop b", "start a", "start b"]
        assert not first.alive
        assert sup.ref("b") is not first


async def test_p03_children_start_in_order_each_when_the_one_before_is_up(
    autojump_clock: MockClock, troupe: RecordingChildren
) -> None:
    troupe.inits = {"a": 2.0, "b": 1.0}
    begun = trio.current_time()
    async with Supervisor(*(child(RecordingActor, troupe, name) for name in "abc")):
        assert trio.current_time() - begun == 3.0
        assert troupe.log == ["start a", "start b", "start c"]


async def test_p03_a_failed_start_stops_those_before_in_reverse_and_says_why(
    autojump_clock: MockClock, troupe: RecordingChildren
) -> None:
    troupe.failing = {"c": {1}}
    with pytest.raises(StartFailed, match=r"child 'c' of supervisor 'top'") as caught:
        async with Supervisor(
            *(child(RecordingActor, troupe, n, id=n) for n in "abcd"), name="top"
        ):
            pytest.fail("the body ran")
    assert troupe.log == ["start a", "start b", "start c", "stop b", "stop a"]
    assert isinstance(caught.value.__cause__, MemberCrashError)
    assert (caught.value.supervisor, caught.value.child) == ("top", "c")


@pytest.mark.parametrize("ending", ["leave", "error", "cancel", "interrupt"])
async def test_p04_stop_order_is_reverse_of_start_order(
    autojump_clock: MockClock, troupe: RecordingChildren, ending: str
) -> None:
    troupe.farewells = dict.fromkeys("abc", 1.0)
    times: list[float] = []

    async def hold_block() -> None:
        async with Supervisor(*(child(RecordingActor, troupe, n) for n in "abc")):
            troupe.take_log()
            times.append(trio.current_time())
            match ending:
                case "error":
                    raise ValueError
                case "cancel":
                    await trio.sleep_forever()
                case "interrupt":
                    raise KeyboardInterrupt
                case _:
                    pass

    result: outcome.Maybe[None] | None = None
    with trio.move_on_after(1 if ending == "cancel" else math.inf):
        result = await outcome.acapture(hold_block)
        if ending == "cancel":
            result.unwrap()
    error = result.error if isinstance(result, outcome.Error) else None
    kinds = {"error": ValueError, "interrupt": KeyboardInterrupt, "cancel": trio.Cancelled}
    assert type(error) is kinds.get(ending, type(None))
    assert troupe.log == ["stop c", "stop b", "stop a"]
    # One by one, each with its own time.
    assert trio.current_time() - times[0] == (4.0 if ending == "cancel" else 3.0)


REASONS: dict[str, ExitReason] = {
    "normal": Normal(),
    "shutdown": Shutdown("for a reason"),
    "killed": Killed(),
    "crashed": Crashed(MemberCrashError()),
    "noproc": NoProc(),
}


@pytest.mark.parametrize("reason", REASONS)
@pytest.mark.parametrize("restart", ["permanent", "transient", "temporary"])
async def test_p05_restart_type_and_reason_decide_who_comes_back(
    autojump_clock: MockClock, troupe: RecordingChildren, restart: Restart, reason: str
) -> None:
    clean = reason in {"normal", "shutdown"}
    expected = {"permanent": True, "transient": not clean, "temporary": False}[restart]
    async with Supervisor(child(troupe.play, "a", id="a", restart=restart)) as sup:
        first = sup.ref("a")
        troupe.tell("a", deed=stop_with(REASONS[reason]))
        assert await first.wait() == REASONS[reason]
        await wait_all_tasks_blocked()
        assert troupe.born["a"] == (2 if expected else 1)
        rows = [(row.id, row.state) for row in sup.which_children()]
        state = "running" if expected else "stopped"
        assert rows == ([] if restart == "temporary" else [("a", state)])


@pytest.mark.parametrize("pause", [0.0, 2.5, 5.0])
async def test_p06_one_restart_too_many_in_the_closed_window_gives_up(
    autojump_clock: MockClock, troupe: RecordingChildren, pause: float
) -> None:
    with pytest.raises(RestartIntensityExceeded) as caught:  # noqa: PT012
        async with Supervisor(
            child(troupe.play, "a", id="a"), max_restarts=2, max_seconds=5.0, name="top"
        ):
            await troupe.crash("a")
            await troupe.crash("a")
            await trio.sleep(pause)
            assert troupe.born["a"] == 3
            await troupe.crash("a")
            await trio.sleep_forever()
    assert troupe.born["a"] == 3
    assert len(caught.value.exits) == 3
    assert (caught.value.supervisor, caught.value.child) == ("top", "a")


async def test_p06_a_restart_that_has_left_the_window_does_not_count(
    autojump_clock: MockClock, troupe: RecordingChildren
) -> None:
    async with Supervisor(child(troupe.play, "a", id="a"), max_restarts=1, max_seconds=5.0) as sup:
        for restarts in range(1, 10):
            await troupe.crash("a")
            assert sup.statistics().restarts == restarts
            assert sup.statistics().restarts_in_window == 1
            await trio.sleep(5.001)


async def test_p06_restarts_of_all_children_count_together(
    autojump_clock: MockClock, troupe: RecordingChildren
) -> None:
    with pytest.raises(RestartIntensityExceeded, match="gave up on child 'c'"):  # noqa: PT012
        async with Supervisor(*(child(troupe.play, n, id=n) for n in "abc"), max_restarts=2):
            for name in "abc":
                await troupe.crash(name)
            await trio.sleep_forever()


async def test_p07_a_restart_that_fails_is_tried_again_and_charged_each_time(
    autojump_clock: MockClock, troupe: RecordingChildren
) -> None:
    troupe.failing = {"a": {2, 3}}
    async with Supervisor(child(troupe.play, "a", id="a"), max_restarts=3) as sup:
        await troupe.crash("a")
        assert troupe.born["a"] == 4
        assert sup.statistics().restarts_in_window == 3
        assert sup.ref("a").alive


async def test_p07_restarts_that_fail_for_ever_use_up_the_intensity(
    autojump_clock: MockClock, troupe: RecordingChildren
) -> None:
    troupe.failing = {"a": set(range(2, 100))}
    with pytest.raises(RestartIntensityExceeded) as caught:  # noqa: PT012
        async with Supervisor(child(troupe.play, "a", id="a"), max_restarts=3):
            await troupe.crash("a")
            await trio.sleep_forever()
    assert troupe.born["a"] == 4
    assert str(caught.value.__cause__) == "a does not start"


async def test_p08_two_crashes_in_one_tick_are_one_restart_of_the_group(
    autojump_clock: MockClock, troupe: RecordingChildren
) -> None:
    async with Supervisor(
        *(child(troupe.play, n, id=n) for n in "abc"), strategy="one_for_all", max_restarts=1
    ) as sup:
        await troupe.crash("a", "c")
        assert troupe.born == {"a": 2, "b": 2, "c": 2}
        await trio.sleep(1)
        assert sup.statistics().restarts_in_window == 1


async def test_p08_under_one_for_one_each_of_them_is_charged(
    autojump_clock: MockClock, troupe: RecordingChildren
) -> None:
    async with Supervisor(*(child(troupe.play, n, id=n) for n in "abc"), max_restarts=2) as sup:
        await troupe.crash("a", "c")
        assert troupe.born == {"a": 2, "b": 1, "c": 2}
        assert sup.statistics().restarts_in_window == 2


@pytest.mark.parametrize("restart", ["transient", "temporary"])
@pytest.mark.parametrize(
    ("rule", "ends_with"),
    [("never", None), ("any_significant", "a"), ("all_significant", "b")],
)
async def test_p09_the_end_of_significant_children_may_end_the_supervisor(
    autojump_clock: MockClock,
    troupe: RecordingChildren,
    rule: AutoShutdown,
    ends_with: str | None,
    restart: Restart,
) -> None:
    significant = rule != "never"
    finished: list[str] = []
    async with Supervisor(
        child(troupe.play, "a", id="a", restart=restart, significant=significant),
        child(troupe.play, "plain", id="plain", restart="transient"),
        child(troupe.play, "b", id="b", restart=restart, significant=significant),
        auto_shutdown=rule,
    ):
        for name in ["plain", "a", "b"]:
            finished.append(name)
            await troupe.finish(name)
            await trio.sleep(1)
        finished.append("nothing ended it")
    assert finished[-1] == (ends_with or "nothing ended it")


async def test_p09_a_significant_child_that_comes_back_ends_nothing(
    autojump_clock: MockClock, troupe: RecordingChildren
) -> None:
    async with Supervisor(
        child(troupe.play, "a", id="a", restart="transient", significant=True),
        child(troupe.play, "b", id="b", restart="transient", significant=True, backoff=(9, 9, 0)),
        auto_shutdown="all_significant",
    ) as sup:
        await troupe.crash("b")
        # Not gone: it waits for its restart.
        await troupe.finish("a")
        await trio.sleep(10)
        assert [row.state for row in sup.which_children()] == ["stopped", "running"]


async def test_p10_a_stop_takes_the_sum_of_the_shutdowns(
    autojump_clock: MockClock, troupe: RecordingChildren
) -> None:
    troupe.farewells = dict.fromkeys("abcd", math.inf)
    troupe.farewells["c"] = 1.0
    async with Supervisor(
        child(RecordingActor, troupe, "a", shutdown=4.0),
        child(RecordingActor, troupe, "b", shutdown="brutal_kill"),
        child(RecordingActor, troupe, "c", shutdown=50.0),
        child(RecordingActor, troupe, "d", shutdown=2.0),
    ):
        begun = trio.current_time()
    assert trio.current_time() - begun == 4.0 + 0.0 + 1.0 + 2.0


async def test_p10_a_dynamic_supervisor_stops_in_the_longest_of_them(
    autojump_clock: MockClock, troupe: RecordingChildren
) -> None:
    troupe.farewells = dict.fromkeys("abc", math.inf)
    async with DynamicSupervisor() as sup:
        for name, shutdown in [("a", 4.0), ("b", 3.0), ("c", 1.0)]:
            await sup.start_child(child(RecordingActor, troupe, name, shutdown=shutdown))
        begun = trio.current_time()
    assert trio.current_time() - begun == 4.0
    assert sorted(troupe.log[3:]) == ["stop a", "stop b", "stop c"]


@pytest.mark.parametrize("kind", [Supervisor, DynamicSupervisor])
async def test_p11_a_stopping_supervisor_takes_nobody(
    autojump_clock: MockClock, troupe: RecordingChildren, kind: type[Supervisor | DynamicSupervisor]
) -> None:
    troupe.farewells = {"a": 3.0}

    sup = kind()

    async def ask() -> None:
        await trio.sleep(1)
        assert sup.statistics().state == "stopping"
        with pytest.raises(SupervisorStopping, match="is stopping"):
            await sup.start_child(fine)

    async with trio.open_nursery() as nursery, sup:
        await sup.start_child(child(RecordingActor, troupe, "a"))
        nursery.start_soon(ask)


@pytest.mark.parametrize("kind", [Supervisor, DynamicSupervisor])
async def test_p11_a_start_in_flight_is_gone_when_the_supervisor_stops(
    autojump_clock: MockClock, troupe: RecordingChildren, kind: type[Supervisor | DynamicSupervisor]
) -> None:
    troupe.inits = {"slow": 10.0}
    sup = kind()

    async def ask() -> None:
        with pytest.raises(SupervisorStopping):
            await sup.start_child(child(RecordingActor, troupe, "slow", id="slow"))

    async with trio.open_nursery() as nursery:
        async with sup:
            nursery.start_soon(ask)
            await trio.sleep(1)
            begun = trio.current_time()
        assert trio.current_time() == begun
    assert troupe.log == ["start slow"]


@pytest.mark.parametrize("kind", [Supervisor, DynamicSupervisor])
async def test_p11_a_start_whose_caller_is_cancelled_leaves_nothing_behind(
    autojump_clock: MockClock, troupe: RecordingChildren, kind: type[Supervisor | DynamicSupervisor]
) -> None:
    troupe.inits = {"slow": 10.0}
    async with kind() as sup:
        with trio.move_on_after(1) as scope:
            await sup.start_child(child(RecordingActor, troupe, "slow", id="slow"))
        assert scope.cancelled_caught
        await wait_all_tasks_blocked()
        assert sup.which_children() == []
        with pytest.raises(UnknownChild):
            sup.ref("slow")
        troupe.inits = {}
        assert (await sup.start_child(child(RecordingActor, troupe, "slow", id="slow"))).alive
