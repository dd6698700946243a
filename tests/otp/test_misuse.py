"""Misuse of supervisors: each error names the mistake."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import cast

import pytest
from trio.testing import wait_all_tasks_blocked

from sessionmgr.otp import (
    ChildRunning,
    DuplicateChild,
    DynamicSupervisor,
    MaxChildren,
    Normal,
    Shutdown,
    StartFailed,
    Stop,
    Supervisor,
    SupervisorNotRunning,
    TaskSupervisor,
    UnknownChild,
    child,
)
from sessionmgr.otp.ref import Ref
from tests.otp.recording_children import RecordingActor, RecordingChildren, fine

# What a type checker would refuse goes through here.
loosely = cast("Callable[..., object]", child)
loose_supervisor = cast("Callable[..., object]", Supervisor)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"restart": "always"}, "restart='always': must be one of permanent, transient, temporary"),
        ({"shutdown": -1}, "shutdown=-1: "),
        ({"shutdown": math.nan}, "shutdown=nan: "),
        ({"shutdown": "soon"}, "shutdown='soon': "),
        ({"significant": True}, "restart='permanent'"),
        ({"backoff": (2, 1, 0)}, "backoff="),
        ({"backoff": (-1, 1, 0)}, "backoff="),
        ({"backoff": (1, 2, 3)}, "backoff="),
    ],
)
def test_a_child_with_an_impossible_option_is_refused(
    options: dict[str, object], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        loosely(fine, **options)


@pytest.mark.parametrize("target", [print, 3, RecordingChildren, "fine"])
def test_a_child_that_cannot_run_is_refused(target: object) -> None:
    with pytest.raises(TypeError, match="a class of actors, an async function or a supervisor"):
        loosely(target)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"strategy": "all"},
            "strategy='all': must be one of one_for_one, one_for_all, rest_for_one",
        ),
        ({"auto_shutdown": "always"}, "auto_shutdown='always': must be one of never, "),
        ({"max_restarts": -1}, "max_restarts=-1: "),
        ({"max_seconds": 0}, "max_seconds=0: "),
        ({"max_seconds": math.nan}, "max_seconds=nan: "),
    ],
)
def test_a_supervisor_with_an_impossible_option_is_refused(
    options: dict[str, object], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        loose_supervisor(**options)


@pytest.mark.parametrize("kind", [DynamicSupervisor, TaskSupervisor])
def test_a_pool_without_room_is_refused(kind: type[DynamicSupervisor | TaskSupervisor]) -> None:
    with pytest.raises(ValueError, match="max_children=0: "):
        kind(max_children=0)


def test_a_duplicate_id_is_refused_at_once() -> None:
    with pytest.raises(DuplicateChild, match="supervisor 'top' already has a child 'a'"):
        Supervisor(child(fine, id="a"), fine, child(fine, id="a"), name="top")


def test_a_significant_child_needs_an_auto_shutdown() -> None:
    spec = child(fine, id="a", restart="transient", significant=True)
    with pytest.raises(ValueError, match=r"'a' is significant.*'top'.*auto_shutdown='never'"):
        Supervisor(spec, name="top")


async def test_a_significant_child_needs_an_auto_shutdown_also_later() -> None:
    async with Supervisor() as sup:
        with pytest.raises(ValueError, match="significant"):
            await sup.start_child(child(fine, restart="transient", significant=True))


async def test_children_without_an_id_get_one_that_is_free() -> None:
    async with Supervisor(fine, child(fine, id="fine-1"), fine) as sup:
        await sup.start_child(fine)
        ids = [row.id for row in sup.which_children()]
        assert len(set(ids)) == 4


@pytest.mark.parametrize("kind", [Supervisor, DynamicSupervisor])
async def test_outside_its_block_a_supervisor_takes_no_orders(
    kind: type[Supervisor | DynamicSupervisor],
) -> None:
    sup = kind(name="top")
    for _ in range(2):
        with pytest.raises(SupervisorNotRunning, match=r"'top' is not running: .*async with"):
            await sup.start_child(fine)
        with pytest.raises(SupervisorNotRunning):
            await sup.terminate_child("a")
        with pytest.raises(SupervisorNotRunning):
            sup.which_children()
        with pytest.raises(SupervisorNotRunning):
            sup.statistics()
        with pytest.raises(SupervisorNotRunning):
            sup.ref("a")
        async with sup:
            pass


async def test_one_supervisor_is_not_used_twice_at_once() -> None:
    sup = Supervisor(name="top")
    async with sup:
        with pytest.raises(RuntimeError, match="'top' is already running"):
            async with sup:
                pytest.fail("it was")
        assert sup.which_children() == []
        with pytest.raises(StartFailed) as caught:
            async with Supervisor(sup):
                pytest.fail("it was, as a child")
        assert "already running" in str(caught.value.__cause__)


async def test_orders_for_nobody_name_who_is_missing() -> None:
    async with Supervisor(child(fine, id="a"), name="top") as sup:
        for order in (sup.terminate_child, sup.restart_child, sup.delete_child):
            with pytest.raises(UnknownChild, match="supervisor 'top' has no child 'b'"):
                await order("b")
        with pytest.raises(UnknownChild, match="'b'"):
            sup.ref("b")


async def test_a_running_child_is_neither_restarted_nor_deleted_nor_doubled() -> None:
    async with Supervisor(child(fine, id="a"), name="top") as sup:
        for order in (sup.restart_child, sup.delete_child):
            with pytest.raises(ChildRunning, match=r"'a' of supervisor 'top' is running: .*first"):
                await order("a")
        with pytest.raises(DuplicateChild):
            await sup.start_child(child(fine, id="a"))
        await sup.terminate_child("a")
        # A stopped child keeps its id, until it is deleted.
        with pytest.raises(DuplicateChild):
            await sup.start_child(child(fine, id="a"))
        await sup.delete_child("a")
        await sup.start_child(child(fine, id="a"))


async def test_a_crash_that_waits_to_be_dealt_with_is_no_stop() -> None:
    troupe = RecordingChildren()
    async with Supervisor(child(troupe.play, "a", id="a")) as sup:
        first = sup.ref("a")
        first.kill()
        with pytest.raises(ChildRunning):
            await sup.restart_child("a")
        await wait_all_tasks_blocked()
        assert sup.statistics().restarts_in_window == 1


async def test_a_full_pool_says_how_full() -> None:
    async with DynamicSupervisor(max_children=2, name="pool") as pool:
        refs: list[Ref[RecordingActor]] = [
            await pool.start_child(child(RecordingActor, RecordingChildren(), "a"))
            for _ in range(2)
        ]
        with pytest.raises(MaxChildren, match="'pool' already has 2 children"):
            await pool.start_child(fine)
        await pool.terminate_child(refs[0])
        await pool.start_child(fine)
        with pytest.raises(UnknownChild):
            await pool.terminate_child(refs[0])


async def test_a_reason_may_be_given_by_its_class_and_has_to_be_one(
    autojump_clock: object,
) -> None:
    assert Stop(Shutdown).reason == Shutdown()
    with pytest.raises(TypeError, match=r"^'enough' is not an exit reason"):
        Stop("enough")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    async with Supervisor(child(fine, id="a", restart="temporary")) as sup:
        ref = sup.ref("a")
        with pytest.raises(TypeError, match=r"^7 is not an exit reason"):
            ref.stop(7)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        ref.stop(Normal)
        assert await ref.wait() == Normal()
