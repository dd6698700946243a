"""Sessions of every agent: resumed here and in a new process, two at once, and follow-ups."""

from __future__ import annotations

from typing import Final

import pytest
import trio

from sessionmgr.manager import SessionHandle
from sessionmgr.model import RunStatus
from sessionmgr.testing.model_server import (
    IsolatedEnvironment,
    ModelCall,
    ModelRequest,
    ModelSay,
    ModelScript,
    ModelServer,
    prompt_with,
)
from sessionmgr_adapters.acp.bundled_agents import BUNDLED
from tests.real.acp.agents import InstalledAcpAgent
from tests.real.acp.harness import (
    AcpHarness,
    age_sessions,
    in_a_fresh_minute,
    open_house,
    processes_of,
)
from tests.real.acp.limits import LOST, outcome_of
from tests.real.harness import PlayedRun, see, until_event

FIRST: Final = "the first words were"
WAITING: Final = [agent for agent, quirks in BUNDLED.items() if quirks.session_files is not None]
"""Agents that would lose a session by loading it in the minute in which it was begun."""
KNOWN: Final = "it goes on, and knows what was said"


def last_request(house: AcpHarness, word: str) -> ModelRequest:
    """Return the last request of a turn with a word in its prompt."""
    turns = [each for each in house.server.log.asked if each.purpose == "turn"]
    return [each for each in turns if word in each.prompt][-1]


async def second_turn(house: AcpHarness, session: SessionHandle, word: str) -> PlayedRun:
    return await house.play([[ModelSay(text="Again.")]], session, text=f"once more {word}")


def how_it_went_on(house: AcpHarness, played: PlayedRun, word: str) -> str:
    """Return whether a session went on, in words."""
    result = played.result
    if result.failure is not None:
        return result.failure.kind.value
    assert (result.status, result.text) == (RunStatus.COMPLETED, "Again.")
    asked = last_request(house, f"once more {word}")
    assert FIRST in str(asked.items), asked.items
    # What was loaded is not reported again.
    assert [each.content for each in played.events if each.type == "message_received"] == ["Again."]
    return KNOWN


async def test_a_session_goes_on_in_its_process_and_in_a_new_one(
    server: ModelServer, hermitage: IsolatedEnvironment, acp_agent: InstalledAcpAgent
) -> None:
    env, work, store = acp_agent.environment(hermitage), hermitage.work, hermitage.root / "runs.db"
    async with open_house(server, acp_agent, work, env, store=store) as house:
        word, session = house.word(), await house.session("full_auto")
        first = await house.play([[ModelSay(text=f"{FIRST} these.")]], session, text=word)
        agents = processes_of(house)
        assert how_it_went_on(house, await second_turn(house, session, word), word) == KNOWN
        assert processes_of(house) == agents
    age_sessions(hermitage.home)
    async with open_house(server, acp_agent, work, env, store=store) as house:
        word = house.word()
        again = await second_turn(house, await house.manager.session(session.id), word)
        found = how_it_went_on(house, again, word)
        assert found == outcome_of(acp_agent.id, "resumed in a new process", KNOWN)
        assert again.result.provider_session_id == first.result.provider_session_id


@pytest.mark.parametrize("acp_agent", WAITING, indirect=True)
async def test_a_session_is_kept_though_it_is_resumed_in_the_minute_of_its_beginning(
    server: ModelServer, hermitage: IsolatedEnvironment, acp_agent: InstalledAcpAgent
) -> None:
    env, work, store = acp_agent.environment(hermitage), hermitage.work, hermitage.root / "runs.db"
    await in_a_fresh_minute()
    async with open_house(server, acp_agent, work, env, store=store) as house:
        word, session = house.word(), await house.session("full_auto")
        await house.play([[ModelSay(text=f"{FIRST} these.")]], session, text=word)
    async with open_house(server, acp_agent, work, env, store=store) as house:
        again = await second_turn(house, await house.manager.session(session.id), word)
        assert how_it_went_on(house, again, word) == KNOWN
        assert [each.type for each in again.events][1:3] == ["error_occurred", "run_started"]


