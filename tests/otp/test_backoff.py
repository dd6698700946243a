"""Back-off: how long restarts wait, and which other restarts wait with them."""

from __future__ import annotations

from itertools import pairwise

import pytest
import trio
from hypothesis import given, strategies as st
from trio.testing import MockClock, wait_all_tasks_blocked

from sessionmgr.otp import (
    Backoff,
    ChildRunning,
    DynamicSupervisor,
    RestartIntensityExceeded,
    Supervisor,
    child,
)
from tests.otp.recording_children import MemberCrashError, RecordingChildren

PLENTY = 1000


@pytest.fixture
def troupe() -> RecordingChildren:
    return RecordingChildren()


class Clockwork:
    """A child that crashes after a time, and keeps when it began."""

    def __init__(self, *ages: float) -> None:
        self.ages = list(ages)
        self.begun: list[float] = []

    async def play(self, *, task_status: trio.TaskStatus[None]) -> None:
        self.begun.append(trio.current_time())
        task_status.started()
        if not self.ages:
            await trio.sleep_forever()
        await trio.sleep(self.ages.pop(0))
        raise MemberCrashError

    @property
    def waits(self) -> list[float]:
        return [later - earlier for earlier, later in pairwise(self.begun)]


@pytest.mark.parametrize("kind", [Supervisor, DynamicSupervisor])
async def test_the_wait_doubles_up_to_its_maximum(
    autojump_clock: MockClock, kind: type[Supervisor | DynamicSupervisor]
) -> None:
    clockwork = Clockwork(*[0.0] * 6)
    async with kind(max_restarts=PLENTY) as sup:
        await sup.start_child(child(clockwork.play, backoff=(0.5, 5.0, 0.0)))
        await trio.sleep(100)
    assert clockwork.waits == [0.5, 1.0, 2.0, 4.0, 5.0, 5.0]


@pytest.mark.parametrize("kind", [Supervisor, DynamicSupervisor])
async def test_a_child_that_stays_up_for_the_maximum_starts_again_from_the_minimum(
    autojump_clock: MockClock, kind: type[Supervisor | DynamicSupervisor]
) -> None:
    clockwork = Clockwork(0.0, 0.0, 3.0, 4.0, 0.0)
    async with kind(max_restarts=PLENTY) as sup:
        await sup.start_child(child(clockwork.play, backoff=(1.0, 4.0, 0.0)))
        await trio.sleep(100)
    assert clockwork.waits == [1.0, 2.0, 3.0 + 4.0, 4.0 + 1.0, 2.0]


@pytest.mark.parametrize("kind", [Supervisor, DynamicSupervisor])
async def test_a_slow_start_is_no_time_that_it_stayed_up(
    autojump_clock: MockClock, kind: type[Supervisor | DynamicSupervisor]
) -> None:
    begun: list[float] = []

    async def play(*, task_status: trio.TaskStatus[None]) -> None:
        begun.append(trio.current_time())
        await trio.sleep(10)
        task_status.started()
        if len(begun) < 5:
            raise MemberCrashError
        await trio.sleep_forever()

    async with kind(max_restarts=PLENTY) as sup:
        await sup.start_child(child(play, backoff=(1.0, 4.0, 0.0)))
        await trio.sleep(100)
    assert [b - a - 10 for a, b in pairwise(begun)] == [1.0, 2.0, 4.0, 4.0]


@given(
    strike=st.integers(0, 2000),
    draw=st.floats(0, 1, exclude_max=True),
    jitter=st.floats(0, 1),
    minimum=st.floats(0, 10),
    extra=st.floats(0, 1000),
)
def test_jitter_stays_within_its_share(
    strike: int, draw: float, jitter: float, minimum: float, extra: float
) -> None:
    plain = Backoff(minimum, minimum + extra).delay(strike, draw)
    delay = Backoff(minimum, minimum + extra, jitter).delay(strike, draw)
    assert minimum <= plain <= minimum + extra
    assert plain * (1 - jitter) - 1e-9 <= delay <= plain * (1 + jitter) + 1e-9


