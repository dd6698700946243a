"""The steps before a prompt: the session is opened, and set up as the run asks for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from trio.testing import MockClock

from sessionmgr.model import FailureKind, Fidelity, Json, PermissionMode
from sessionmgr_adapters.acp.frames import (
    Acknowledged,
    AcpCapabilities,
    AcpFrame,
    AcpRefusal,
    AuthMethod,
    Initialized,
    OptionsChanged,
    SessionMode,
    SessionModes,
    SessionOpened,
)
from sessionmgr_adapters.acp.updates import ConfigChoice, ConfigOption, ModeUpdate
from tests.adapters.acp.mock_agent import (
    ALL,
    HELLO,
    MODES,
    Talk,
    agent_of_frames,
    call_of,
    chunk,
    ended,
    opening,
    session_of,
    update,
)
from tests.adapters.acp.mocked_manager import Played, Script, manager_of, play

BARE = replace(HELLO, capabilities=AcpCapabilities(), steers=False)
PIXEL = b"\x89PNG\r\n\x1a\n" + bytes(20)
OPENED = SessionOpened(method="session/new", session_id="s1", modes=MODES)


def choice(id_: str, category: str | None, value: Json, *values: str) -> ConfigOption:
    choices = tuple(ConfigChoice(value=each) for each in values)
    kind = "select" if choices else "boolean"
    return ConfigOption(id=id_, category=category, type=kind, value=value, choices=choices)


def says(hello: Initialized | AcpRefusal, *answers: object) -> Script:
    """Return an agent that gives these answers to the calls before the prompt."""

    async def script(it: Talk) -> None:
        it.says(hello)
        for answer in answers:
            await it.heard()
            it.says(answer)  # type: ignore[arg-type]
        call = await call_of(it)
        it.says(chunk(session_of(call), "ok"), ended())

    return script


def with_options(*options: ConfigOption, answers: bool = True) -> Script:
    """Return an agent with these options, which reports them whenever one is set."""

    async def script(it: Talk) -> None:
        found = {each.id: each for each in options}
        it.says(HELLO)
        while (call := await call_of(it)).method != "session/prompt":
            if call.method == "session/new":
                it.says(SessionOpened(method=call.method, session_id="s1", options=options))
                continue
            assert call.method == "session/set_config_option"
            if answers:
                name = str(call.params["configId"])
                found[name] = replace(found[name], value=call.params["value"])
            it.says(OptionsChanged(options=tuple(found.values())))
        it.says(chunk("s1", "ok"), ended())

    return script


async def test_a_run_reports_session_mode_and_version() -> None:
    played = await play(agent_of_frames, "hello")
    started = played.of_type("run_started")[0]
    assert played.result.status == "completed"
    assert started.provider_session_id
    assert started.cli_version == "1.2.3"
    assert started.permission.effective == "the agent's default (default)"


async def test_an_agent_that_reports_no_mode_runs_in_its_default() -> None:
    played = await play(says(HELLO, replace(OPENED, modes=None)))
    started = played.of_type("run_started")[0]
    assert started.permission.effective == "the agent's default"


async def test_a_refused_handshake_fails_the_run() -> None:
    refusal = AcpRefusal(method="initialize", code=-32603, message="broken")
    kind, message = (await play(says(refusal))).failure
    assert kind == FailureKind.PROVIDER_ERROR
    assert "broken" in message


@pytest.mark.parametrize(("asked", "spoken", "provider"), [(1, 2, "acp"), (2, 1, "acp:codex-acp")])
async def test_an_agent_of_another_version_is_refused(
    asked: int, spoken: int, provider: str
) -> None:
    script = says(replace(HELLO, version=spoken))
    options = {"protocol": asked}
    played = await play(script, options=options, provider=provider, mode="full_auto")
    kind, message = played.failure
    assert kind == FailureKind.CONFIG_INVALID
    assert message == (
        f"options.protocol: the agent speaks version {spoken} of ACP, not {asked}; use {spoken}"
    )


# --- login ----------------------------------------------------------------------------------------

NO_LOGIN = AcpRefusal(method="session/new", code=-32000, message="Authentication required")
LOGGED_IN = Acknowledged(method="authenticate")


def methods(*given: AuthMethod) -> Initialized:
    return replace(HELLO, auth_methods=given)


async def test_an_agent_logs_in_by_its_only_method() -> None:
    hello = methods(AuthMethod(id="key"), AuthMethod(id="terminal", type="terminal"))
    played = await play(says(hello, NO_LOGIN, LOGGED_IN, OPENED))
    assert played.result.status == "completed"


async def test_a_method_can_be_named() -> None:
    hello = methods(AuthMethod(id="key"), AuthMethod(id="browser"))
    script = says(hello, NO_LOGIN, LOGGED_IN, OPENED)
    played = await play(script, options={"auth": "key"})
    assert played.result.status == "completed"


@pytest.mark.parametrize(
    ("hello", "options", "hint"),
    [
        (methods(AuthMethod(id="t", type="terminal")), {}, "log in with the agent's own program"),
        (methods(AuthMethod(id="a"), AuthMethod(id="b")), {}, "set options.auth to one of: a, b"),
        (methods(AuthMethod(id="a")), {"auth": "c"}, "options.auth: 'c' did not work"),
        (methods(AuthMethod(id="a")), {"auth": "c"}, "set options.auth to one of: a"),
    ],
)
async def test_a_login_that_is_not_possible_names_the_remedy(
    hello: Initialized, options: dict[str, Any], hint: str
) -> None:
    kind, message = (await play(says(hello, NO_LOGIN), options=options)).failure
    assert kind == FailureKind.AUTH_FAILED
    assert hint in message


async def test_a_login_that_is_refused_fails_the_run() -> None:
    refusal = AcpRefusal(method="authenticate", code=-32000, message="bad key")
    script = says(methods(AuthMethod(id="key")), NO_LOGIN, refusal)
    kind, message = (await play(script)).failure
    assert kind == FailureKind.AUTH_FAILED
    assert "bad key" in message


async def test_a_refused_login_names_what_the_agent_lacks_and_the_other_methods() -> None:
    lacking: Json = {"details": "set MODEL_KEY"}
    refusal = AcpRefusal(method="authenticate", code=-32603, message="Internal error", data=lacking)
    script = says(methods(AuthMethod(id="key")), NO_LOGIN, refusal)
    message = (await play(script)).failure[1]
    assert message == (
        "the login method 'key' did not work; Internal error: set MODEL_KEY: log in with the "
        "agent's own program"
    )
    two = methods(AuthMethod(id="key"), AuthMethod(id="browser"))
    message = (await play(says(two, NO_LOGIN, refusal), options={"auth": "key"})).failure[1]
    assert message.endswith("program; or set options.auth to one of: browser")


async def test_a_login_without_effect_names_the_method() -> None:
    refusal = replace(NO_LOGIN, message="Please log in.")
    script = says(methods(AuthMethod(id="browser")), NO_LOGIN, LOGGED_IN, refusal)
    kind, message = (await play(script)).failure
    assert kind == FailureKind.AUTH_FAILED
    assert message == (
        "the login method 'browser' did not work; Please log in: log in with the agent's own "
        "program"
    )


async def test_the_login_hint_names_the_agents_command() -> None:
    played = await play(says(HELLO, NO_LOGIN), provider="acp:opencode", mode="full_auto")
    assert "run `opencode auth login`" in played.failure[1]


@pytest.mark.parametrize(
    ("hello", "answers", "silent", "seconds"),
    [
        (HELLO, (), "session/new", 120),
        (HELLO, (OPENED,), "session/set_mode", 120),
        (methods(AuthMethod(id="key")), (NO_LOGIN,), "authenticate", 600),
    ],
)
async def test_an_agent_that_does_not_answer_fails_the_run(
    autojump_clock: MockClock,
    hello: Initialized,
    answers: tuple[AcpFrame, ...],
    silent: str,
    seconds: int,
) -> None:
    async def script(it: Talk) -> None:
        it.says(hello)
        for answer in answers:
            await it.heard()
            it.says(answer)
        assert (await call_of(it)).method == silent
        await it.heard()

    played = await play(script, options={"mode": "plan"}, mode="full_auto")
    assert f"no answer within {seconds} seconds" in played.failure[1]


async def test_a_session_that_cannot_be_opened_fails_the_run() -> None:
    refusal = AcpRefusal(method="session/new", code=-32603, message="no disk")
    assert "no disk" in (await play(says(HELLO, refusal))).failure[1]


# --- what the agent lacks -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "wishes"),
    [
        ("directories", {"directories": ["/tmp"]}),
        ("images", {"images": ["pixel.png"]}),
        ("system_prompt", {"system_prompt": "Be brief."}),
        ("options.mcp_servers.a", {"options": {"mcp_servers": {"a": {"url": "http://x"}}}}),
        ("effort", {"effort": "high"}),
        ("model", {"model": "big"}),
    ],
)
async def test_a_wish_that_the_agent_cannot_fulfil_is_refused(
    field: str, wishes: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "pixel.png").write_bytes(PIXEL)
    played = await play(says(BARE, OPENED), cwd=tmp_path, **wishes)
    kind, message = played.failure
    assert kind == FailureKind.CAPABILITY_MISSING
    assert message.startswith(f"{field}: ")


async def test_what_the_agent_lacks_narrows_the_provider() -> None:
    async with manager_of(says(BARE, OPENED)) as (manager, _):
        session = await manager.open_session("acp:goose", permission_mode="full_auto")
        async with session.start("hi", options={"command": ["x"]}, prefer=["resume"]) as run:
            result = await run.result()
    assert result.negotiation is not None
    assert [each.name for each in result.negotiation.degraded] == ["resume"]


async def test_servers_directories_images_and_prompts_reach_the_agent(tmp_path: Path) -> None:
    (tmp_path / "pixel.png").write_bytes(PIXEL)
    calls: list[Any] = []

    async def script(it: Talk) -> None:
        it.says(HELLO)
        calls.append(await call_of(it))
        it.says(OPENED)
        calls.append(await call_of(it))
        it.says(chunk("s1", "ok"), ended())

    meta = {"x.org/key": 1}
    servers = {"a": {"command": "run-a", "env": {"K": "V"}}, "b": {"url": "http://b"}}
    played = await play(
        script,
        cwd=tmp_path,
        directories=["/tmp"],
        images=["pixel.png"],
        system_prompt="Be brief.",
        options={"mcp_servers": servers, "meta": meta},
    )
    assert played.result.status == "completed"
    opened, prompt = (each.params for each in calls)
    assert opened["cwd"] == str(tmp_path)
    assert opened["additionalDirectories"] == ["/tmp"]
    assert [each["name"] for each in opened["mcpServers"]] == ["a", "b"]
    assert opened["systemPrompt"]["mode"] == "append"
    assert opened["_meta"] == meta
    assert [each["type"] for each in prompt["prompt"]] == ["text", "image"]


# --- an existing session --------------------------------------------------------------------------


async def resumed(hello: Initialized, *replay: object) -> tuple[Played, list[str]]:
    """Run on a stored session, in another manager's process; return the methods of the calls."""
    called: list[str] = []

    async def script(it: Talk) -> None:
        it.says(hello)
        while True:
            call = await call_of(it)
            called.append(call.method)
            match call.method:
                case "session/new":
                    it.says(OPENED)
                case "session/load" | "session/resume":
                    it.says(*replay)  # type: ignore[arg-type]
                    it.says(SessionOpened(method=call.method, modes=MODES))
                case "session/prompt":
                    it.says(chunk("s1", "now"), ended())
                case _:
                    it.says(Acknowledged(method=call.method))

    async with manager_of(script) as (manager, sdk):
        session = await manager.open_session("acp")
        async with session.start("hi", options={"command": ["x"]}) as run:
            await run.result()
        called.clear()
        # Another command is another process, which does not have the session open.
        run = await session.submit("again", options={"command": ["y"]})
        events = [event async for event in run]
        played = Played(await run.result(), events)
        assert sdk.conversations[0].is_closed
    return played, called


