"""Sessions: load, resume, list, close; modes and options; version 1."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import pytest
from msgspec import field

from sessionmgr.adapter import Health, MappedMode, Options, PermissionMap
from sessionmgr.manager import open_manager
from sessionmgr.model import NATIVE, Capabilities, Json, PermissionMode, SessionStatsUpdated
from sessionmgr.testing import scripted
from sessionmgr.testing.scripted_provider import ALL_IT_DOES, Ask, Emit, Hang, Say, Tool, Use
from tests.acp_server.client import Message, RpcFailed, SchemaClient, serving

LOAD: dict[str, Any] = {"mcpServers": []}


async def load(client: SchemaClient, method: str, session: str, cwd: Path) -> Message:
    params = {**LOAD, "sessionId": session, "cwd": str(cwd)}
    return await client.request(method, params)


async def test_a_session_of_an_earlier_process_is_loaded_and_continues(tmp_path: Path) -> None:
    provider, store = scripted("actor"), str(tmp_path / "store.db")
    async with serving(provider, store=store) as client:
        await client.initialize()
        session = await client.new(tmp_path)
        tool = Tool(name="Read", input={"file_path": "/a"}, output="A")
        await client.prompt(session, Say(text="Hello", deltas=2), tool)
        await client.prompt(session, Say(text="again"))
    async with serving(provider, store=store) as client:
        await client.initialize()
        state = await load(client, "session/load", session, tmp_path)
        assert state["modes"]["currentModeId"] == "default"
        assert client.text() == "Helloagain"
        assert len(client.updates("user_message_chunk")) == 2
        (called,) = client.updates("tool_call")
        assert called["title"] == "Read: /a"
        assert client.updates("tool_call_update")[-1]["status"] == "completed"
        kinds = [each["sessionUpdate"] for each in client.updates()]
        assert kinds[:2] == ["session_info_update", "user_message_chunk"]
        await client.prompt(session, Say(text="!"))
        assert client.text() == "Helloagain!"
        prompts = [each for each in provider.log if each.what == "prompt"]
        assert prompts[1].provider_session_id == prompts[2].provider_session_id is not None


async def test_a_resumed_session_is_not_replayed(tmp_path: Path) -> None:
    store = str(tmp_path / "store.db")
    async with serving(store=store) as client:
        await client.initialize()
        session = await client.new(tmp_path)
        await client.prompt(session, Say(text="Hello"))
    async with serving(store=store) as client:
        await client.initialize()
        await load(client, "session/resume", session, tmp_path)
        assert client.updates() == []
        await client.prompt(session, Say(text="on"))
        assert client.text() == "on"


@pytest.mark.parametrize("method", ["session/load", "session/resume"])
async def test_the_cost_of_a_session_includes_its_earlier_runs(tmp_path: Path, method: str) -> None:
    store = str(tmp_path / "store.db")
    window = Emit(event=SessionStatsUpdated(context_window=1000, context_used=100))
    async with serving(store=store) as client:
        await client.initialize()
        session = await client.new(tmp_path)
        await client.prompt(session, Use(usd=0.5))
    async with serving(store=store) as client:
        await client.initialize()
        await load(client, method, session, tmp_path)
        await client.prompt(session, window, Use(usd=0.25))
        assert client.updates("usage_update")[-1]["cost"]["amount"] == 0.75


async def test_a_session_without_a_prompt_can_be_loaded_by_its_own_client(tmp_path: Path) -> None:
    async with serving() as client:
        await client.initialize()
        session = await client.new(tmp_path)
        await load(client, "session/load", session, tmp_path)
        assert client.updates() == []


@pytest.mark.parametrize("method", ["session/load", "session/resume"])
async def test_an_unknown_session_is_not_found(tmp_path: Path, method: str) -> None:
    async with serving() as client:
        await client.initialize()
        with pytest.raises(RpcFailed, match="ses_nothing") as refused:
            await load(client, method, "ses_nothing", tmp_path)
        assert refused.value.code == -32002


async def test_a_session_of_another_provider_is_not_found(tmp_path: Path) -> None:
    adapters = {name: scripted(name) for name in ("actor", "other")}
    async with open_manager(adapters=adapters) as manager:
        result = await manager.ask("other", "hello", cwd=tmp_path)
        async with serving(adapters["actor"], manager=manager) as client:
            await client.initialize()
            with pytest.raises(RpcFailed, match="belongs to other") as refused:
                await load(client, "session/load", result.session_id, tmp_path)
            assert refused.value.code == -32002


async def test_a_session_stays_in_its_directory(tmp_path: Path) -> None:
    async with serving() as client:
        await client.initialize()
        session = await client.new(tmp_path)
        await client.prompt(session, Say(text="a"))
        with pytest.raises(RpcFailed, match="stays in its directory") as refused:
            await load(client, "session/load", session, tmp_path.parent)
        assert refused.value.code == -32602


async def test_a_busy_session_is_not_loaded(tmp_path: Path) -> None:
    async with serving() as client:
        await client.initialize()
        session = await client.new(tmp_path)
        prompt = await client.begin_prompt(session, Say(text="a"), Hang())
        await client.wait_for(client.text)
        with pytest.raises(RpcFailed, match="not answered yet") as refused:
            await load(client, "session/load", session, tmp_path)
        assert refused.value.code == -32001
        await client.notify("session/cancel", {"sessionId": session})
        await client.answer(prompt)


async def test_a_session_of_another_live_manager_is_busy(tmp_path: Path) -> None:
    store = str(tmp_path / "store.db")
    provider = scripted("actor")
    async with open_manager(store=store, adapters={"actor": provider}) as other:
        held = await other.open_session("actor", cwd=tmp_path)
        async with held.start('[{"do": "hang"}]'), serving(provider, store=store) as client:
            await client.initialize()
            with pytest.raises(RpcFailed) as refused:
                await load(client, "session/load", held.id, tmp_path)
            assert refused.value.code == -32001


async def test_an_agent_that_cannot_resume_loads_nothing(tmp_path: Path) -> None:
    async with serving(scripted("actor", capabilities=Capabilities())) as client:
        found = await client.initialize()
        assert found["agentCapabilities"]["loadSession"] is False
        assert "resume" not in found["agentCapabilities"]["sessionCapabilities"]
        with pytest.raises(RpcFailed, match="cannot continue") as refused:
            await load(client, "session/load", "ses_any", tmp_path)
        assert refused.value.code == -32601


async def test_sessions_are_listed_with_titles_in_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sessionmgr.acp_server.session_list.PAGE", 2)
    (tmp_path / "other").mkdir()
    async with serving() as client:
        await client.initialize()
        made: list[str] = []
        for number in range(5):
            session = await client.new(tmp_path if number else tmp_path / "other")
            await client.prompt(session, f"prompt {number}")
            made.append(session)
        listed: list[str] = []
        params: Message = {}
        while True:
            page = await client.request("session/list", params)
            listed += [f"{each['title']} {each['sessionId']}" for each in page["sessions"]]
            if "nextCursor" not in page:
                break
            assert len(page["sessions"]) == 2
            params = {"cursor": page["nextCursor"]}
        assert listed == [f"prompt {n} {made[n]}" for n in (4, 3, 2, 1, 0)]
        here = await client.request("session/list", {"cwd": str(tmp_path / "other")})
        assert [each["sessionId"] for each in here["sessions"]] == made[:1]
        with pytest.raises(RpcFailed, match="cursor: unknown session 'x'"):
            await client.request("session/list", {"cursor": "x"})


async def test_a_closed_session_ends_its_turn_and_can_be_loaded_again(tmp_path: Path) -> None:
    async with serving() as client:
        await client.initialize()
        session = await client.new(tmp_path)
        prompt = await client.begin_prompt(session, Say(text="a"), Hang())
        await client.wait_for(client.text)
        await client.request("session/close", {"sessionId": session})
        assert (await client.answer(prompt))["stopReason"] == "cancelled"
        with pytest.raises(RpcFailed, match="is not open") as refused:
            await client.prompt(session, Say(text="b"))
        assert refused.value.code == -32002
        await load(client, "session/load", session, tmp_path)
        await client.prompt(session, Say(text="b"))
        assert client.text() == "aab"


async def test_a_slow_request_is_cancelled_by_its_id(
    tmp_path: Path, autojump_clock: object
) -> None:
    async with serving() as client:
        await client.initialize()
        session = await client.new(tmp_path)
        asks = await client.begin_prompt(session, Ask(tool="Bash"), interrupt="ignore")
        await client.wait_for(
            lambda: [each for each in client.seen if "method" in each and "id" in each]
        )
        closing = await client.begin("session/close", {"sessionId": session})
        await client.notify("$/cancel_request", {"requestId": closing})
        with pytest.raises(RpcFailed, match="request cancelled") as refused:
            await client.answer(closing)
        assert refused.value.code == -32800
        assert (await client.answer(asks))["stopReason"] == "cancelled"


# --- modes and options ---------------------------------------------------------------------------

TWO_MODES = PermissionMap(
    {mode: MappedMode(mode.value) for mode in (PermissionMode.PLAN, PermissionMode.FULL_AUTO)}
)


async def test_only_the_modes_of_the_provider_are_offered(tmp_path: Path) -> None:
    provider = scripted("actor", permissions=TWO_MODES)
    async with serving(provider, permission_mode=PermissionMode.PLAN) as client:
        await client.initialize()
        params: Message = {"cwd": str(tmp_path), "mcpServers": []}
        modes = (await client.request("session/new", params))["modes"]
        assert modes["currentModeId"] == "plan"
        assert [each["id"] for each in modes["availableModes"]] == ["plan", "full_auto"]


@pytest.mark.parametrize("by_option", [False, True])
async def test_a_mode_holds_from_the_next_prompt_on(tmp_path: Path, by_option: bool) -> None:
    provider = scripted("actor")
    async with serving(provider) as client:
        await client.initialize()
        session = await client.new(tmp_path)
        ask = Ask(tool="Write", effect="edit")
        if by_option:
            params = {"sessionId": session, "configId": "mode", "value": "full_auto"}
            answer = await client.request("session/set_config_option", params)
            assert answer["configOptions"][0]["currentValue"] == "full_auto"
        else:
            params = {"sessionId": session, "modeId": "full_auto"}
            assert await client.request("session/set_mode", params) == {}
        await client.prompt(session, ask)  # allowed without a question
        assert client.updates("current_mode_update")[-1]["currentModeId"] == "full_auto"
        assert client.updates("config_option_update")[-1]["configOptions"]
        assert provider.log[0].mode is PermissionMode.FULL_AUTO
        assert client.updates("tool_call_update")[-1]["status"] == "completed"


@pytest.mark.parametrize(
    ("method", "params", "why"),
    [
        ("session/set_mode", {"modeId": "yolo"}, "unknown mode 'yolo'; known: default, "),
        ("session/set_config_option", {"configId": "mode", "value": "yolo"}, "unknown mode 'yolo'"),
        ("session/set_config_option", {"configId": "model", "value": "m3"}, "known: default, m1"),
        ("session/set_config_option", {"configId": "effort", "value": "x"}, "unknown option 'eff"),
    ],
)
async def test_an_unknown_mode_or_option_is_refused(
    tmp_path: Path, method: str, params: Message, why: str
) -> None:
    async with serving(chooses_models(), models=("m1",)) as client:
        await client.initialize()
        session = await client.new(tmp_path)
        with pytest.raises(RpcFailed, match=why) as refused:
            await client.request(method, {"sessionId": session, **params})
        assert refused.value.code == -32602


def chooses_models() -> Any:
    capabilities = ALL_IT_DOES.__class__(model_choice=NATIVE)
    return scripted("actor", capabilities=capabilities, options=ModelOptions)


class ModelOptions(Options, frozen=True, kw_only=True):
    """Options of an agent with models and MCP servers."""

    model: str | None = None
    mcp_servers: dict[str, Json] = field(default_factory=dict[str, Json])


async def test_a_client_chooses_among_the_models(tmp_path: Path) -> None:
    async with serving(chooses_models(), models=("m1", "m2")) as client:
        await client.initialize()
        session = await client.new(tmp_path)
        params = {"sessionId": session, "configId": "model", "value": "m2"}
        answer = await client.request("session/set_config_option", params)
        model = answer["configOptions"][1]
        assert model["category"] == "model"
        assert model["currentValue"] == "m2"
        assert [each["value"] for each in model["options"]] == ["default", "m1", "m2"]
        assert (await client.prompt(session, "hello"))["stopReason"] == "end_turn"


# --- settings of a session -----------------------------------------------------------------------


SERVER: Message = {"name": "a", "command": "/b", "args": [], "env": []}


@pytest.mark.parametrize(
    ("params", "why"),
    [
        ({"cwd": "here"}, "cwd: not an absolute path: 'here'"),
        ({"cwd": "/nowhere/at/all"}, "no such directory: /nowhere/at/all"),
        ({"additionalDirectories": ["/tmp"]}, "additionalDirectories: actor does not support"),
        (
            {"mcpServers": [SERVER]},
            "mcpServers: actor takes no MCP servers",
        ),
    ],
)
async def test_settings_that_the_agent_cannot_honour_are_refused(
    tmp_path: Path, params: Message, why: str
) -> None:
    async with serving() as client:
        await client.initialize()
        with pytest.raises(RpcFailed, match=why) as refused:
            await client.new(**{"cwd": tmp_path, **params})
        assert refused.value.code == -32602


@pytest.mark.parametrize(("state", "code"), [("fail", -32000), ("skip", -32603)])
async def test_a_session_needs_an_agent_that_is_installed_and_logged_in(
    tmp_path: Path, state: Literal["fail", "skip"], code: int
) -> None:
    class NotReady(scripted("actor")):  # type: ignore[misc]
        @classmethod
        def readiness(cls, options: Options, env: Mapping[str, str], cwd: str) -> Health:
            return Health(state=state, detail="not ready; log in")

    async with serving(NotReady) as client:
        await client.initialize()
        with pytest.raises(RpcFailed, match="actor: not ready; log in") as refused:
            await client.new(tmp_path)
        assert refused.value.code == code


async def test_a_session_without_a_directory_gets_that_of_the_server() -> None:
    async with serving() as client:
        await client.initialize()
        await client.send({"id": "n", "method": "session/new", "params": {}})
        session = (await client.answer("n"))["sessionId"]
        await client.prompt(session, Say(text="a"))
        (listed,) = (await client.request("session/list", {}))["sessions"]
        assert listed["cwd"] == "/"
        await client.send({"id": "l", "method": "session/load", "params": {"sessionId": session}})
        await client.answer("l")


async def test_servers_on_stdio_reach_the_options_of_the_provider(tmp_path: Path) -> None:
    capabilities = Capabilities(mcp=NATIVE)
    provider = scripted("actor", capabilities=capabilities, options=ModelOptions)
    server = {"name": "s", "command": "/s", "args": ["-x"], "env": [{"name": "K", "value": "V"}]}
    async with serving(provider, options={"mcp_servers": {"own": {"command": "o"}}}) as client:
        await client.initialize()
        http: Message = {"type": "http", "name": "h", "url": "http://h", "headers": []}
        with pytest.raises(RpcFailed, match=r"mcpServers\[0\]: a server of type 'http'"):
            await client.new(tmp_path, mcpServers=[http])
        params = {"cwd": str(tmp_path), "mcpServers": [{**server, "env": [{"name": "K"}]}]}
        await client.send({"id": "n", "method": "session/new", "params": params})
        with pytest.raises(RpcFailed, match="expected objects with name and value"):
            await client.answer("n")
        session = await client.new(tmp_path, mcpServers=[server])
        assert (await client.prompt(session, "hello"))["stopReason"] == "end_turn"