@pytest.mark.parametrize("acp_agent", WAITING, indirect=True)
async def test_a_session_is_resumed_in_process_after_process(
    server: ModelServer, hermitage: IsolatedEnvironment, acp_agent: InstalledAcpAgent
) -> None:
    env, work, store = acp_agent.environment(hermitage), hermitage.work, hermitage.root / "runs.db"
    async with open_house(server, acp_agent, work, env, store=store) as house:
        word, session = house.word(), await house.session("full_auto")
        await house.play([[ModelSay(text=f"{FIRST} these.")]], session, text=word)
    age_sessions(hermitage.home)
    for _ in range(3):
        async with open_house(server, acp_agent, work, env, store=store) as house:
            again = await second_turn(house, await house.manager.session(session.id), word)
            assert how_it_went_on(house, again, word) == KNOWN


async def test_a_session_that_the_agent_has_lost_is_named(
    server: ModelServer,
    hermitage: IsolatedEnvironment,
    acp_agent: InstalledAcpAgent,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    work, store = hermitage.work, hermitage.root / "runs.db"
    env = acp_agent.environment(hermitage)
    async with open_house(server, acp_agent, work, env, store=store) as house:
        session = await house.session("full_auto")
        await house.goes_on(session)
    other = IsolatedEnvironment(tmp_path_factory.mktemp("other"), server.url, path=hermitage.path)
    env = acp_agent.environment(other)
    async with open_house(server, acp_agent, work, env, store=store) as house:
        handle = await house.manager.session(session.id)
        result = (await second_turn(house, handle, house.word())).result
        found = "" if result.failure is None else result.failure.kind.value
        assert found == outcome_of(acp_agent.id, "a lost session", LOST), str(result.failure)
        assert not [each for each in house.server.log.asked if "once more" in each.prompt]


async def test_two_sessions_share_a_process_and_do_not_mix(house: AcpHarness) -> None:
    gate = house.gate()
    words = [house.word() for _ in range(2)]
    texts: dict[str, str] = {}
    running: list[str] = []

    async def one(word: str) -> None:
        script: ModelScript = [
            [ModelCall(tool="shell", input={"command": f"echo tool-{word}"})],
            [ModelSay(text=f"text-{word} that is long", deltas=4, until=str(gate))],
        ]
        run = await house.submit(await house.session("full_auto"), prompt_with(script, word))
        await until_event(run, "message_streamed")
        running.append(word)
        if len(running) == len(words):
            assert len(processes_of(house)) == 1
            gate.touch()
        played = await see(run)
        assert played.result.status is RunStatus.COMPLETED, played.result.failure
        texts[word] = played.result.text
        others = [each for each in words if each != word]
        assert not any(each in str(played.events) for each in others)
        assert any(f"tool-{word}" in str(each) for each in played.events)

    async with trio.open_nursery() as nursery:
        for word in words:
            nursery.start_soon(one, word)
    assert texts == {word: f"text-{word} that is long" for word in words}


async def test_a_message_into_a_turn_is_answered_once(house: AcpHarness) -> None:
    gate, word = house.gate(), house.word()
    session = await house.session("full_auto")
    slow = ModelSay(text="one two three four", deltas=4, until=str(gate))
    run = await house.submit(session, [[slow]])
    await until_event(run, "message_streamed")
    follow_up = await run.append(prompt_with([[ModelSay(text="Heard.")]], word))
    gate.touch()
    first = await run.result()
    assert first.status is RunStatus.COMPLETED, first.failure
    last = await follow_up.run.result()
    assert last.status is RunStatus.COMPLETED, last.failure
    assert last.text == "Heard."
    turns = [each for each in house.server.log.asked if each.purpose == "turn"]
    assert sum(word in each.prompt for each in turns) == 1
    await house.goes_on(session)