async def test_a_session_is_resumed_rather_than_loaded() -> None:
    played, called = await resumed(HELLO)
    assert played.result.text == "now"
    assert called == ["session/resume", "session/prompt"]


async def test_the_replay_of_a_loaded_session_is_not_part_of_the_run() -> None:
    hello = replace(HELLO, capabilities=replace(ALL, resume=False))
    played, called = await resumed(hello, chunk("s1", "old"))
    assert called == ["session/load", "session/prompt"]
    assert [each.delta for each in played.of_type("message_streamed")] == ["now"]


async def test_an_agent_that_cannot_continue_a_session_is_refused() -> None:
    hello = replace(HELLO, capabilities=replace(ALL, resume=False, load=False))
    played, called = await resumed(hello)
    assert called == []
    assert played.failure[0] == FailureKind.CAPABILITY_MISSING
    assert played.failure[1].startswith("resume: ")


async def two_runs(second: dict[str, Any]) -> list[str]:
    """Run twice in one session, the second time with these wishes; return the second's calls."""
    called: list[str] = []

    async def script(it: Talk) -> None:
        it.says(HELLO)
        while True:
            call = await call_of(it)
            called.append(call.method)
            match call.method:
                case "session/new" | "session/resume":
                    it.says(SessionOpened(method=call.method, session_id="s1", modes=MODES))
                case "session/prompt":
                    it.says(chunk("s1", "ok"), ended())
                case _:
                    it.says(Acknowledged(method=call.method))

    async with manager_of(script) as (manager, sdk):
        session = await manager.open_session("acp")
        for wishes in ({}, second):
            called.clear()
            async with session.start("hi", options={"command": ["x"]}, **wishes) as run:
                assert (await run.result()).status == "completed"
        assert sdk.conversations[0].is_kept
    return called


