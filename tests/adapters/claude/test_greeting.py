"""Checks before the prompt is sent."""

from __future__ import annotations

import pytest
from trio.testing import MockClock

from sessionmgr.model import FailureKind, Json, RunStatus
from sessionmgr.testing.mock_sdk import MockSdk
from sessionmgr_adapters.claude.frames import (
    ControlReplyBody,
    ControlReplyFrame,
)
from sessionmgr_adapters.claude.outgoing import ClaudeUserMessage, ControlRequest
from tests.adapters.claude.mock_agent import (
    ACCOUNT,
    HELLO,
    Talk,
    idle,
    init,
    result,
    running,
    session_of,
)
from tests.adapters.claude.mocked_manager import Mock, answer, open_claude_manager, ran, told


@pytest.mark.parametrize(
    ("hello", "options", "kind"),
    [
        (told(claude_code_version="2.1.100"), {}, FailureKind.CONFIG_INVALID),
        (told(current_permission_mode="bypassPermissions"), {}, FailureKind.PERMISSION_REFUSED),
        (told(current_permission_mode="brandNew"), {}, FailureKind.PERMISSION_REFUSED),
        (told(), {"billing": "subscription"}, FailureKind.BILLING),
        (told(account={"tokenSource": "claude.ai"}), {"billing": "api"}, FailureKind.BILLING),
        (told(account={}), {"billing": "subscription"}, FailureKind.BILLING),
    ],
)
async def test_what_is_not_as_it_should_be_is_refused_before_anything_is_asked(
    autojump_clock: MockClock, hello: Json, options: dict[str, object], kind: FailureKind
) -> None:
    async def script(it: Talk) -> None:
        heard = await it.heard()
        assert isinstance(heard, ControlRequest)
        it.says(
            ControlReplyFrame(
                response=ControlReplyBody(subtype="success", request_id=heard.id, response=hello)
            )
        )
        raise AssertionError(f"it was asked: {await it.heard()}")

    async with open_claude_manager(MockSdk(script)) as session:
        failed = await ran(session, "hi", **options)
    assert failed.failure is not None
    assert (failed.status, failed.failure.kind) == (RunStatus.FAILED, kind)


@pytest.mark.parametrize(
    ("account", "billing", "credential"),
    [
        (ACCOUNT, "api", "api_key"),
        ({"tokenSource": "CLAUDE_CODE_OAUTH_TOKEN"}, "subscription", "subscription"),
        ({"tokenSource": "ANTHROPIC_AUTH_TOKEN"}, "api", "unknown"),
        ({"apiProvider": "bedrock"}, "api", "unknown"),
    ],
)
async def test_who_pays_is_told(
    autojump_clock: MockClock, account: Json, billing: str, credential: str
) -> None:
    async def script(it: Talk) -> None:
        await answer(it, hello=told(account=account))

    async with open_claude_manager(MockSdk(script)) as session:
        run = await session.submit("hi", options={"billing": billing})
        events = [each async for each in run if each.type == "run_started"]
        assert (await run.result()).status is RunStatus.COMPLETED
    assert [getattr(each, "credential") for each in events] == [credential]  # noqa: B009


@pytest.mark.parametrize(
    ("subtype", "kind", "wishes"),
    [
        ("set_model", FailureKind.MODEL_NOT_FOUND, {"model": "none"}),
        ("set_permission_mode", FailureKind.PERMISSION_REFUSED, {}),
        ("apply_flag_settings", FailureKind.CONFIG_INVALID, {"effort": "high"}),
        ("initialize", FailureKind.CONFIG_INVALID, {}),
    ],
)
async def test_a_change_that_is_refused_ends_the_run(
    autojump_clock: MockClock, subtype: str, kind: FailureKind, wishes: dict[str, str]
) -> None:
    async def script(it: Talk) -> None:
        while isinstance(heard := await it.heard(), ControlRequest):
            refused = heard.subtype == subtype
            it.says(
                ControlReplyFrame(
                    response=ControlReplyBody(
                        subtype="error" if refused else "success",
                        request_id=heard.id,
                        response=HELLO,
                        error="no",
                        error_code="refused",
                    )
                )
            )
        assert isinstance(heard, ClaudeUserMessage)
        mode = (
            "plan" if subtype == "set_permission_mode" else "default"
        )  # the process chooses another mode
        it.says(running(), init(session_of(it), mode), result(heard.uuid), idle())

    async with open_claude_manager(MockSdk(script)) as session:
        if subtype != "initialize":
            assert (await ran(session)).status is RunStatus.COMPLETED
        run = await session.submit("hi", **wishes)  # type: ignore[arg-type]
        failure = (await run.result()).failure
    assert failure is not None
    assert (failure.kind, failure.provider_code) == (kind, "refused")


@pytest.mark.parametrize("version", ["2.1.197", "2.1.100"])
async def test_an_older_one_is_asked_for_its_version_by_another_way(version: str) -> None:
    asked: list[ClaudeUserMessage] = []

    async def script(it: Talk) -> None:
        asked.append(await answer(it, hello={"account": ACCOUNT}))

    async with open_claude_manager(MockSdk(script)) as session:
        old = await ran(session, "/compact", command=("/bin/echo", version))
        assert old.failure is not None
        assert version in old.failure.message or "slash_commands" in old.failure.message
        assert asked == []
        taken = await ran(session, "/x", command=("/bin/echo", version), slash_commands=True)
    assert (taken.status is RunStatus.COMPLETED) == (version == "2.1.197")
    assert [each.is_text for each in asked] == ([False] if version == "2.1.197" else [])


async def test_an_order_of_cancel_while_it_is_greeted_asks_nothing(
    autojump_clock: MockClock,
) -> None:
    async def script(it: Talk) -> None:
        await it.heard()
        await it.gate("greeted")
        raise AssertionError(f"it was asked: {await it.heard()}")

    sdk: Mock = MockSdk(script)
    async with open_claude_manager(sdk) as session:
        run = await session.submit("hi")
        await sdk.reached("greeted")
        run.cancel()
        assert (await run.result()).status is RunStatus.CANCELLED
        assert sdk.connections[0].is_closed  # its answers would be unknown
