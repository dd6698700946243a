"""Introspection of a running tree, and its log records."""

from __future__ import annotations

import logging

import pytest
import trio
from trio.testing import MockClock

from sessionmgr.otp import (
    Actor,
    Crashed,
    DynamicSupervisor,
    RestartIntensityExceeded,
    Supervisor,
    child,
)
from tests.otp.recording_children import MemberCrashError, RecordingActor, RecordingChildren, crash


@pytest.fixture
def troupe() -> RecordingChildren:
    return RecordingChildren()


def events(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str, str]]:
    """Give event, supervisor and child of each record of ours."""
    return [
        (str(vars(r)["event"]), str(vars(r)["supervisor"]), str(vars(r)["child"]))
        for r in caplog.records
        if r.name == "sessionmgr.otp"
    ]


async def test_which_children_lists_them_in_start_order(
    autojump_clock: MockClock, troupe: RecordingChildren
) -> None:
    below = Supervisor(name="below")
    async with Supervisor(
        child(RecordingActor, troupe, "a", id="a"), below, child(troupe.play, "b", id="b")
    ) as sup:
        await sup.start_child(child(troupe.play, "c", id="c"))
        await troupe.crash("b")
        await sup.terminate_child("a")
        rows = [(r.id, r.kind, r.state, r.restarts) for r in sup.which_children()]
        assert rows == [
            ("a", "worker", "stopped", 0),
            ("below", "supervisor", "running", 0),
            ("b", "worker", "running", 1),
            ("c", "worker", "running", 0),
        ]
        refs = {row.id: row.ref for row in sup.which_children()}
        assert refs["a"] is None
        assert refs["b"] is sup.ref("b")


async def test_count_children_counts_specs_and_lives(
    autojump_clock: MockClock, troupe: RecordingChildren
) -> None:
    async with Supervisor(
        child(RecordingActor, troupe, "a", id="a"),
        DynamicSupervisor(name="pool"),
        child(troupe.play, "b", id="b", restart="transient"),
    ) as sup:
        await troupe.finish("b")
        counts = sup.count_children()
        assert (counts.specs, counts.active) == (3, 2)
        assert (counts.supervisors, counts.workers) == (1, 2)


async def test_a_child_that_starts_or_stops_says_so(
    autojump_clock: MockClock, troupe: RecordingChildren
) -> None:
    troupe.inits = {"a": 2.0}
    troupe.farewells = {"a": 2.0}
    async with Supervisor() as sup, trio.open_nursery() as nursery:
        nursery.start_soon(sup.start_child, child(RecordingActor, troupe, "a", id="a"))
        await trio.sleep(1)
        assert [row.state for row in sup.which_children()] == ["starting"]
        await trio.sleep(2)
        nursery.start_soon(sup.terminate_child, "a")
        await trio.sleep(1)
        assert [row.state for row in sup.which_children()] == ["stopping"]


async def test_statistics_say_how_a_supervisor_is(
    autojump_clock: MockClock, troupe: RecordingChildren
) -> None:
    async with Supervisor(child(troupe.play, "a", id="a"), name="top") as sup:
        await troupe.crash("a")
        await trio.sleep(6)
        await troupe.crash("a")
        how = sup.statistics()
        assert (how.name, how.state, how.age) == ("top", "running", 6.0)
        assert (how.children, how.active) == (1, 1)
        assert (how.restarts, how.restarts_in_window) == (2, 1)


async def test_the_tree_shows_names_states_mailboxes_restarts_and_ages(
    autojump_clock: MockClock, troupe: RecordingChildren
) -> None:
    pool = DynamicSupervisor(name="pool")
    async with Supervisor(
        child(RecordingActor, troupe, "a", id="a"),
        pool,
        child(troupe.play, "b", id="b"),
        name="top",
    ) as sup:
        await pool.start_child(child(RecordingActor, troupe, "x", id="x"))
        await troupe.crash("b")
        await sup.terminate_child("a")
        await trio.sleep(90)
        assert sup.tree().splitlines() == [
            "top (Supervisor)  running  children 2/3  age 1 min 30 s  restarts 1 (0 in the window)",
            "├─ a  stopped",
            "├─ pool (DynamicSupervisor)  running  children 1/1  age 1 min 30 s",
            "│  └─ x  running  mailbox 0/1024  age 1 min 30 s",
            "└─ b  running  age 1 min 30 s  restarts 1",
        ]


async def test_a_wide_tree_is_cut(autojump_clock: MockClock, troupe: RecordingChildren) -> None:
    async with DynamicSupervisor(name="pool") as pool:
        for number in range(10):
            await pool.start_child(child(RecordingActor, troupe, "m", id=f"m{number}"))
        assert pool.tree(limit=3).splitlines()[-1] == "└─ … and 7 more"