async def test_a_session_that_is_still_open_is_continued_at_once() -> None:
    assert await two_runs({}) == ["session/prompt"]


async def test_a_mode_that_an_earlier_run_has_set_does_not_stay_in_force() -> None:
    modes: list[str] = []

    async def script(it: Talk) -> None:
        it.says(HELLO)
        while (call := await call_of(it)).method != "session/prompt":
            if call.method == "session/new":
                it.says(OPENED)
                continue
            mode = str(call.params["modeId"])
            modes.append(mode)
            news = update("s1", ModeUpdate(current_mode_id=mode))
            it.says(news, Acknowledged(method="session/set_mode"))
        it.says(chunk("s1", "ok"), ended())

    async with manager_of(script) as (manager, _):
        session = await manager.open_session("acp")
        for options in ({"mode": "plan"}, {}):
            given: dict[str, Json] = {"command": ["x"], **options}
            async with session.start("hi", options=given) as run:
                assert (await run.result()).status == "completed"
    assert modes == ["plan", "default"]


async def test_the_mode_of_a_resumed_session_is_set_though_it_seems_to_be_in_force() -> None:
    """Kimi Code reports its default mode, whatever the mode is, and refuses the one in force."""
    modes: list[str] = []
    real = "default"

    async def script(it: Talk) -> None:
        nonlocal real
        it.says(HELLO)
        while True:
            call = await call_of(it)
            match call.method:
                case "session/new" | "session/resume":
                    opened = SessionOpened(method=call.method, session_id="s1", modes=MODES)
                    it.says(opened)
                case "session/set_mode":
                    mode = str(call.params["modeId"])
                    modes.append(mode)
                    if mode == real == "plan":
                        it.says(AcpRefusal(method=call.method, code=-32603, message="Already"))
                        continue
                    real = mode
                    news = update("s1", ModeUpdate(current_mode_id=mode))
                    it.says(news, Acknowledged(method=call.method))
                case _:
                    it.says(chunk("s1", "ok"), ended())

    async with manager_of(script) as (manager, _):
        session = await manager.open_session("acp:kimi-code")
        for command, mode in (("x", "plan"), ("y", "plan"), ("z", "default")):
            mode_ = PermissionMode(mode)
            options: dict[str, Json] = {"command": [command]}  # a process of its own
            async with session.start("hi", options=options, permission_mode=mode_) as run:
                assert (await run.result()).status == "completed"
            assert real == mode
    assert modes == ["plan", "default", "plan", "default", "default"]


