"""The effect of a later run's system prompt: Codex accepts one only when a thread starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sessionmgr.manager import SessionHandle
from sessionmgr.model import FailureKind
from sessionmgr.testing.model_server import ModelSay, ModelServer
from sessionmgr.testing.model_server.isolated_env import IsolatedEnvironment
from tests.real.codex.harness import open_house
from tests.real.harness import RealAgentHarness


def heard(house: RealAgentHarness) -> list[str]:
    """Return our system prompts in the model's last request."""
    body: dict[str, Any] = dict(house.server.log.asked[-1].body)
    parts = [
        part["text"]
        for item in body["input"]
        if item.get("role") == "developer"
        for part in item["content"]
    ]
    return [each for each in parts if each.startswith("Always say ")]


async def say(
    house: RealAgentHarness, session: SessionHandle, word: str, **options: bool
) -> list[str]:
    played = await house.play(
        [[ModelSay(text="a")]],
        session,
        system_prompt=f"Always say {word}.",
        options=house.options(**options),
    )
    assert played.result.status == "completed", played.result.failure
    return heard(house)


async def test_a_system_prompt_of_a_later_run_is_heard_after_the_first(
    any_house: RealAgentHarness,
) -> None:
    house = any_house
    session = await house.session("plan")
    yes, no = "Always say yes.", "Always say no."
    assert await say(house, session, "yes") == [yes]
    assert await say(house, session, "yes") == [yes]
    assert await say(house, session, "no") == [yes, no]
    assert await say(house, session, "no", keep=False) == [yes, no]
    await house.goes_on(session)
    assert heard(house) == [yes, no]
    assert await say(house, session, "yes", fork=True) == [yes, no, yes]
    assert await say(house, session, "yes", exec=True) == [yes, no, yes]


async def test_a_process_of_its_own_refuses_one_that_it_would_pass_over(
    newest: Path, server: ModelServer, hermitage: IsolatedEnvironment, tmp_path: Path
) -> None:
    async def refused(house: RealAgentHarness, session: SessionHandle) -> None:
        options = house.options(exec=True)
        before = len(house.server.log.asked)
        played = await house.play(
            [[ModelSay(text="a")]], session, system_prompt="Always say no.", options=options
        )
        failure = played.result.failure
        assert failure is not None
        assert failure.kind is FailureKind.CONFIG_INVALID
        assert failure.message.startswith("system_prompt: ")
        assert len(house.server.log.asked) == before

    env = hermitage.codex(retries=1)
    store = tmp_path / "store.sqlite"
    async with open_house(server, newest, hermitage.work, env, store=store) as house:
        session = await house.session("plan")
        name = session.id
        assert await say(house, session, "yes", exec=True) == ["Always say yes."]
        await refused(house, session)
        await house.goes_on(session, options=house.options(exec=True))
        assert heard(house) == ["Always say yes."]
    # A new process has not seen the start of the thread.
    async with open_house(server, newest, hermitage.work, env, store=store) as house:
        session = await house.manager.session(name)
        await refused(house, session)
        assert await say(house, session, "yes", exec=True) == ["Always say yes."]
