"""Mistakes of clients: each is answered with its error, and the server goes on."""

from pathlib import Path

import pytest

from sessionmgr.testing.scripted_provider import Hang, Say
from tests.acp_server.client import Message, RpcFailed, serving


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"hello", -32700),
        (b'{"jsonrpc":"2.0","id":1,', -32700),
        (b'{"jsonrpc":"2.0"}', -32600),
        (b'{"jsonrpc":"2.0","id":{},"method":"initialize"}', -32600),
        (b'[{"jsonrpc":"2.0","id":1,"method":"initialize"}]', -32600),
        (b"[]", -32600),
        (b"[" * 100_000, -32600),
        (b"\xff\xfe\x00", -32700),
    ],
)
async def test_a_line_that_is_no_message_is_answered_without_an_id(line: bytes, code: int) -> None:
    async with serving() as client:
        await client.send_raw(line + b"\n")
        (answer,) = await client.wait_for(lambda: client.seen[:])
        assert answer["id"] is None
        assert answer["error"]["code"] == code
        assert (await client.initialize())["protocolVersion"] == 1


async def test_a_line_over_the_limit_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sessionmgr.acp_server.connection.LIMIT", 1000)
    async with serving() as client:
        await client.send_raw(b'{"id": 1, "method": "' + b"x" * 2000 + b'"}\n')
        (answer,) = await client.wait_for(lambda: client.seen[:])
        assert "a line of 2023 bytes" in answer["error"]["message"]
        await client.initialize()


async def test_an_unknown_method_is_refused(tmp_path: Path) -> None:
    async with serving() as client:
        await client.initialize()
        for number, method in enumerate(["session/fork", "_other/thing", "terminal/create"]):
            await client.send({"id": f"x{number}", "method": method, "params": {}})
            with pytest.raises(RpcFailed, match=method) as refused:
                await client.answer(f"x{number}")
            assert refused.value.code == -32601


async def test_the_first_request_is_initialize(tmp_path: Path) -> None:
    async with serving() as client:
        with pytest.raises(RpcFailed, match="first request must be initialize") as refused:
            await client.new(tmp_path)
        assert refused.value.code == -32600
        await client.initialize()
        with pytest.raises(RpcFailed, match="called before") as refused:
            await client.initialize()
        assert refused.value.code == -32600


@pytest.mark.parametrize(
    ("method", "params", "names"),
    [
        ("session/new", {"cwd": 7}, "cwd"),
        ("session/prompt", {"sessionId": "s"}, "prompt"),
        ("session/prompt", None, "sessionId"),
        ("session/load", [], "object"),
    ],
)
async def test_invalid_parameters_are_refused_with_the_name_of_the_field(
    method: str, params: Message | None, names: str
) -> None:
    async with serving() as client:
        await client.initialize()
        message: Message = {"id": "m", "method": method}
        await client.send(message if params is None else {**message, "params": params})
        with pytest.raises(RpcFailed, match=names) as refused:
            await client.answer("m")
        assert refused.value.code == -32602


async def test_unknown_notifications_and_answers_are_ignored(tmp_path: Path) -> None:
    async with serving() as client:
        await client.initialize()
        await client.send({"method": "_editor/focus", "params": {}})
        await client.send({"method": "session/cancel", "params": {"sessionId": "ses_no"}})
        await client.send({"method": "session/cancel", "params": {}})
        await client.send({"method": "$/cancel_request", "params": {"requestId": 99}})
        await client.send({"id": 12345, "result": {}})
        await client.send({"id": None, "error": {"code": -32700, "message": "what?"}})
        session = await client.new(tmp_path)
        assert (await client.prompt(session, Say(text="on")))["stopReason"] == "end_turn"


async def test_the_agent_offers_no_login() -> None:
    async with serving() as client:
        assert (await client.initialize())["authMethods"] == []
        with pytest.raises(RpcFailed, match="log in with the program of actor") as refused:
            await client.request("authenticate", {"methodId": "key"})
        assert refused.value.code == -32602


async def test_the_agent_answers_in_its_own_version() -> None:
    for version in (0, 1, 7):
        async with serving() as client:
            params: Message = {"protocolVersion": version, "clientCapabilities": {}}
            answer = await client.request("initialize", params)
            assert answer["protocolVersion"] == 1


async def test_requests_above_the_limit_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sessionmgr.acp_server.server.MOST_REQUESTS", 1)
    async with serving() as client:
        await client.initialize()
        session = await client.new(tmp_path)
        prompt = await client.begin_prompt(session, Say(text="a"), Hang())
        await client.wait_for(client.text)
        with pytest.raises(RpcFailed, match="1 requests are open") as refused:
            await client.request("session/list", {})
        assert refused.value.code == -32001
        await client.notify("session/cancel", {"sessionId": session})
        assert (await client.answer(prompt))["stopReason"] == "cancelled"


async def test_sessions_above_the_limit_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sessionmgr.acp_server.agent.MOST_SESSIONS", 1)
    async with serving() as client:
        await client.initialize()
        session = await client.new(tmp_path)
        with pytest.raises(RpcFailed, match="close one") as refused:
            await client.new(tmp_path)
        assert refused.value.code == -32001
        await client.request("session/close", {"sessionId": session})
        await client.new(tmp_path)


async def test_a_client_that_leaves_ends_its_turns(tmp_path: Path) -> None:
    async with serving() as client:
        await client.initialize()
        session = await client.new(tmp_path)
        prompt = await client.begin_prompt(session, Say(text="a"), Hang())
        await client.wait_for(client.text)
        await client.end()
        assert (await client.answer(prompt))["stopReason"] == "cancelled"
