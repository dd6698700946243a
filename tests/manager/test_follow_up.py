"""A message to a run is accepted by its turn or gets a turn of its own: exactly one of them."""

from collections.abc import Sequence
from typing import ClassVar

import pytest
import trio
from trio.testing import MockClock

from sessionmgr.adapter import ApprovalRequest, Decision, Deny, RunContext
from sessionmgr.manager import (
    Clocks,
    FollowUp,
    ManagerClosing,
    RunHandle,
    SessionHandle,
    SessionIsClosed,
)
from sessionmgr.model import NATIVE, Capabilities, EndReason, MessageSent, RunStatus
from sessionmgr.store import Append, AppendResult, MemoryStore
from sessionmgr.testing.scripted_provider import (
    Ask,
    Crash,
    Deaf,
    Fail,
    Finish,
    Hang,
    Hear,
    ProviderLogEntry,
    Say,
    ScriptedProvider,
    Step,
    TurnEnd,
    Wait,
    scripted,
)
from tests.manager.harness import ManagerHarness, events, open_harness, run_scripted

DUMB = Capabilities(streaming=NATIVE)


def times_seen(house: ManagerHarness, text: str) -> int:
    return (house.saw("append") + house.saw("prompt")).count(text)


async def states(run: RunHandle, content: str) -> list[str]:
    return [
        event.state
        for event in await events(run)
        if isinstance(event, MessageSent) and event.content == content
    ]


async def test_a_message_is_taken_into_the_running_turn(autojump_clock: MockClock) -> None:
    async with open_harness() as house:
        run = await house.start(Hear(), Finish())
        await trio.sleep(1)
        follow_up = await run.append("and this")
        assert follow_up == FollowUp("accepted", run)
        assert (await run.result()).text == "and this"
        assert await states(run, "and this") == ["queued", "sent"]
        assert times_seen(house, "and this") == 1


async def test_where_the_provider_cannot_steer_a_message_is_the_next_run(
    autojump_clock: MockClock,
) -> None:
    async with open_harness(actor=scripted("actor", capabilities=DUMB)) as house:
        run = await house.start(Wait(seconds=5), Say(text="first"))
        await trio.sleep(1)
        follow_up = await run.append("second")
        assert follow_up.state == "queued"
        assert follow_up.run.id != run.id
        assert follow_up.run.session_id == run.session_id
        assert follow_up.run.status is RunStatus.PENDING
        assert (await run.result()).text == "first"
        result = await follow_up.run.result()
        assert (result.status, result.text) == (RunStatus.COMPLETED, "second")
        assert times_seen(house, "second") == 1


async def test_the_record_tells_a_message_to_a_run_from_the_prompt_of_one(
    autojump_clock: MockClock,
) -> None:
    async with open_harness(actor=scripted("actor", capabilities=DUMB)) as house:
        session = await house.manager.open_session("actor")
        run = await session.submit("first")
        follow_up = await run.append("second")
        said = [*await events(run), *await events(follow_up.run)]
        sent = [each for each in said if isinstance(each, MessageSent) and each.state == "sent"]
        found = [(each.content, each.follow_up) for each in sent]
        assert found == [("first", False), ("second", True)]


async def test_a_turn_that_refuses_a_message_gets_it_as_the_next_run(
    autojump_clock: MockClock,
) -> None:
    async with open_harness() as house:
        session = await house.manager.open_session("actor")
        run = await session.submit(run_scripted(Wait(seconds=5), append="refuse"))
        await trio.sleep(1)
        follow_up = await run.append("later")
        assert follow_up.state == "queued"
        assert (await follow_up.run.result()).text == "later"
        assert await states(run, "later") == ["queued", "dropped"]
        assert times_seen(house, "later") == 1


async def test_a_message_with_unknown_delivery_is_not_sent_again(
    autojump_clock: MockClock,
) -> None:
    async with open_harness() as house:
        session = await house.manager.open_session("actor")
        run = await session.submit(run_scripted(Wait(seconds=30), append="lost"))
        await trio.sleep(1)
        with trio.fail_after(20):
            await run.append("once")
        await run.result()
        await trio.sleep(60)
        assert times_seen(house, "once") == 1
        assert await states(run, "once") == ["queued", "unknown"]


