"""A run in plan mode changes nothing, whatever rules allow."""

from __future__ import annotations

import pytest
from trio.testing import MockClock

from sessionmgr.manager import SessionHandle
from sessionmgr.model import FailureKind, Json, RunResult, RunStatus
from sessionmgr.testing.mock_sdk import MockSdk
from sessionmgr_adapters.claude import ClaudeOptions, ClaudeTool
from sessionmgr_adapters.claude.frames import (
    ControlReplyBody,
    ControlReplyFrame,
    HostRequest,
    HostRequestBody,
)
from sessionmgr_adapters.claude.functions import PLAN_MODE_HOOK, ClaudeFunctions
from sessionmgr_adapters.claude.outgoing import ClaudeUserMessage, ControlRequest, ControlResponse
from sessionmgr_adapters.claude.plan_mode import plan_verdict
from tests.adapters.claude.mock_agent import HELLO, Talk, idle, init, result, running, session_of
from tests.adapters.claude.mocked_manager import Mock, open_claude_manager
from tests.adapters.claude.run_contexts import add, spec

LOOK = ClaudeTool("look", "", add, reads_only=True)
FUNCTIONS = ClaudeFunctions((LOOK, ClaudeTool("add", "", add)), plans=True)


BELOW: dict[str, Json] = {"agent_id": "a1"}
CALLS: tuple[tuple[str, dict[str, Json]], ...] = (
    ("plan", {}),
    ("plan", BELOW),
    ("acceptEdits", BELOW),
)


async def planned(session: SessionHandle, **options: object) -> RunResult:
    run = await session.submit(
        "hi",
        permission_mode="plan",
        options=ClaudeOptions(**options),  # type: ignore[arg-type]
    )
    return await run.result()


class PlanSettings:
    """Claude Code with settings of the user, which asks about a command once its rules say so."""

    def __init__(self, effective: Json, refuses: str = "", version: str = "2.1.327") -> None:
        self.effective = effective
        self.version = version
        self.refuses = refuses
        self.applied: list[Json] = []
        self.verdicts: list[Json] = []
        self.requests: list[str] = []

    async def __call__(self, it: Talk) -> None:
        while not isinstance(heard := await it.heard(), ClaudeUserMessage):
            assert isinstance(heard, ControlRequest)
            self.requests.append(heard.subtype)
            known: dict[str, Json] = {"claude_code_version": self.version}
            answer: Json = {**HELLO, **known, "current_permission_mode": "plan"}
            if heard.subtype == "get_settings":
                answer = {"effective": self.effective}
            if heard.subtype == "apply_flag_settings":
                self.applied.append(heard.fields["settings"])
            outcome = "error" if heard.subtype == self.refuses else "success"
            reply = ControlReplyBody(
                subtype=outcome, request_id=heard.id, response=answer, error="no"
            )
            it.says(ControlReplyFrame(response=reply))
        it.says(running(), init(session_of(it), "plan"))
        for number, (mode, below) in enumerate(CALLS):
            event: Json = {"tool_name": "Bash", "permission_mode": mode, **below}
            ask = HostRequestBody(subtype="hook_callback", callback_id=PLAN_MODE_HOOK, input=event)
            it.says(HostRequest(request_id=f"h{number}", request=ask))
            answered = await it.heard()
            assert isinstance(answered, ControlResponse)
            self.verdicts.append(answered.response)
        it.says(result(heard.uuid), idle())


async def test_what_rules_allow_is_asked_about_but_for_looking(autojump_clock: MockClock) -> None:
    rules: Json = ["Bash(touch *)", "Read(~/notes/**)", "WebFetch(domain:a.org)", "Skill(x)"]
    settings = PlanSettings({"permissions": {"allow": rules}, "hooks": {"Stop": [{}]}})
    async with open_claude_manager(MockSdk(settings)) as session:
        assert (await planned(session)).status == "completed"
    assert settings.applied == [
        {
            "useAutoModeDuringPlan": False,
            "permissions": {
                "ask": ["Write", "Edit", "NotebookEdit", "mcp__*", "Bash(touch *)", "Skill(x)"]
            },
            "sandbox": {"autoAllowBashIfSandboxed": False},
        }
    ]
    # Rules alone do not make a sub-agent with its own mode ask.
    assert [each != {} for each in settings.verdicts] == [False, False, True]


