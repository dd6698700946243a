"""Requests for permission and questions of an agent over ACP."""

from __future__ import annotations

from typing import Any

import pytest

from sessionmgr.adapter import Allow, ApprovalRequest, Approve, Decision, Deny
from sessionmgr.model import Json
from sessionmgr_adapters.acp.frames import (
    AgentRequest,
    ElicitationRequest,
    PermissionOption,
    PermissionRequest,
)
from sessionmgr_adapters.acp.permissions import chosen_option, permission_question
from sessionmgr_adapters.acp.sdk import AcpReply
from sessionmgr_adapters.acp.tool_calls import AcpToolCall
from sessionmgr_adapters.acp.updates import ToolCallNews, ToolLocation
from tests.adapters.acp.mock_agent import (
    OPTIONS,
    Talk,
    chosen,
    chunk,
    ended,
    opening,
    permission,
    session_of,
)
from tests.adapters.acp.mocked_manager import Played, play

COLOURS = (
    PermissionOption(option_id="1", name="Red", kind="allow_once"),
    PermissionOption(option_id="2", name="Blue", kind="allow_once"),
    PermissionOption(option_id="3", name="Skip", kind="reject_once"),
)
ALWAYS = (
    PermissionOption(option_id="a", name="Always", kind="allow_always"),
    PermissionOption(option_id="n", name="Never", kind="reject_always"),
)
CALL = ToolCallNews(
    tool_call_id="c1",
    title="Run saw",
    name="shell",
    kind="execute",
    raw_input={"command": "saw"},
)


def request(*options: PermissionOption) -> PermissionRequest:
    return PermissionRequest(session_id="s", name="r", options=options)


# --- which option ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "decision", "option"),
    [
        (OPTIONS, Allow(), "yes"),
        (OPTIONS, Deny(), "no"),
        (ALWAYS, Allow(), None),
        (ALWAYS, Deny(), None),
        (COLOURS, Allow(), None),
        (COLOURS, Deny(), "3"),
        (COLOURS, Allow(tool_input="2"), "2"),
        (COLOURS, Allow(tool_input="Red"), "1"),
        (COLOURS, Allow(tool_input={"option": "Blue"}), "2"),
        (COLOURS, Allow(tool_input={"answers": {"Which colour?": "Red"}}), "1"),
        (COLOURS, Allow(tool_input={"answers": {"a": "Red", "b": "Blue"}}), None),
        (COLOURS, Allow(tool_input="Green"), None),
    ],
)
def test_the_option_is_chosen_by_its_kind(
    options: tuple[PermissionOption, ...], decision: Decision, option: str | None
) -> None:
    assert chosen_option(request(*options), decision) == option


# --- what is asked --------------------------------------------------------------------------------


def asked(
    kind: str, *paths: str, content: list[Json] | None = None, tool_input: Json = None
) -> ApprovalRequest:
    locations = tuple(ToolLocation(path=each) for each in paths)
    news = ToolCallNews(tool_call_id="c", title="T", kind=kind, locations=locations)
    call = AcpToolCall(id="c", title="T", kind=kind, locations=locations, content=content or [])
    call.input = tool_input
    made = PermissionRequest(session_id="s", tool_call=news, options=OPTIONS)
    return permission_question(made, call, ("/work",))


@pytest.mark.parametrize(
    ("kind", "effect"),
    [
        ("read", "read"),
        ("search", "read"),
        ("edit", "edit"),
        ("delete", "other"),
        ("move", "other"),
        ("execute", "command"),
        ("fetch", "network"),
        ("think", "other"),
        ("switch_mode", "other"),
    ],
)
def test_the_effect_is_that_of_the_kind(kind: str, effect: str) -> None:
    assert asked(kind, "/work/a").effect == effect


def test_the_paths_are_those_of_locations_and_diffs_once() -> None:
    diff: Json = {"type": "diff", "path": "/work/b", "newText": ""}
    question = asked("edit", "/work/a", "/work/a", content=[diff, {"type": "content"}])
    assert question.paths == ("/work/a", "/work/b")


