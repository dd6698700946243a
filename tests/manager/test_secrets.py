"""What is secret in a run's environment is in no record, whichever run of the session says it."""

import pytest
import trio
from trio.testing import MockClock

from sessionmgr.errors import VariableRefused
from sessionmgr.testing.scripted import Say
from tests.manager.house import House, open_house, play

SECRET = "hunter2-and-more"


async def bodies(house: House, session_id: str) -> bytes:
    page = await house.store.events(session_id)
    return b"".join(row.body for row in page.rows)


async def test_what_a_run_was_given_is_hidden_in_what_follows_it(
    autojump_clock: MockClock,
) -> None:
    async with open_house() as house:
        session = await house.manager.open_session("actor")
        run = await session.submit(play(Say(text=SECRET)), env={"MY_API_KEY": SECRET})
        await run.result()
        await trio.sleep(60)  # the session sleeps, and knows of no run any more
        follow_up = await run.append(play(Say(text=SECRET)))
        await follow_up.run.result()
        assert SECRET.encode() not in await bodies(house, session.id)


async def test_variables_among_the_options_are_hidden_and_refused_as_others_are() -> None:
    async with open_house() as house:
        session = await house.manager.open_session("shell", permission_mode="full_auto")
        run = await session.submit(
            "printenv MY_API_KEY MY_OTHER_KEY",
            env={"MY_API_KEY": SECRET},
            options={"env": {"MY_API_KEY": "not this", "MY_OTHER_KEY": SECRET[::-1]}},
        )
        result = await run.result()
        assert result.text == "[redacted]\n[redacted]\n"
        with pytest.raises(VariableRefused, match="CLAUDECODE"):
            await session.submit("env", options={"env": {"CLAUDECODE": "1"}})