async def test_hooks_of_sub_agents_allow_nothing_in_older_ones_either(
    autojump_clock: MockClock,
) -> None:
    settings = PlanSettings({}, version="2.1.326")
    async with open_claude_manager(MockSdk(settings)) as session:
        assert (await planned(session)).status == "completed"
    assert [each != {} for each in settings.verdicts] == [False, True, True]


@pytest.mark.parametrize(
    "effective",
    [
        {"hooks": {"PreToolUse": [{"matcher": "Bash"}]}},
        {"hooks": {"PermissionRequest": [{"matcher": ""}]}},
        {"enabledPlugins": {"a": False, "b": True}},
        None,
    ],
)
async def test_where_hooks_of_others_may_allow_it_is_denied_by_ours(
    autojump_clock: MockClock, effective: Json
) -> None:
    settings = PlanSettings(effective)
    async with open_claude_manager(MockSdk(settings)) as session:
        assert (await planned(session)).status == "completed"
    assert "deny" in str(settings.verdicts[0])


@pytest.mark.parametrize("what", ["get_settings", "apply_flag_settings"])
async def test_one_that_cannot_be_kept_to_it_is_not_asked(
    autojump_clock: MockClock, what: str
) -> None:
    sdk: Mock = MockSdk(PlanSettings({}, refuses=what))
    async with open_claude_manager(sdk) as session:
        failure = (await planned(session)).failure
    assert failure is not None
    assert failure.kind is FailureKind.PERMISSION_REFUSED
    assert not [
        each for each in sdk.conversations[0].heard_so_far if isinstance(each, ClaudeUserMessage)
    ]


@pytest.mark.parametrize(
    ("name", "mode", "denied", "strictly"),
    [
        ("Read", "plan", False, False),
        ("Read", "bypassPermissions", False, False),
        ("Agent", "plan", False, False),
        ("Bash", "plan", False, True),
        ("Write", "plan", False, True),
        ("mcp__theirs__add", "plan", False, True),
        ("Bash", "default", True, True),
        ("EnterWorktree", "plan", True, True),
        ("Unheard", "plan", True, True),
        ("mcp__sessionmgr__look", "default", False, False),
        ("mcp__sessionmgr__add", "plan", False, True),
    ],
)
def test_only_what_is_asked_about_or_harmless_goes_on(
    name: str, mode: str, denied: bool, strictly: bool
) -> None:
    event: Json = {"tool_name": name, "permission_mode": mode}
    assert bool(plan_verdict(event, FUNCTIONS, denies=False)) is denied
    assert bool(plan_verdict(event, FUNCTIONS, denies=True)) is strictly
    assert plan_verdict({}, FUNCTIONS, denies=False) != {}


async def test_rules_of_the_callers_are_refused_in_it(autojump_clock: MockClock) -> None:
    settings = PlanSettings({})
    async with open_claude_manager(MockSdk(settings)) as session:
        failure = (await planned(session, allow_rules=("Bash(touch *)",))).failure
        assert failure is not None
        assert (failure.kind, "allow_rules" in failure.message) == (
            FailureKind.CONFIG_INVALID,
            True,
        )
    assert settings.applied == []


async def test_one_that_is_kept_is_kept_to_it_again_in_each_run(
    autojump_clock: MockClock,
) -> None:
    settings = PlanSettings({"permissions": {}})
    sdk: Mock = MockSdk(settings)
    async with open_claude_manager(sdk) as session:
        assert (await planned(session)).status is RunStatus.COMPLETED
        settings.requests.clear()
        run = await session.submit("again", permission_mode="plan", model="haiku")
        assert (await run.result()).status is RunStatus.COMPLETED
        assert settings.requests == ["get_settings", "apply_flag_settings", "set_model"]
        settings.refuses = "get_settings"
        failure = (await planned(session)).failure
        assert failure is not None
        assert failure.kind is FailureKind.PERMISSION_REFUSED
        assert len(sdk.connections) == 1


def test_only_those_that_plan_are_told_of_the_hook() -> None:
    assert "hooks" not in spec().functions.introduction
    assert PLAN_MODE_HOOK in str(FUNCTIONS.introduction["hooks"])