@pytest.mark.parametrize(
    ("steps", "status"),
    [
        ((Wait(seconds=5), Fail()), RunStatus.FAILED),
        ((Wait(seconds=5), Crash()), RunStatus.FAILED),
        ((Wait(seconds=5), Finish()), RunStatus.COMPLETED),
    ],
    ids=["fails", "crashes", "finishes"],
)
async def test_a_queued_message_runs_however_the_run_before_it_ends(
    autojump_clock: MockClock, steps: tuple[Step, ...], status: RunStatus
) -> None:
    async with open_harness(actor=scripted("actor", capabilities=DUMB)) as house:
        run = await house.start(*steps)
        follow_up = await run.append("next")
        assert (await run.result()).status is status
        assert (await follow_up.run.result()).text == "next"
        assert times_seen(house, "next") == 1


async def test_a_queued_message_runs_after_the_run_before_it_was_cancelled(
    autojump_clock: MockClock,
) -> None:
    async with open_harness(actor=scripted("actor", capabilities=DUMB)) as house:
        run = await house.start(Hang())
        follow_up = await run.append("next")
        run.cancel()
        assert (await run.result()).status is RunStatus.CANCELLED
        assert (await follow_up.run.result()).text == "next"


async def test_a_queued_message_outlives_the_block_of_its_run(autojump_clock: MockClock) -> None:
    async with open_harness(actor=scripted("actor", capabilities=DUMB)) as house:
        session = await house.manager.open_session("actor")
        async with session.start(run_scripted(Hang())) as run:
            follow_up = await run.append("next")
        assert run.status is RunStatus.CANCELLED
        assert (await follow_up.run.result()).text == "next"


async def test_a_message_to_a_run_that_has_ended_is_a_run_of_its_own(
    autojump_clock: MockClock,
) -> None:
    async with open_harness() as house:
        run = await house.start(Say(text="done"))
        await run.result()
        at_once = await run.append("at once")
        assert (await at_once.run.result()).text == "at once"
        await trio.sleep(1000)  # the session sleeps
        late = await run.append("late")
        assert (await late.run.result()).text == "late"


async def test_messages_to_a_queued_run_come_after_it_in_their_order(
    autojump_clock: MockClock,
) -> None:
    async with open_harness() as house:
        session = await house.manager.open_session("actor")
        first = await session.submit(run_scripted(Wait(seconds=3)))
        second = await session.submit("second")
        third = await second.append("third")
        fourth = await second.append("fourth")
        for run in (first, second, third.run, fourth.run):
            assert (await run.result()).status is RunStatus.COMPLETED
        assert house.saw("prompt")[1:] == ["second", "third", "fourth"]


async def test_a_follow_up_keeps_what_its_run_was_allowed_and_where_it_was(
    autojump_clock: MockClock,
) -> None:
    async with open_harness(actor=scripted("actor", capabilities=DUMB)) as house:
        session = await house.manager.open_session("actor", permission_mode="plan")
        run = await session.submit(
            run_scripted(Wait(seconds=1)), permission_mode="accept_edits", metadata={"ticket": 1}
        )
        follow_up = await run.append("next")
        result = await follow_up.run.result()
        assert result.permission is not None
        assert result.permission.asked == "accept_edits"
        assert result.metadata == {"ticket": 1}
        assert result.provider_session_id == (await run.result()).provider_session_id
        assert house.actor.log[-2].provider_session_id == f"of-{session.id}"


async def test_a_queued_follow_up_can_be_cancelled_and_is_never_seen(
    autojump_clock: MockClock,
) -> None:
    async with open_harness(actor=scripted("actor", capabilities=DUMB)) as house:
        run = await house.start(Wait(seconds=5))
        follow_up = await run.append("never mind")
        assert follow_up.run.cancel("changed my mind")
        result = await follow_up.run.result()
        assert (result.status, result.reason) == (RunStatus.CANCELLED, EndReason.USER)
        assert run.status is RunStatus.RUNNING
        await run.result()
        assert times_seen(house, "never mind") == 0
        assert await states(follow_up.run, "never mind") == ["queued", "dropped"]


class LateStore(MemoryStore):
    """A store that takes a while for each batch."""

    def __init__(self, delay: float) -> None:
        super().__init__()
        self.delay = delay

    async def append_all(self, appends: Sequence[Append]) -> Sequence[AppendResult | Exception]:
        await trio.sleep(self.delay)
        return await super().append_all(appends)