async def test_a_session_that_is_open_with_other_terms_is_opened_again() -> None:
    called = await two_runs({"directories": ["/tmp"]})
    assert called == ["session/close", "session/resume", "session/prompt"]


async def forked(*, can_fork: bool) -> tuple[Played, list[str]]:
    """Fork a session, whose copy the agent replays after its answer."""
    called: list[str] = []

    async def script(it: Talk) -> None:
        it.says(replace(HELLO, capabilities=replace(ALL, fork=can_fork)))
        while True:
            call = await call_of(it)
            called.append(call.method)
            match call.method:
                case "session/new":
                    it.says(OPENED)
                case "session/fork":
                    copy = SessionOpened(method=call.method, session_id="s2", modes=MODES)
                    it.says(copy, chunk("s2", "old"))
                case _:
                    it.says(chunk(session_of(call), "now"), ended())

    async with manager_of(script) as (manager, _):
        session = await manager.open_session("acp")
        async with session.start("hi", options={"command": ["x"]}) as run:
            await run.result()
        called.clear()
        run = await session.submit("again", options={"command": ["x"], "fork": True})
        events = [event async for event in run]
        return Played(await run.result(), events), called


async def test_a_session_is_copied_and_its_replay_is_not_part_of_the_run() -> None:
    played, called = await forked(can_fork=True)
    assert called == ["session/fork", "session/prompt"]
    assert played.result.provider_session_id == "s2"
    assert played.result.text == "now"


