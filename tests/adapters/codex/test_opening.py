"""The steps before a turn: versions, modes, and the parameters of a thread."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from sessionmgr.adapter.kit.json_rpc_caller import RpcAnswer, RpcCall
from sessionmgr.manager import Clocks
from sessionmgr.model import (
    FailureKind,
    Json,
)
from sessionmgr_adapters.codex.frames import ServerInfo
from tests.adapters.codex.mock_agent import (
    HELLO,
    Talk,
    begin,
    end,
    greeted,
    opened,
    opening,
    refusal,
    result,
    settled,
    thread_of,
)
from tests.adapters.codex.mocked_manager import failure, play
from tests.adapters.codex.test_start_retry import BEHIND, MIGRATION


async def test_a_version_that_is_too_old_is_refused_by_name() -> None:
    async def old(it: Talk) -> None:
        it.says(ServerInfo(user_agent="sessionmgr/0.144.4 (x)"))

    kind, message = failure(await play(old))
    assert kind == FailureKind.CONFIG_INVALID
    assert message == "Codex 0.144.4 is too old; install 0.163.0 or newer"


async def test_a_sandbox_that_is_wider_than_asked_is_not_used() -> None:
    heard: list[str] = []

    async def wide(it: Talk) -> None:
        call = await greeted(it)
        heard.append(call.method)
        answer = opened(call)
        wider = answer.result.replace(b'"readOnly"', b'"dangerFullAccess"')
        it.says(RpcAnswer(answer.call, answer.method, wider))
        update = await it.heard()
        assert isinstance(update, RpcCall)
        heard.append(update.method)
        params: dict[str, Json] = {**update.params, "sandboxPolicy": {"type": "dangerFullAccess"}}
        it.says(result(update, {}), settled(RpcCall(0, "", params)))

    result_, events = await play(wide, mode="plan")
    assert failure((result_, events))[0] == FailureKind.PERMISSION_REFUSED
    assert "policy_violation" in [each.type for each in events]
    assert heard == ["thread/start", "thread/settings/update"]


@pytest.mark.parametrize("field", ["networkAccess", "writableRoots", "approvalPolicy"])
async def test_settings_that_allow_more_are_not_used(field: str) -> None:
    async def wide(it: Talk) -> None:
        it.says(opened(await greeted(it)))
        call = await it.heard()
        assert isinstance(call, RpcCall)
        params = dict(call.params)
        sandbox = params["sandboxPolicy"]
        assert isinstance(sandbox, dict)
        wider: dict[str, Json] = {"networkAccess": True, "writableRoots": ["/"]}
        if field in wider:
            params["sandboxPolicy"] = {**sandbox, field: wider[field]}
        else:
            params["approvalPolicy"] = "untrusted"
        it.says(result(call, {}), settled(RpcCall(0, "", params)))

    assert failure(await play(wide))[0] == FailureKind.PERMISSION_REFUSED


async def test_what_a_mode_is_to_codex_is_sent_for_each_thread() -> None:
    seen: list[tuple[Json, Json, Json]] = []

    async def look(it: Talk) -> None:
        call = await opening(it)
        before = [each for each in it.heard_so_far if isinstance(each, RpcCall)]
        start = before[1].params
        updates = [each for each in before if each.method == "thread/settings/update"]
        sandbox = updates[0].params["sandboxPolicy"] if updates else {"type": "readOnly"}
        assert isinstance(sandbox, dict)
        seen.append((start["approvalPolicy"], start["sandbox"], sandbox["type"]))
        begin(it, call)
        end(it, thread_of(call))

    for mode in ("default", "accept_edits", "plan", "full_auto", "dangerously_skip_permissions"):
        assert (await play(look, mode=mode))[0].status == "completed"
    # Codex marks a directory as trusted if a thread may write there when it is opened.
    assert seen == [
        ("on-request", "read-only", "workspaceWrite"),
        ("on-request", "read-only", "workspaceWrite"),
        ("never", "read-only", "readOnly"),
        ("never", "read-only", "workspaceWrite"),
        ("never", "read-only", "dangerFullAccess"),
    ]


async def test_what_the_run_wants_is_said() -> None:
    calls: list[RpcCall] = []

    async def look(it: Talk) -> None:
        calls.append(await opening(it))
        calls.extend(each for each in it.heard_so_far if isinstance(each, RpcCall))
        begin(it, calls[0])
        end(it, thread_of(calls[0]))

    schema: dict[str, Json] = {"type": "object"}
    done, _ = await play(
        look,
        system_prompt="Be short.",
        model="gpt-x",
        effort="high",
        schema=schema,
        options={"config": {"web_search": "disabled"}, "mcp_servers": {"a": {"command": "b"}}},
    )
    assert done.failure is not None
    assert done.failure.kind == FailureKind.STRUCTURED_INVALID  # the model sent nothing
    turn, start = calls[0].params, calls[2].params
    assert (turn["effort"], turn["outputSchema"]) == ("high", schema)
    assert (start["model"], start["developerInstructions"]) == ("gpt-x", "Be short.")
    assert start["config"] == {
        "features": {"instant_interrupt": False},
        "shell_environment_policy": {"ignore_default_excludes": False},
        "mcp_servers": {"a": {"command": "b"}},
        "web_search": "disabled",
    }


async def test_the_keys_of_models_are_kept_from_commands() -> None:
    configs: list[Json] = []

    async def look(it: Talk) -> None:
        config: Json = {
            "model_providers": {
                "p": {"env_key": "THE_WORD", "env_http_headers": {"x-gate": "A_HEADER"}}
            },
            "mcp_servers": {"s": {"url": "http://x", "bearer_token_env_var": "A_TOKEN"}},
            "shell_environment_policy": {"exclude": ["MINE"]},
        }
        call = await greeted(it, config)
        configs.append(call.params["config"])
        it.says(refusal(call, "enough"))

    await play(look)
    words = ["THE_WORD", "A_HEADER", "A_TOKEN"]
    assert configs[0] == {
        "features": {"instant_interrupt": False},
        "shell_environment_policy": {
            "ignore_default_excludes": False,
            "exclude": ["MINE", *words],
        },
    }


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("no rollout found for thread id x", FailureKind.SESSION_NOT_FOUND),
        ("Invalid request: unknown variant", FailureKind.CONFIG_INVALID),
    ],
)
async def test_a_thread_that_is_not_opened_says_why(message: str, kind: FailureKind) -> None:
    async def refuse(it: Talk) -> None:
        call = await greeted(it)
        it.says(refusal(call, message))

    assert failure(await play(refuse))[0] == kind


@pytest.mark.parametrize(
    ("message", "code"),
    [("Server overloaded", -32001), (MIGRATION, -32603), (BEHIND, -32603)],
    ids=["busy", "half made", "behind"],
)
async def test_who_cannot_do_it_for_the_moment_is_asked_again(
    autojump_clock: MockClock, message: str, code: int
) -> None:
    times: list[float] = []

    async def busy(it: Talk) -> None:
        it.says(HELLO)
        for _ in range(2):
            call = await it.heard()
            assert isinstance(call, RpcCall)
            times.append(trio.current_time())
            it.says(refusal(call, message, code))
        call = await it.heard()
        assert isinstance(call, RpcCall)
        it.says(refusal(call, "no"))

    assert failure(await play(busy))[0] == FailureKind.CONFIG_INVALID
    assert times[1] - times[0] >= 0.1


async def test_a_call_that_is_not_answered_ends_the_run(autojump_clock: MockClock) -> None:
    async def deaf(it: Talk) -> None:
        it.says(HELLO)
        await trio.sleep_forever()

    kind, message = failure(await play(deaf, clocks=Clocks(start=0, idle=0)))
    assert "no answer within 60 seconds" in message
    assert kind == FailureKind.PROVIDER_ERROR