@pytest.mark.parametrize("delay", [0.0, 0.03])
@pytest.mark.parametrize("end", ["finish", "fail", "crash", "cancel", "turn"])
@pytest.mark.parametrize("capable", [True, False], ids=["steers", "queues"])
async def test_a_message_at_the_very_end_is_seen_once(
    autojump_clock: MockClock, end: str, delay: float, capable: bool
) -> None:
    """Messages every hundredth of a second, before, in and after the moment of the end."""
    ends: dict[str, tuple[Step, ...]] = {
        "finish": (Wait(seconds=1), Finish()),
        "fail": (Wait(seconds=1), Fail()),
        "crash": (Wait(seconds=1), Crash()),
        "cancel": (Hang(),),
        "turn": (Wait(seconds=1), TurnEnd(), Finish(), Wait(seconds=0.05)),
    }
    actor = scripted("actor") if capable else scripted("actor", capabilities=DUMB)
    async with open_harness(store=LateStore(delay), actor=actor) as house:
        session = await house.manager.open_session("actor")
        run = await session.submit(run_scripted(*ends[end]))
        start = trio.current_time()
        sent: dict[str, FollowUp] = {}

        async def send(number: int) -> None:
            await trio.sleep_until(start + 0.9 + number / 100)
            sent[f"message {number}"] = await run.append(f"message {number}")

        async with trio.open_nursery() as nursery:
            for number in range(25):
                nursery.start_soon(send, number)
            if end == "cancel":
                await trio.sleep_until(start + 1)
                run.cancel()
        await run.result()
        for follow_up in sent.values():
            await follow_up.run.result()
        assert len(sent) == 25
        for text, follow_up in sent.items():
            assert times_seen(house, text) == 1, (text, follow_up)
            assert house.saw("append").count(text) == follow_up.accepted


async def test_a_follow_up_while_the_manager_goes_down_is_cancelled_or_refused(
    autojump_clock: MockClock,
) -> None:
    runs: list[RunHandle] = []
    refused = 0

    async def append_often(run: RunHandle) -> None:
        nonlocal refused
        while not refused:
            await trio.sleep(0.25)
            try:
                runs.append((await run.append("more")).run)
            except ManagerClosing:
                refused += 1

    async def body(task_status: trio.TaskStatus[RunHandle]) -> None:
        async with open_harness(actor=scripted("actor", capabilities=DUMB)) as house:
            task_status.started(await house.start(Deaf(seconds=4)))
            await trio.sleep(2)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(append_often, await nursery.start(body))
    assert refused
    assert runs
    assert {each.status for each in runs} == {RunStatus.CANCELLED}


async def test_an_open_question_does_not_hold_up_a_message(autojump_clock: MockClock) -> None:
    async def approve(_: ApprovalRequest) -> Decision:
        await trio.sleep(1000)
        return Deny()

    async with open_harness() as house:
        session = await house.manager.open_session("actor")
        run = await session.submit(
            run_scripted(Ask(tool="rm"), Hear()), clocks=Clocks(approval=50), approve=approve
        )
        await trio.sleep(1)
        with trio.fail_after(1):
            assert (await run.append("hurry")).accepted
        assert (await run.result()).text == "hurry"


async def test_the_runs_of_a_session_come_one_after_the_other(autojump_clock: MockClock) -> None:
    async with open_harness() as house:
        session = await house.manager.open_session("actor")
        sessions: list[SessionHandle] = [session] * 5
        runs = [await each.submit(run_scripted(Wait(seconds=2))) for each in sessions]
        for number, run in enumerate(runs, 1):
            await run.result()
            assert trio.current_time() == pytest.approx(2 * number, abs=0.1)


class SlowToHear(ScriptedProvider):
    """A provider that takes longer for a message than the run lasts."""

    name: ClassVar[str] = "actor"
    log: ClassVar[list[ProviderLogEntry]] = []

    async def append(self, run: RunContext, content: str, message_id: str) -> bool:
        await trio.sleep(1.5)
        return False


async def test_a_message_under_way_is_answered_although_its_session_is_closed_meanwhile(
    autojump_clock: MockClock,
) -> None:
    async with open_harness(actor=SlowToHear) as house:
        session = await house.manager.open_session("actor")
        run = await session.submit(run_scripted(Wait(seconds=1)))
        refused: list[SessionIsClosed] = []

        async def append() -> None:
            try:
                await run.append("too late")
            except SessionIsClosed as error:
                refused.append(error)

        with trio.fail_after(10):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(append)
                await trio.sleep(0.5)
                await session.close()
        assert len(refused) == 1
        assert (await run.result()).status is RunStatus.COMPLETED