def asked_by(
    name: str, kind: str = "other", *, shown: bool = True, **given: Json
) -> ApprovalRequest:
    """Return the question about a tool that is known to write a file, with an input."""
    diff: Json = {"type": "diff", "path": "/work/a", "newText": ""}
    news = ToolCallNews(tool_call_id="c", title=name, content=(diff,) if shown else ())
    call = AcpToolCall(id="c", name=name, title=name, kind=kind, input={**given})
    made = PermissionRequest(session_id="s", tool_call=news, options=OPTIONS)
    return permission_question(made, call, ("/work",), {"Write"})


def test_what_only_the_request_shows_counts() -> None:
    question = asked_by("Replace", "edit")
    assert (question.effect, question.paths) == ("edit", ("/work/a",))


def test_a_known_tool_that_shows_a_change_makes_an_edit() -> None:
    question = asked_by("Write", path="/work/a")
    assert (question.effect, question.paths) == ("edit", ("/work/a",))
    question = asked_by("Write", path="/work/b")
    assert (question.effect, question.paths) == ("edit", ("/work/a", "/work/b"))
    question = asked_by("Write", "edit", shown=False, path="/work/b")
    assert (question.effect, question.paths) == ("edit", ("/work/b",))


def test_without_a_sign_of_an_edit_it_is_none() -> None:
    assert asked_by("Write", shown=False, path="/work/a").effect == "other"
    assert asked_by("Run", path="/work/a").effect == "other"


def test_without_locations_the_paths_are_those_of_the_input() -> None:
    shown: Json = {"file_path": "/work/a", "content": "x"}
    question = asked("edit", tool_input=shown)
    assert (question.effect, question.paths) == ("edit", ("/work/a",))


@pytest.mark.parametrize("path", ["/work/.git/hooks/pre-commit", "relative.txt"])
def test_an_edit_with_further_effects_or_an_unclear_place_is_no_plain_edit(path: str) -> None:
    assert asked("edit", path).effect == "other"


def test_a_request_without_a_tool_call_is_about_its_command_or_its_subject() -> None:
    made = PermissionRequest(session_id="s", title="Run it?", command="saw", options=OPTIONS)
    question = permission_question(made, None, ("/work",))
    assert (question.effect, question.tool_input) == ("command", {"command": "saw"})
    made = PermissionRequest(session_id="s", subject={"type": "new"}, options=OPTIONS)
    question = permission_question(made, None, ("/work",))
    assert (question.effect, question.tool_name) == ("other", "permission")


# --- in a run -------------------------------------------------------------------------------------


async def answered(
    *requests: AgentRequest, approve: Approve | None = None, mode: str = "default"
) -> tuple[list[Any], Played]:
    """Return the answers to the requests, one after the other."""
    answers: list[Any] = []

    async def script(it: Talk) -> None:
        session = session_of(await opening(it))
        it.says(chunk(session, "x"))
        for each in requests:
            it.says(each)
            answers.append(await it.heard())
        it.says(ended())

    return answers, await play(script, mode=mode, approve=approve)


def deciding(decision: Decision, seen: list[ApprovalRequest] | None = None) -> Approve:
    async def approve(question: ApprovalRequest) -> Decision:
        if seen is not None:
            seen.append(question)
        return decision

    return approve


async def test_a_request_gets_the_decision_of_the_caller() -> None:
    seen: list[ApprovalRequest] = []
    answers, _ = await answered(permission("", call=CALL), approve=deciding(Allow(), seen))
    assert chosen(answers[0]) == "yes"
    assert (seen[0].tool_name, seen[0].effect) == ("shell", "command")
    assert seen[0].tool_input == {"command": "saw"}
    answers, _ = await answered(permission("", call=CALL))
    assert chosen(answers[0]) == "no"


async def test_plan_mode_denies_what_is_no_reading() -> None:
    async def script(it: Talk) -> None:
        session = session_of(await opening(it))
        for kind in ("execute", "edit", "other", "read"):
            news = ToolCallNews(tool_call_id=kind, kind=kind, title=kind)
            it.says(permission(session, kind, news))
            answers.append(chosen(await it.heard()))
        it.says(ended())

    answers: list[Json] = []
    played = await play(script, mode="plan", provider="acp:gemini", options={"home": "h"})
    assert played.result.status == "completed", played.result.failure
    assert answers == ["no", "no", "no", "yes"]


