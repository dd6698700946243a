"""Async functions as children: when they are up, and the value that they report."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable
from typing import cast

import pytest
import trio

from sessionmgr.otp import Actor, Crashed, Normal, StartFailed, Supervisor, child


async def serve(port: int, *, greeting: str = "", task_status: trio.TaskStatus[object]) -> None:
    await trio.sleep(2)
    task_status.started((port, greeting))
    await trio.sleep_forever()


async def test_a_function_is_up_when_it_says_so(autojump_clock: object) -> None:
    async with Supervisor(child(serve, 80, id="s")) as sup:
        assert trio.current_time() == 2.0
        assert sup.ref("s").started_value == (80, "")


async def test_partial_adds_keywords(autojump_clock: object) -> None:
    polite = functools.partial(serve, greeting="hello")
    async with Supervisor(child(polite, 80, id="s")) as sup:
        assert sup.ref("s").started_value == (80, "hello")
        assert trio.current_time() == 2.0


async def test_without_a_status_it_is_up_at_once(autojump_clock: object) -> None:
    async def slow() -> None:
        await trio.sleep(1)

    async with Supervisor(child(slow, id="slow", restart="temporary")) as sup:
        ref = sup.ref("slow")
        assert trio.current_time() == 0.0
        assert ref.started_value is None
        assert await ref.wait() == Normal()


async def test_a_function_that_ends_without_a_word_has_not_started(autojump_clock: object) -> None:
    async def silent(task_status: trio.TaskStatus[None]) -> None:  # noqa: ASYNC128
        await trio.sleep(1)

    async with Supervisor() as sup:
        with pytest.raises(StartFailed) as failed:
            await sup.start_child(silent)
        cause = failed.value.__cause__
        assert isinstance(cause, RuntimeError)
        assert str(cause) == "the function ended without calling task_status.started()"
        assert sup.which_children() == []


async def test_a_function_that_crashes_before_its_word_has_not_started(
    autojump_clock: object,
) -> None:
    async def broken(task_status: trio.TaskStatus[None]) -> None:
        raise LookupError("no port")

    with pytest.raises(StartFailed) as failed:
        async with Supervisor(broken):
            raise AssertionError
    assert isinstance(failed.value.__cause__, LookupError)


async def test_to_say_started_twice_is_wrong(autojump_clock: object) -> None:
    async def eager(task_status: trio.TaskStatus[int]) -> None:
        task_status.started(1)
        task_status.started(2)

    async with Supervisor() as sup:
        ref = await sup.start_child(child(eager, restart="temporary"))
        reason = await ref.wait()
        assert isinstance(reason, Crashed)
        assert str(reason.error) == "task_status.started() was called twice"
        assert ref.started_value == 1


async def test_an_object_that_can_be_awaited_when_called_is_a_function(
    autojump_clock: object,
) -> None:
    class Service:
        async def __call__(self, task_status: trio.TaskStatus[str]) -> None:
            task_status.started("up")
            await trio.sleep_forever()

    async with Supervisor(child(Service(), id="service")) as sup:
        assert sup.ref("service").started_value == "up"


@pytest.mark.parametrize("target", [print, 3, Actor(), "name"], ids=repr)
def test_what_cannot_run_is_no_child(target: object) -> None:
    with pytest.raises(
        TypeError, match="a child must be a class of actors, an async function or a"
    ):
        child(cast("Callable[[], Awaitable[object]]", target))