async def test_each_crash_and_restart_is_one_record(
    autojump_clock: MockClock, troupe: RecordingChildren, caplog: pytest.LogCaptureFixture
) -> None:
    below = Supervisor(child(troupe.play, "a", id="a"), name="below")
    async with Supervisor(below, name="top"):
        await troupe.crash("a")
    assert events(caplog) == [
        ("child_crashed", "top/below", "a"),
        ("child_restarted", "top/below", "a"),
    ]
    crashed, restarted = caplog.records
    assert crashed.levelno == logging.ERROR
    assert crashed.exc_info is not None
    assert isinstance(crashed.exc_info[1], MemberCrashError)
    assert isinstance(vars(crashed)["reason"], Crashed)
    assert restarted.getMessage() == (
        "A child was restarted. supervisor=top/below child=a reason='crashed (MemberCrashError)'"
    )


@pytest.mark.parametrize("kind", [Supervisor, DynamicSupervisor])
async def test_giving_up_is_one_record(
    autojump_clock: MockClock,
    troupe: RecordingChildren,
    caplog: pytest.LogCaptureFixture,
    kind: type[Supervisor | DynamicSupervisor],
) -> None:
    with pytest.raises(RestartIntensityExceeded):  # noqa: PT012
        async with kind(name="top", max_restarts=0) as sup:
            await sup.start_child(child(troupe.play, "a", id="a"))
            await troupe.crash("a")
            await trio.sleep_forever()
    assert events(caplog) == [
        ("child_crashed", "top", "a"),
        ("supervisor_gave_up", "top", "a"),
    ]


async def test_a_restart_that_fails_is_one_record(
    autojump_clock: MockClock, troupe: RecordingChildren, caplog: pytest.LogCaptureFixture
) -> None:
    troupe.failing = {"a": {2}}
    async with Supervisor(child(troupe.play, "a", id="a"), name="top"):
        await troupe.crash("a")
    assert [event for event, _, _ in events(caplog)] == [
        "child_crashed",
        "start_failed",
        "child_restarted",
    ]


async def test_ends_that_nobody_needs_to_worry_about_are_not_logged(
    autojump_clock: MockClock, troupe: RecordingChildren, caplog: pytest.LogCaptureFixture
) -> None:
    async with Supervisor(
        child(troupe.play, "a", id="a", restart="transient"), child(RecordingActor, troupe, "b")
    ):
        await troupe.finish("a")
    assert events(caplog) == []


async def test_a_restart_that_a_stop_interrupts_is_no_failed_start(
    autojump_clock: MockClock, troupe: RecordingChildren, caplog: pytest.LogCaptureFixture
) -> None:
    async with Supervisor(child(troupe.play, "a", id="a")):
        troupe.inits = {"a": 5.0}
        await troupe.crash("a")
    assert [event for event, _, _ in events(caplog)] == ["child_crashed"]


async def test_a_child_without_an_id_is_called_after_what_it_runs(
    autojump_clock: MockClock, troupe: RecordingChildren
) -> None:
    given = child(troupe.play, "c", id="play-1")
    sup = Supervisor(child(troupe.play, "a"), child(troupe.play, "b"), given)
    for _ in range(2):
        async with sup:
            await sup.start_child(child(troupe.play, "d"))
            ids = [row.id for row in sup.which_children()]
            assert ids == ["play-2", "play-3", "play-1", "play-4"]


async def test_a_nested_supervisor_that_has_just_ended_can_be_drawn(
    autojump_clock: MockClock, troupe: RecordingChildren
) -> None:
    below = Supervisor(child(troupe.play, "x"), name="below", max_restarts=0)
    async with Supervisor(child(below, restart="temporary"), name="top") as sup:
        ref = sup.ref("below")
        troupe.tell("x", deed=crash)
        await ref.wait()
        assert sup.tree().split("\n")[0].startswith("top (Supervisor)  running")


async def test_a_reference_is_typed_by_a_class_or_by_what_it_derives_from(
    autojump_clock: MockClock, troupe: RecordingChildren
) -> None:
    class Understudy(RecordingActor):
        pass

    async with Supervisor(child(Understudy, troupe, "a", id="a")) as sup:
        assert sup.ref("a", RecordingActor) is sup.ref("a", Understudy) is sup.ref("a")
        with pytest.raises(TypeError, match=r"is Understudy, not Stranger$"):
            sup.ref("a", Stranger)


class Stranger(Actor):
    pass