async def test_an_agent_that_cannot_copy_a_session_is_refused() -> None:
    played, called = await forked(can_fork=False)
    assert called == []
    assert played.failure[1].startswith("options.fork: ")


async def test_a_first_run_has_nothing_to_copy() -> None:
    played = await play(agent_of_frames, options={"fork": True})
    assert played.failure[1].startswith("options.fork: the session has nothing to copy yet")


# --- settings -------------------------------------------------------------------------------------


async def test_model_effort_and_other_options_are_set_before_the_prompt() -> None:
    options = (
        choice("m", "model", "small", "small", "big"),
        choice("e", "thought_level", "low", "low", "high"),
        choice("web", None, False),
    )
    played = await play(
        with_options(*options),
        model="big",
        effort="high",
        mode="full_auto",
        options={"config": {"web": True}},
    )
    assert played.result.status == "completed"
    assert played.of_type("run_started")[0].model == "big"


async def test_of_several_options_that_concern_the_model_its_own_is_set() -> None:
    options = (
        choice("provider", "model", "here", "here", "there"),
        choice("model", "model", "small", "small", "big"),
    )
    played = await play(with_options(*options), model="big")
    assert played.result.status == "completed"
    assert played.of_type("run_started")[0].model == "big"


async def test_options_that_have_their_values_are_not_set() -> None:
    played = await play(says(HELLO, replace(OPENED, options=(choice("w", None, True),))))
    assert played.result.status == "completed"


@pytest.mark.parametrize(
    ("wishes", "kind", "message"),
    [
        ({"model": "huge"}, "model_not_found", "model: the agent has no value 'huge'; it has: big"),
        ({"options": {"config": {"x": True}}}, "config_invalid", "options.config: unknown opt"),
        ({"options": {"config": {"m": True}}}, "config_invalid", "options.config.m: the agent has"),
        (
            {"options": {"config": {"web": "on"}}, "mode": "full_auto"},
            "config_invalid",
            "options.config.web: the agent",
        ),
        (
            {"options": {"config": {"web": True}}},
            "permission_refused",
            "options.config.web: it may allow more than permission_mode 'default'; leave it out",
        ),
    ],
)
async def test_an_unknown_value_is_refused_with_the_known_ones(
    wishes: dict[str, Any], kind: str, message: str
) -> None:
    script = with_options(choice("m", "model", "big", "big"), choice("web", None, False))
    failure = (await play(script, **wishes)).failure
    assert failure[0] == kind
    assert failure[1].startswith(message)


async def test_an_option_that_does_not_take_its_value_fails_the_run() -> None:
    script = with_options(choice("web", None, False), answers=False)
    failure = (await play(script, options={"config": {"web": True}}, mode="full_auto")).failure
    assert failure[1] == "options.config.web: True was set, but False is in force"


async def test_a_refused_option_fails_the_run() -> None:
    opened = replace(OPENED, options=(choice("web", None, False),))
    refusal = AcpRefusal(method="session/set_config_option", code=-32603, message="not now")
    played = await play(
        says(HELLO, opened, refusal), options={"config": {"web": True}}, mode="full_auto"
    )
    assert "not now" in played.failure[1]


MODELS = SessionModes(current="a", available=(SessionMode(id="a"), SessionMode(id="b")))


async def test_an_agent_without_options_takes_its_model_by_a_call_of_its_own() -> None:
    opened = replace(OPENED, models=MODELS)
    script = says(HELLO, opened, Acknowledged(method="session/set_model"))
    assert (await play(script, model="b")).result.status == "completed"
    assert (await play(says(HELLO, opened), model="a")).result.status == "completed"
    refused = (await play(says(HELLO, opened), model="c")).failure
    assert refused[0] == FailureKind.MODEL_NOT_FOUND