async def test_a_turn_that_the_agent_cancels_because_of_a_denial_is_no_failure() -> None:
    async def script(it: Talk) -> None:
        session = session_of(await opening(it))
        if asks:
            it.says(permission(session, call=CALL))
            await it.heard()
        it.says(ended("cancelled"))

    asks = True
    played = await play(script)
    assert (played.result.status, played.result.stop_reason) == ("completed", "cancelled")
    asks = False
    assert (await play(script)).result.status == "failed"


@pytest.mark.parametrize("mode", ["default", "full_auto"])
async def test_a_question_is_answered_by_the_caller_and_not_by_a_mode(mode: str) -> None:
    question = permission("", options=COLOURS, call=CALL)
    seen: list[ApprovalRequest] = []
    approve = deciding(Allow(tool_input="Blue"), seen)
    answers, _ = await answered(question, mode=mode, approve=approve)
    assert chosen(answers[0]) == "2"
    shown = seen[0].tool_input
    assert isinstance(shown, dict)
    assert shown["question"] == "Run saw"
    answers, played = await answered(question, mode=mode)
    assert chosen(answers[0]) == "3"
    assert [each.by for each in played.result.permission_denials] == ["default"]
    answers, played = await answered(question, mode=mode, approve=deciding(Allow()))
    assert chosen(answers[0]) == "3"
    [warning] = played.of_type("error_occurred")
    assert warning.failure.message == (
        "shell: no option of the agent is what was decided; it was denied; let approve answer with "
        "the tool_input '1' (Red) or '2' (Blue)"
    )


async def test_a_decision_with_another_input_is_denied() -> None:
    approve = deciding(Allow(tool_input={"command": "axe"}))
    answers, played = await answered(permission("", call=CALL), approve=approve)
    assert chosen(answers[0]) == "no"
    assert played.of_type("error_occurred")


# --- elicitation ----------------------------------------------------------------------------------

FORM = ElicitationRequest(name="e", mode="form", message="Your name?", requested_schema={})
URL = ElicitationRequest(name="e", mode="url", message="Log in", url="https://example.org")


@pytest.mark.parametrize(
    ("asking", "decision", "answer"),
    [
        (FORM, Allow(tool_input={"name": "Ada"}), {"action": "accept", "content": {"name": "Ada"}}),
        (FORM, Allow(), {"action": "decline"}),
        (FORM, Deny(), {"action": "decline"}),
        (URL, Allow(), {"action": "accept"}),
        (URL, Deny(), {"action": "decline"}),
    ],
)
async def test_an_elicitation_is_answered_by_the_caller(
    asking: ElicitationRequest, decision: Decision, answer: Json
) -> None:
    answers, _ = await answered(asking, approve=deciding(decision))
    assert answers == [AcpReply("e", answer)]


async def test_no_mode_answers_an_elicitation() -> None:
    answers, _ = await answered(FORM, URL, mode="full_auto")
    assert [each.result for each in answers] == [{"action": "decline"}] * 2
    named = deciding(Allow(tool_input={"name": "Ada"}))
    answers, _ = await answered(FORM, mode="full_auto", approve=named)
    assert [each.result for each in answers] == [{"action": "accept", "content": {"name": "Ada"}}]


async def test_an_unknown_request_is_refused() -> None:
    answers, _ = await answered(AgentRequest(name="x"))
    assert answers == [AcpReply("x", None, -32601, "this client does not serve the request")]


async def test_too_many_open_requests_are_refused() -> None:
    requests = 66

    async def script(it: Talk) -> None:
        session = session_of(await opening(it))
        it.says(*(permission(session, f"r{number}") for number in range(requests)))
        answers.extend([await it.heard() for _ in range(requests)])
        it.says(chunk(session, "x"), ended())

    answers: list[Any] = []
    await play(script)
    assert sorted({str(chosen(each)) for each in answers}) == ["None", "no"]
