"""Messages to an adapter survive its crash, and no handler delays the end of a run."""

from typing import ClassVar, Literal

import pytest
import trio
from trio.testing import MockClock

from sessionmgr.adapter import Health, ProviderAdapter, RunContext
from sessionmgr.manager import Clocks
from sessionmgr.manager.provider_branch import SOON
from sessionmgr.model import FailureKind, MessageSent, RunStarted, RunStatus
from sessionmgr.otp import Cast, Continue, Ref, child
from tests.manager.harness import open_harness


class NapMessage(Cast, frozen=True):
    """Handle nothing else for some time, then crash."""

    seconds: float


class RestMessage(Cast, frozen=True):
    """Handle nothing else for some time."""

    seconds: float


class BusyAdapter(ProviderAdapter):
    """An adapter with messages whose handlers wait."""

    name = "busy"
    refs: ClassVar[list[Ref[ProviderAdapter]]] = []
    prompts: ClassVar[list[str]] = []

    async def init(self) -> Continue | None:
        self.refs.append(self.ref)  # type: ignore[arg-type]
        return await super().init()

    async def run(self, run: RunContext) -> None:
        self.prompts.append(run.prompt)
        await run.emit(RunStarted(provider_session_id="p"))
        if run.prompt == "wait":
            await trio.sleep_forever()
        if run.prompt == "work":
            await trio.sleep(1)
        if run.prompt.startswith("connect"):
            await trio.sleep(float(run.prompt.removeprefix("connect") or 0))
            for _ in range(5):
                await run.connections.start_child(child(_break_down))
            await trio.sleep_forever()
        await run.finish()

    async def append(self, run: RunContext, content: str, message_id: str) -> bool:
        await trio.sleep_forever()

    async def handle_cast(self, message: Cast, /) -> Continue | None:
        if isinstance(message, RestMessage):
            await trio.sleep(message.seconds)
            return None
        if isinstance(message, NapMessage):
            await trio.sleep(message.seconds)
            raise LookupError("woken")
        return await super().handle_cast(message)


class NarrowAdapter(BusyAdapter):
    """An adapter with space for one message."""

    name = "narrow"
    mailbox = 1
    released: ClassVar[list[str]] = []

    async def interrupt(self, run: RunContext) -> None:
        await trio.sleep_forever()

    def release(self, provider_session_id: str) -> None:
        self.released.append(provider_session_id)


class TiredAdapter(BusyAdapter):
    """An adapter that takes long to restart after a crash."""

    name = "tired"

    async def init(self) -> Continue | None:
        if self.refs:
            await trio.sleep(1000)
        return await super().init()


class ForgetfulAdapter(BusyAdapter):
    """An adapter that reports the fate of a message before it has accepted the message."""

    name = "forgetful"
    fate: ClassVar[Literal["sent", "dropped"]] = "dropped"

    async def append(self, run: RunContext, content: str, message_id: str) -> bool:
        await run.emit(
            MessageSent(message_id=message_id, content=content, follow_up=True, state=self.fate)
        )
        return True


async def _break_down() -> None:
    raise LookupError("no connection")


@pytest.fixture(autouse=True)
def _fresh() -> None:
    BusyAdapter.refs.clear()
    BusyAdapter.prompts.clear()
    NarrowAdapter.released.clear()


async def test_starts_that_an_adapter_did_not_handle_before_its_crash_are_sent_to_the_next(
    autojump_clock: MockClock,
) -> None:
    async with open_harness(others={"busy": BusyAdapter}) as house:
        session = await house.manager.open_session("busy")
        await (await session.submit("first")).result()
        BusyAdapter.refs[-1].cast(NapMessage(1))
        sessions = [await house.manager.open_session("busy") for _ in range(3)]
        runs = [await each.submit(f"{n}") for n, each in enumerate(sessions)]
        await trio.sleep(0.5)
        assert BusyAdapter.prompts == ["first"]
        for run in runs:
            assert (await run.result()).status is RunStatus.COMPLETED
        assert sorted(BusyAdapter.prompts) == ["0", "1", "2", "first"]
        assert len(BusyAdapter.refs) == 2


async def test_a_run_whose_start_waits_in_a_mailbox_can_be_cancelled(
    autojump_clock: MockClock,
) -> None:
    async with open_harness(others={"busy": BusyAdapter}) as house:
        session = await house.manager.open_session("busy")
        await (await session.submit("first")).result()
        BusyAdapter.refs[-1].cast(NapMessage(1000))
        run = await session.submit("second")
        await trio.sleep(1)
        run.cancel()
        assert (await run.result()).status is RunStatus.CANCELLED
        assert trio.current_time() == 1  # at once
        assert BusyAdapter.prompts == ["first"]


async def test_a_start_that_waits_for_too_long_in_a_mailbox_has_its_run_time_out(
    autojump_clock: MockClock,
) -> None:
    async with open_harness(others={"busy": BusyAdapter}) as house:
        session = await house.manager.open_session("busy", clocks=Clocks(start=30))
        await (await session.submit("first")).result()
        BusyAdapter.refs[-1].cast(NapMessage(1000))
        result = await (await session.submit("second")).result()
        assert result.status is RunStatus.TIMED_OUT
        assert trio.current_time() == pytest.approx(30)


async def test_a_start_that_comes_while_the_connections_fail_waits_for_their_restart(
    autojump_clock: MockClock,
) -> None:
    async with open_harness(others={"busy": BusyAdapter}) as house:
        bad = await house.manager.open_session("busy")
        good = await house.manager.open_session("busy")
        first = await bad.submit("connect")
        second = await good.submit("a")
        failure = (await first.result()).failure
        assert failure is not None
        assert failure.kind is FailureKind.ADAPTER_CRASHED
        assert (await second.result()).status is RunStatus.COMPLETED
        assert (await (await good.submit("b")).result()).status is RunStatus.COMPLETED
        assert len(BusyAdapter.refs) == 1  # the adapter itself continues


