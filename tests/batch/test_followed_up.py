"""Jobs that were followed up by hand while nobody ran their batch."""

from trio.testing import MockClock

from sessionmgr.batch.recovery import recover
from sessionmgr.model import Kind, RunStatus
from sessionmgr.testing.scripted import Fail, Say
from tests.batch.hall import open_hall
from tests.manager.house import play


async def test_a_follow_up_is_not_taken_for_the_attempt_that_it_follows(
    autojump_clock: MockClock,
) -> None:
    async with open_hall() as hall:
        session_id = hall.manager.new_id(Kind.SESSION)
        session = await hall.manager.open_session("actor", session_id=session_id)
        attempt = await (await session.submit(play(Say(text="x"), Fail()))).result()
        follow_up = await hall.manager.submit_follow_up(attempt.id, "fix it")
        assert (await follow_up.result()).status is RunStatus.COMPLETED
        ended = await recover(hall.manager, "a", 1, session=session_id, others=())
        assert ended is not None
        assert ended.result.id == attempt.id