async def test_jitter_spreads_restarts(autojump_clock: MockClock) -> None:
    clockworks = [Clockwork(0.0) for _ in range(20)]
    async with Supervisor(
        *(child(clockwork.play, backoff=(1.0, 1.0, 0.5)) for clockwork in clockworks),
        max_restarts=PLENTY,
    ):
        await trio.sleep(10)
    waits = [wait for clockwork in clockworks for wait in clockwork.waits]
    assert all(0.5 <= wait <= 1.5 for wait in waits)
    assert len(set(waits)) == 20


async def test_a_restart_that_waits_is_charged_when_the_child_ends(
    autojump_clock: MockClock, troupe: RecordingChildren
) -> None:
    async with Supervisor(child(troupe.play, "a", id="a", backoff=(60.0, 60.0, 0.0))) as sup:
        await troupe.crash("a")
        how = sup.statistics()
        assert (how.restarts, how.restarts_in_window, how.active) == (0, 1, 0)
        await trio.sleep(61)
        how = sup.statistics()
        assert (how.restarts, how.restarts_in_window, how.active) == (1, 0, 1)


async def test_a_start_that_fails_again_waits_longer_and_is_charged(
    autojump_clock: MockClock, troupe: RecordingChildren
) -> None:
    troupe.failing = {"a": set(range(2, 100))}
    with pytest.raises(RestartIntensityExceeded):  # noqa: PT012
        async with Supervisor(
            child(troupe.play, "a", id="a", backoff=(1.0, 100.0, 0.0)),
            max_restarts=2,
            max_seconds=60.0,
        ):
            await troupe.crash("a")
            await trio.sleep_forever()
    assert troupe.born["a"] == 3
    assert trio.current_time() == 3.0


async def test_a_child_that_waits_can_be_dismissed(
    autojump_clock: MockClock, troupe: RecordingChildren
) -> None:
    async with Supervisor(child(troupe.play, "a", id="a", backoff=(9.0, 9.0, 0.0))) as sup:
        await troupe.crash("a")
        assert [row.state for row in sup.which_children()] == ["restarting"]
        with pytest.raises(ChildRunning, match="is restarting"):
            await sup.restart_child("a")
        await sup.terminate_child("a")
        await trio.sleep(100)
        assert troupe.born["a"] == 1
        await sup.restart_child("a")
        assert troupe.born["a"] == 2


async def test_the_group_waits_with_the_one_that_ended(
    autojump_clock: MockClock, troupe: RecordingChildren
) -> None:
    async with Supervisor(
        child(troupe.play, "a", id="a", backoff=(2.0, 2.0, 0.0)),
        child(troupe.play, "b", id="b"),
        strategy="one_for_all",
    ) as sup:
        await troupe.crash("a")
        assert [row.state for row in sup.which_children()] == ["restarting", "restarting"]
        await trio.sleep(2)
        await wait_all_tasks_blocked()
        assert troupe.log[4:] == ["start a", "start b"]


async def test_who_falls_with_an_earlier_one_comes_back_after_it(
    autojump_clock: MockClock, troupe: RecordingChildren
) -> None:
    async with Supervisor(
        child(troupe.play, "a", id="a", backoff=(4.0, 4.0, 0.0)),
        child(troupe.play, "b", id="b", backoff=(1.0, 1.0, 0.0)),
        strategy="rest_for_one",
    ):
        await troupe.crash("b")
        await troupe.crash("a")
        troupe.take_log()
        await trio.sleep(10)
        assert troupe.log == ["start a", "start b"]


async def test_siblings_of_a_dismissed_child_are_stopped_and_can_be_restarted(
    autojump_clock: MockClock, troupe: RecordingChildren
) -> None:
    troupe.failing = {"a": {2}}
    async with Supervisor(
        child(troupe.play, "a", id="a", backoff=(4.0, 4.0, 0.0)),
        child(troupe.play, "b", id="b"),
        strategy="one_for_all",
    ) as sup:
        await troupe.crash("b")
        await sup.terminate_child("a")
        assert [row.state for row in sup.which_children()] == ["stopped", "stopped"]
        assert (await sup.restart_child("b")).alive


async def test_a_stop_does_not_wait_for_a_restart_that_is_due_later(
    autojump_clock: MockClock, troupe: RecordingChildren
) -> None:
    async with Supervisor(child(troupe.play, "a", id="a", backoff=(60.0, 60.0, 0.0))):
        await troupe.crash("a")
    assert trio.current_time() == 0.0
    assert troupe.born["a"] == 1
