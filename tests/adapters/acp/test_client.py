"""The plain client: turns, permission, cancelling, several sessions, and what goes wrong."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

import pytest
import trio

from sessionmgr.process import ProgramNotFound
from sessionmgr_adapters.acp import (
    AcpClientError,
    AcpClientTurn,
    AgentChunk,
    allow_once,
    client_session,
    open_client,
    option_of_kind,
)
from sessionmgr_adapters.acp.frames import PermissionRequest
from sessionmgr_adapters.acp.mcp import McpServerError
from tests.adapters.acp import scripted_agent

AGENT: Final = (sys.executable, str(scripted_agent.__file__))
LIMIT: Final = 60


def text_of(updates: list[object]) -> str:
    return "".join(each.content.text or "" for each in updates if isinstance(each, AgentChunk))


async def test_a_turn_is_read_and_the_next_one_follows(tmp_path: Path) -> None:
    with trio.fail_after(LIMIT):
        async with open_client(AGENT, cwd=tmp_path) as client:
            assert client.info.agent == "scripted"
            async with client.session() as session:
                assert session.id == "s-1"
                turn = session.prompt("say one; say  two")
                assert text_of([each async for each in turn]) == "one two"
                assert turn.end is not None
                assert turn.end.stop_reason == "end_turn"
                assert turn.end.usage is not None
                assert turn.end.usage.input_tokens == 3
                assert [each async for each in turn] == []
                assert await session.prompt({"type": "text", "text": "say more"}).text() == "more"
            async with client.session(resume="s-1") as session:
                assert session.id == "s-1"
                assert text_of([*session.earlier]) == "replayed"
                assert await session.prompt("say again").text() == "again"


async def test_an_update_of_an_unknown_form_is_carried() -> None:
    with trio.fail_after(LIMIT):
        async with open_client(AGENT) as client, client.session() as session:
            odd, said = [each async for each in session.prompt("odd; say x")]
            assert "'x': 1" in str(odd)
            assert text_of([said]) == "x"


async def test_a_slow_reader_gets_all_updates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_session, "FULL", 10)
    with trio.fail_after(LIMIT):
        async with open_client(AGENT) as client, client.session() as session:
            turn = session.prompt("many 3000")
            await session.wait_until(lambda: len(turn.waiting) >= 10)
            assert not turn.is_over
            text = await turn.text()
            assert text.split() == [str(number) for number in range(3000)]


async def choose_other(request: PermissionRequest) -> str | None:
    await trio.lowlevel.checkpoint()
    return option_of_kind(request, "allow_always")


async def test_the_function_answers_requests_for_permission() -> None:
    with trio.fail_after(LIMIT):
        async with open_client(AGENT) as client, client.session() as session:
            assert await session.prompt("ask").text() == "reject_once"
            assert await session.prompt("ask allow_once").text() == "cancelled"
        async with open_client(AGENT, permit=allow_once) as client, client.session() as session:
            assert await session.prompt("ask").text() == "allow_once"
        async with open_client(AGENT, permit=choose_other) as client, client.session() as session:
            assert await session.prompt("ask").text() == "allow_always"


async def test_requests_that_the_client_does_not_serve_are_refused() -> None:
    with trio.fail_after(LIMIT):
        async with open_client(AGENT) as client, client.session() as session:
            assert await session.prompt("form elicitation/create").text() == "cancel"
            assert await session.prompt("form fs/read_text_file").text() == "-32601"


async def test_an_error_of_the_function_ends_the_block() -> None:
    async def permit(_: PermissionRequest) -> str | None:
        raise LookupError("no answer")

    with trio.fail_after(LIMIT), pytest.raises(LookupError, match="no answer"):
        async with open_client(AGENT, permit=permit) as client, client.session() as session:
            await session.prompt("ask").text()


async def test_cancelling_answers_the_open_request() -> None:
    asked = trio.Event()

    async def permit(_: PermissionRequest) -> str | None:
        asked.set()
        await trio.sleep_forever()

    with trio.fail_after(LIMIT):
        async with open_client(AGENT, permit=permit) as client, client.session() as session:
            turn = session.prompt("ask")
            await asked.wait()
            await session.cancel()
            assert await turn.text() == "cancelled"
            assert turn.end is not None
            assert turn.end.stop_reason == "cancelled"


async def test_leaving_the_block_cancels_the_turn_and_no_other() -> None:
    left: list[AcpClientTurn] = []
    with trio.fail_after(LIMIT):
        async with open_client(AGENT) as client:
            async with client.session() as session:
                left.append(session.prompt("say x; wait"))
                async for _ in left[0]:
                    break
            [turn] = left
            assert turn.end is not None
            assert turn.end.stop_reason == "cancelled"
            async with client.session() as session:
                assert await session.prompt("say on").text() == "on"


async def test_an_agent_that_does_not_end_the_turn_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(client_session, "CANCEL_LIMIT", 0.1)
    with trio.fail_after(LIMIT):
        async with open_client(AGENT) as client:
            async with client.session() as session:
                turn = session.prompt("deaf")
            assert not turn.is_over
            async with client.session() as session:
                assert await session.prompt("say on").text() == "on"


async def test_an_exception_of_the_block_leaves_without_a_group() -> None:
    async def leave() -> None:
        async with open_client(AGENT) as client, client.session() as session:
            session.prompt("wait")
            raise KeyError

    with trio.fail_after(LIMIT), pytest.raises(KeyError):
        await leave()


async def test_sessions_run_side_by_side() -> None:
    texts: list[str] = []

    with trio.fail_after(LIMIT):
        async with open_client(AGENT) as client:

            async def ask(word: str) -> None:
                async with client.session() as session:
                    texts.append(await session.prompt(f"say {word}").text())

            async with trio.open_nursery() as nursery:
                for word in ("one", "two", "three"):
                    nursery.start_soon(ask, word)
    assert sorted(texts) == ["one", "three", "two"]


async def test_a_second_prompt_beside_the_first_is_refused() -> None:
    with trio.fail_after(LIMIT):
        async with open_client(AGENT) as client, client.session() as session:
            session.prompt("wait")
            with pytest.raises(RuntimeError, match="a turn of this session is running"):
                session.prompt("say x")


async def test_a_refusal_has_its_code_and_data() -> None:
    with trio.fail_after(LIMIT):
        async with open_client(AGENT) as client, client.session() as session:
            turn = session.prompt("say x; fail too much")
            with pytest.raises(AcpClientError, match="session/prompt: too much") as caught:
                await turn.text()
            assert (caught.value.code, caught.value.data) == (429, {"x": 1})
            await session.set_mode("plan")
            await client.authenticate("key")
            with pytest.raises(AcpClientError, match="no session/set_config_option"):
                await session.set_option("model", "fast")
            assert await session.prompt("say on").text() == "on"


async def test_an_agent_that_exits_says_so() -> None:
    with trio.fail_after(LIMIT):
        async with open_client(AGENT) as client, client.session() as session:
            with pytest.raises(AcpClientError, match="the agent has exited with 3: bad luck"):
                await session.prompt("exit bad luck").text()
            with pytest.raises(AcpClientError, match="the agent has exited with 3"):
                await session.prompt("say x").text()
            with pytest.raises(AcpClientError, match="session/set_mode: the agent has exited"):
                await session.set_mode("plan")


async def test_an_agent_that_cannot_be_used_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with trio.fail_after(LIMIT):
        with pytest.raises(ProgramNotFound):
            async with open_client(["no-such-agent"]):
                pass
        with pytest.raises(AcpClientError, match="initialize: not today"):
            async with open_client([*AGENT, "0"]):
                pass
        with pytest.raises(AcpClientError, match="version 2 of ACP, not 1"):
            async with open_client([*AGENT, "2"]):
                pass
        with pytest.raises(AcpClientError, match="initialize: the agent has exited with 0"):
            async with open_client(["/bin/true"]):
                pass
        with pytest.raises(McpServerError, match="it needs either a command or a url"):
            async with (
                open_client(AGENT) as client,
                client.session(mcp_servers={"x": {}}),
            ):
                pass
        monkeypatch.setattr(client_session, "START_LIMIT", 0.2)
        with pytest.raises(AcpClientError, match=r"initialize: no answer within 0.2 s"):
            async with open_client(["/bin/sleep", "1000"]):
                pass