# --- modes ----------------------------------------------------------------------------------------

MODE = choice("mode", "mode", "auto", "auto", "approve")
OF_GOOSE = SessionModes(
    current="auto", available=(SessionMode(id="auto"), SessionMode(id="approve"))
)


async def test_the_mode_is_set_by_its_option_and_read_back() -> None:
    played = await play(with_options(MODE), provider="acp:goose")
    assert played.of_type("run_started")[0].permission.effective == "approve"
    assert played.of_type("run_started")[0].permission.fidelity == Fidelity.EXACT


async def test_a_mode_that_is_not_in_force_afterwards_prevents_the_prompt() -> None:
    kind, message = (await play(with_options(MODE, answers=False), provider="acp:goose")).failure
    assert kind == FailureKind.PERMISSION_REFUSED
    assert message == "permission mode default: 'approve' was set, but 'auto' is in force"


async def test_a_mode_that_the_agent_lacks_prevents_the_prompt() -> None:
    kind, message = (await play(says(HELLO, OPENED), provider="acp:goose")).failure
    assert kind == FailureKind.PERMISSION_REFUSED
    assert "no mode 'approve'; its modes: default, plan" in message


async def test_a_mode_that_is_refused_prevents_the_prompt() -> None:
    refusal = AcpRefusal(method="session/set_mode", code=-32603, message="unknown")
    script = says(HELLO, replace(OPENED, modes=OF_GOOSE), refusal)
    assert (await play(script, provider="acp:goose")).failure[0] == FailureKind.PERMISSION_REFUSED


async def test_a_mode_that_the_agent_does_not_report_is_marked() -> None:
    script = says(HELLO, replace(OPENED, modes=OF_GOOSE), Acknowledged(method="session/set_mode"))
    played = await play(script, provider="acp:goose")
    started = played.of_type("run_started")[0]
    assert started.permission.effective == "approve (not confirmed)"


async def test_plan_mode_is_refused_if_the_agent_does_not_report_it() -> None:
    script = says(HELLO, replace(OPENED, modes=OF_GOOSE), Acknowledged(method="session/set_mode"))
    kind, message = (await play(script, mode="plan", provider="acp:goose")).failure
    assert kind == FailureKind.PERMISSION_REFUSED
    assert "does not say whether the mode 'approve' is in force" in message


async def test_a_mode_update_confirms_the_mode() -> None:
    async def script(it: Talk) -> None:
        it.says(HELLO)
        await it.heard()
        it.says(replace(OPENED, modes=OF_GOOSE))
        await it.heard()
        it.says(
            update("s1", ModeUpdate(current_mode_id="approve")),
            Acknowledged(method="session/set_mode"),
        )
        await it.heard()
        it.says(chunk("s1", "ok"), ended())

    played = await play(script, mode="plan", provider="acp:goose")
    assert played.result.status == "completed"
    assert played.of_type("run_started")[0].permission.effective == "approve"


async def test_a_mode_of_the_agents_own_replaces_the_mapped_one() -> None:
    script = says(HELLO, OPENED, Acknowledged(method="session/set_mode"))
    played = await play(script, options={"mode": "plan"})
    assert played.of_type("run_started")[0].permission.effective == "plan (not confirmed)"


@pytest.mark.parametrize(
    ("mode", "options", "fidelity"),
    [
        ("default", {}, "unverified"),
        ("accept_edits", {}, "unverified"),
        ("full_auto", {}, "emulated"),
        ("default", {"mode": "plan"}, "unverified"),
        ("accept_edits", {"mode": "plan"}, "unverified"),
        ("full_auto", {"mode": "plan"}, "emulated"),
    ],
)
async def test_of_an_unknown_agent_only_the_modes_without_questions_are_known(
    mode: str, options: dict[str, Any], fidelity: str
) -> None:
    answers = [Acknowledged(method="session/set_mode")] if options else []
    played = await play(says(HELLO, OPENED, *answers), mode=mode, options=options)
    assert played.of_type("run_started")[0].permission.fidelity == fidelity


async def test_the_opening_agent_answers_the_conformance_script() -> None:
    async def script(it: Talk) -> None:
        call = await opening(it, modes=None)
        it.says(chunk(session_of(call), "ok"), ended())

    assert (await play(script)).result.text == "ok"
