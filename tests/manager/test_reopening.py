"""A follow-up run reopens a closed session."""

import pytest
import trio
from trio.testing import MockClock

from sessionmgr.manager import SessionIsClosed
from sessionmgr.model import AnyEvent
from sessionmgr.testing.scripted_provider import Flood, Hang, Say
from tests.manager.harness import collect, open_harness, run_scripted, stored


@pytest.mark.parametrize("pause", [0, 20], ids=["awake", "asleep"])
async def test_a_closed_session_that_is_reopened_takes_another_run(
    autojump_clock: MockClock, pause: float
) -> None:
    async with open_harness() as house:
        session = await house.manager.open_session("actor")
        first = await (await session.submit("a")).result()
        await session.close()
        await trio.sleep(pause)
        again = await house.manager.session(session.id, reopen=True)
        second = await (await again.submit("b")).result()
        assert (first.text, second.text) == ("a", "b")
        assert second.provider_session_id == first.provider_session_id
        assert (await house.store.session(session.id)).state == "open"
        names = await stored(house, session.id)
        assert names.index("session_reopened") == names.index("session_closed") + 1


async def test_only_the_handle_that_says_so_reopens_a_closed_session(
    autojump_clock: MockClock,
) -> None:
    async with open_harness() as house:
        session = await house.manager.open_session("actor")
        await (await session.submit("a")).result()
        await session.close()
        with pytest.raises(SessionIsClosed):
            await session.submit("b")
        await (await house.manager.session(session.id, reopen=True)).submit("c")
        assert (await stored(house, session.id)).count("session_reopened") == 1


async def test_a_reopened_session_may_be_closed_and_reopened_once_more(
    autojump_clock: MockClock,
) -> None:
    async with open_harness() as house:
        session = await house.manager.open_session("actor")
        for prompt in ("a", "b", "c"):
            await (await session.submit(prompt)).result()
            await session.close()
            session = await house.manager.session(session.id, reopen=True)
        names = await stored(house, session.id)
        assert (names.count("session_closed"), names.count("session_reopened")) == (3, 2)
        assert (await house.store.session(session.id)).state == "closed"


@pytest.mark.parametrize("pause", [0, 20], ids=["awake", "asleep"])
@pytest.mark.parametrize("after", [0, 3, 500])
async def test_a_reader_sees_what_came_before_and_after_a_session_was_reopened(
    autojump_clock: MockClock, after: int, pause: float
) -> None:
    async with open_harness() as house:
        session = await house.manager.open_session("actor")
        await (await session.submit(run_scripted(Flood(events=600), Say(text="x")))).result()
        await session.close()
        again = await house.manager.session(session.id, reopen=True)
        await (await again.submit("b")).result()
        await again.close()
        await trio.sleep(pause)
        seen: list[AnyEvent] = []
        await collect(house.manager.subscribe(session.id, after=after), seen)
        end = (await house.store.session(session.id)).last_seq
        assert [event.seq for event in seen] == list(range(after + 1, end + 1))


async def test_a_session_that_is_reopened_while_it_closes_stays_open(
    autojump_clock: MockClock,
) -> None:
    async with open_harness() as house:
        session = await house.manager.open_session("actor")
        first = await session.submit(run_scripted(Hang()))
        await trio.sleep(1)
        await session.close()
        again = await house.manager.session(session.id, reopen=True)
        second = await again.submit("b")
        first.cancel()
        assert (await second.result()).text == "b"
        await trio.sleep(20)
        assert (await house.store.session(session.id)).state == "open"