async def test_a_start_that_waits_in_a_mailbox_while_the_connections_fail_is_made_once(
    autojump_clock: MockClock,
) -> None:
    async with open_harness(others={"busy": BusyAdapter}) as house:
        bad = await house.manager.open_session("busy")
        good = await house.manager.open_session("busy")
        await bad.submit("connect 1")
        await trio.sleep(0.5)
        BusyAdapter.refs[-1].cast(
            RestMessage(0.5 + SOON / 2)
        )  # until the branch waits for the restart
        run = await good.submit("work")
        assert (await run.result()).status is RunStatus.COMPLETED
        assert BusyAdapter.prompts == ["connect 1", "work"]
        assert len(BusyAdapter.refs) == 1


async def test_a_message_that_the_provider_does_not_answer_ends_with_the_manager_s_patience(
    autojump_clock: MockClock,
) -> None:
    async with open_harness(others={"busy": BusyAdapter}) as house:
        session = await house.manager.open_session("busy", clocks=Clocks(close=3))
        run = await session.submit("wait")
        await trio.sleep(1)
        follow_up = await run.append("more")
        assert follow_up.state == "unknown"
        assert trio.current_time() == pytest.approx(4)
        run.cancel()


@pytest.mark.parametrize("fate", ["sent", "dropped"])
async def test_the_fate_that_the_adapter_reports_first_is_recorded_once(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch, fate: str
) -> None:
    monkeypatch.setattr(ForgetfulAdapter, "fate", fate)
    async with open_harness(others={"forgetful": ForgetfulAdapter}) as house:
        session = await house.manager.open_session("forgetful")
        run = await session.submit("wait")
        await trio.sleep(1)
        assert (await run.append("more")).accepted
        run.cancel()
        await run.result()
        events = [each async for each in house.manager.events(run.id)]
        said = [each.state for each in events if isinstance(each, MessageSent) and each.follow_up]
        assert said == ["queued", fate]


async def test_an_adapter_that_is_busy_does_not_say_how_it_is(autojump_clock: MockClock) -> None:
    async with open_harness(others={"busy": BusyAdapter}, clocks=Clocks(start=5)) as house:
        assert await house.manager.health(["busy"]) == {"busy": Health()}
        BusyAdapter.refs[-1].cast(NapMessage(1000))
        health = (await house.manager.health(["busy"]))["busy"]
        assert health == Health(state="fail", detail="it did not report its health within 5 s")


async def test_an_adapter_whose_mailbox_is_full_takes_no_run_and_the_run_says_why(
    autojump_clock: MockClock,
) -> None:
    async with open_harness(others={"narrow": NarrowAdapter}) as house:
        sessions = [await house.manager.open_session("narrow") for _ in range(3)]
        await (await sessions[0].submit("first")).result()
        BusyAdapter.refs[-1].cast(NapMessage(1))
        await trio.sleep(0.1)
        taken, refused = [await each.submit("next") for each in sessions[1:]]
        failure = (await refused.result()).failure
        assert failure is not None
        assert failure.kind is FailureKind.ADAPTER_CRASHED
        assert "does not handle its messages" in failure.message
        assert (await taken.result()).status is RunStatus.COMPLETED


async def test_a_run_is_cut_at_once_if_its_interrupt_finds_no_space(
    autojump_clock: MockClock,
) -> None:
    async with open_harness(others={"narrow": NarrowAdapter}) as house:
        session, other = [await house.manager.open_session("narrow") for _ in range(2)]
        run = await session.submit("wait")
        await trio.sleep(1)
        BusyAdapter.refs[-1].cast(NapMessage(1000))
        await trio.sleep(1)
        waiting = await other.submit("next")
        run.cancel()
        assert (await run.result()).status is RunStatus.CANCELLED
        assert trio.current_time() == 2
        waiting.cancel()


async def test_a_release_that_finds_no_space_does_no_harm(autojump_clock: MockClock) -> None:
    async with open_harness(others={"narrow": NarrowAdapter}) as house:
        sessions = [await house.manager.open_session("narrow") for _ in range(3)]
        for session in sessions[:2]:
            await (await session.submit("first")).result()
        sessions[0].release()
        await trio.sleep(1)
        assert NarrowAdapter.released == ["p"]
        BusyAdapter.refs[-1].cast(NapMessage(5))
        await trio.sleep(1)
        waiting = await sessions[2].submit("next")
        sessions[1].release()
        assert (await waiting.result()).status is RunStatus.COMPLETED
        assert NarrowAdapter.released == ["p"]


async def test_a_run_does_not_wait_for_ever_for_an_adapter_that_does_not_come_back(
    autojump_clock: MockClock,
) -> None:
    async with open_harness(others={"tired": TiredAdapter}) as house:
        session = await house.manager.open_session("tired", clocks=Clocks(start=30))
        await (await session.submit("first")).result()
        BusyAdapter.refs[-1].kill()
        await trio.sleep(1)
        failure = (await (await session.submit("next")).result()).failure
        assert failure is not None
        assert failure.message == "tired was not restarted in time"
        assert trio.current_time() == pytest.approx(31, abs=0.1)
        health = (await house.manager.health(["tired"]))["tired"]
        assert health.state == "fail"
        assert "it stopped during the check" in health.detail
