"""One prompt and its result in one call."""

from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock

import sessionmgr
from sessionmgr.adapter import ProviderUnknown
from sessionmgr.manager import ArgumentTypeInvalid, ArgumentValueInvalid, ManagerClosing, NotInTrio
from sessionmgr.testing.scripted_provider import Fail, Hang, Say, scripted
from tests.manager.harness import open_harness, run_scripted


async def test_one_prompt_needs_no_manager(autojump_clock: MockClock, tmp_path: Path) -> None:
    actor = scripted("actor")
    store = tmp_path / "store.db"
    result = await sessionmgr.ask("actor", "hello", adapters={"actor": actor}, store=store)
    assert (result.status, result.text) == ("completed", "hello")
    async with sessionmgr.open_manager(store=store, adapters={"actor": actor}) as manager:
        assert (await manager.result(result.id)).text == "hello"


async def test_a_failed_run_returns_its_result(autojump_clock: MockClock) -> None:
    async with open_harness() as house:
        result = await house.manager.ask("actor", run_scripted(Fail(message="no")))
        assert result.status == "failed"
        assert result.failure is not None
        assert result.failure.message == "no"


async def test_the_session_of_a_prompt_can_go_on(autojump_clock: MockClock, tmp_path: Path) -> None:
    async with open_harness() as house:
        result = await house.manager.ask(
            "actor", "a", cwd=tmp_path, permission_mode="plan", metadata={"k": 1}
        )
        (session,) = await house.manager.sessions()
        assert (session.id, session.cwd) == (result.session_id, str(tmp_path))
        assert (session.permission_mode, session.metadata) == ("plan", {"k": 1})
        assert result.metadata == {"k": 1}
        followed = await house.manager.session(result.session_id)
        assert (await (await followed.submit("b")).result()).text == "b"


async def test_a_cancelled_caller_cancels_its_run(autojump_clock: MockClock) -> None:
    async with open_harness() as house:
        with trio.move_on_after(1):
            await house.manager.ask("actor", run_scripted(Say(text="a"), Hang()))
        (session,) = await house.manager.sessions()
        (run,) = await house.manager.settled(session.id)
        assert run.status == "cancelled"


async def test_refusals_are_raised_bare(autojump_clock: MockClock) -> None:
    with pytest.raises(ProviderUnknown, match="actr"):
        await sessionmgr.ask("actr", "hello", adapters={"actor": scripted("actor")})


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({"prompt": ""}, ArgumentValueInvalid, "prompt is ''"),
        ({"provider": None}, ArgumentTypeInvalid, "provider must be a str, not None"),
        ({"cwd": 3}, ArgumentTypeInvalid, "cwd must be a str or a Path, not 3"),
        ({"budget": 2.0}, ArgumentTypeInvalid, "budget must be Budget"),
        ({"modell": "x"}, TypeError, "unknown argument 'modell'; did you mean 'model'"),
        ({"manager": 3}, ArgumentTypeInvalid, "manager must be the Manager .*, not 3"),
    ],
)
async def test_a_wrong_argument_is_named(
    autojump_clock: MockClock, given: dict[str, Any], error: type[Exception], said: str
) -> None:
    ask: Any = sessionmgr.ask
    agents = {} if "manager" in given else {"adapters": {"actor": scripted("actor")}}
    with pytest.raises(error, match=f"^ask: {said}"):
        await ask(**{"provider": "actor", "prompt": "x", **agents, **given})


async def test_a_given_manager_has_its_own_store(autojump_clock: MockClock) -> None:
    async with open_harness() as house:
        with pytest.raises(ArgumentValueInvalid, match=r"^ask: store is 'x\.db'"):
            await sessionmgr.ask("actor", "x", manager=house.manager, store="x.db")
        manager = house.manager
    with pytest.raises(ManagerClosing, match="has been left"):
        await sessionmgr.ask("actor", "x", manager=manager)


def test_a_program_on_asyncio_learns_that_it_needs_trio() -> None:
    with pytest.raises(NotInTrio):
        sessionmgr.ask("actor", "x").send(None)
