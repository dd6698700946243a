"""Permissions on a mock: no more than requested, and no reviewer but sessionmgr."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
import trio
import trio.testing

from sessionmgr.adapter import Allow, ApprovalRequest, Decision, Deny
from sessionmgr.adapter.kit.json_rpc_caller import PeerRequest, RpcCall
from sessionmgr.model import (
    ErrorOccurred,
    FailureKind,
    Json,
    PolicyViolation,
    ToolApprovalRequested,
)
from sessionmgr.testing.mock_sdk import SentAnswer
from sessionmgr_adapters.codex.approvals import (
    COMMAND,
    EDIT,
    ELICITATION,
    PERMISSIONS,
    USER,
    verdict,
)
from sessionmgr_adapters.codex.frames import ItemStartedNotice
from sessionmgr_adapters.codex.items import FileChangeItem, FileUpdate
from tests.adapters.codex.mock_agent import (
    Talk,
    greeted,
    opened,
    result,
    settled,
)
from tests.adapters.codex.mocked_manager import answered, ask, failure, play


async def test_nobody_but_us_answers_what_is_asked() -> None:
    starts: list[Json] = []

    async def another_answers(it: Talk) -> None:
        call = await greeted(it)
        starts.append(call.params["approvalsReviewer"])
        it.says(opened(call))
        update = await it.heard()
        assert isinstance(update, RpcCall)
        told = settled(RpcCall(0, "", {**update.params, "approvalsReviewer": "auto_review"}))
        it.says(result(update, {}), told)

    kind, message = failure(await play(another_answers))
    assert kind == FailureKind.PERMISSION_REFUSED
    assert "reviewer: 'auto_review'" in message
    assert starts == ["user"]


async def test_what_was_told_before_says_nothing_of_what_is_in_force() -> None:
    async def early(it: Talk) -> None:
        call = await greeted(it)
        answer = opened(call)
        thread = msgspec.json.decode(answer.result)["thread"]["id"]
        told: dict[str, Json] = {"threadId": thread, "approvalPolicy": "on-request"}
        it.says(answer, settled(RpcCall(0, "", {**told, "sandboxPolicy": {"type": "readOnly"}})))
        update = await it.heard()
        assert isinstance(update, RpcCall)
        wide: Json = {"type": "dangerFullAccess"}
        it.says(result(update, {}))
        await trio.testing.wait_all_tasks_blocked()
        it.says(settled(RpcCall(0, "", {**told, "sandboxPolicy": wide})))

    assert failure(await play(early))[0] == FailureKind.PERMISSION_REFUSED


async def test_an_edit_of_files_that_are_not_known_is_not_granted() -> None:
    params: dict[str, Json] = {"itemId": "unknown", "grantRoot": "."}
    answer = await ask(PeerRequest(0, EDIT, params), mode="accept_edits")
    assert isinstance(answer, SentAnswer)
    assert isinstance(answer.decision, Deny)


@pytest.mark.parametrize(
    ("method", "params", "given", "allowed"),
    [
        (COMMAND, {"command": "rm -rf .", "cwd": "/"}, {"command": "ls", "cwd": "/"}, False),
        (COMMAND, {"command": "ls", "cwd": "/"}, {"command": "ls", "cwd": "/"}, True),
        (EDIT, {}, {"changes": []}, False),
        (
            ELICITATION,
            {"_meta": {"codex_approval_kind": "mcp_tool_call", "tool_params": {"a": 1}}},
            {"a": 2},
            False,
        ),
        (ELICITATION, {"serverName": "s"}, {"name": "me"}, True),
        (PERMISSIONS, {"permissions": {"network": {"enabled": True}}}, {}, True),
    ],
)
async def test_what_was_allowed_otherwise_than_asked_is_not_done_as_asked(
    method: str, params: dict[str, Json], given: Json, allowed: bool
) -> None:
    async def approve(_: ApprovalRequest) -> Decision:
        await trio.lowlevel.checkpoint()
        return Allow(tool_input=given)

    answer, events = await answered(
        PeerRequest(0, method, {"itemId": "c", **params}), approve=approve
    )
    assert isinstance(answer, SentAnswer)
    assert isinstance(answer.decision, Allow) is allowed
    warnings = [each for each in events if isinstance(each, ErrorOccurred)]
    kinds = [(each.failure.kind, each.severity) for each in warnings]
    assert kinds == ([] if allowed else [(FailureKind.CAPABILITY_MISSING, "warning")])


def test_permissions_are_given_as_far_as_they_are_allowed() -> None:
    asked: dict[str, Json] = {"permissions": {"network": {"enabled": True}}}
    asking = PeerRequest(0, PERMISSIONS, asked)
    assert verdict(asking, Allow()) == {**asked, "scope": "turn"}
    assert verdict(asking, Allow(tool_input={})) == {"permissions": {}, "scope": "turn"}
    assert verdict(asking, Deny()) == {"permissions": {}, "scope": "turn"}


@pytest.mark.parametrize("method", [COMMAND, EDIT, PERMISSIONS, ELICITATION])
async def test_nothing_leads_out_of_a_sandbox_in_which_nobody_is_asked(method: str) -> None:
    answer, events = await answered(PeerRequest(0, method, {"itemId": "c"}), mode="full_auto")
    assert isinstance(answer, SentAnswer)
    assert isinstance(answer.decision, Deny)
    assert not any(isinstance(each, ToolApprovalRequested) for each in events)
    assert [each.rule for each in events if isinstance(each, PolicyViolation)] == [
        "permission_mode"
    ]


@pytest.mark.parametrize(
    ("method", "mode", "allowed"),
    [
        (USER, "full_auto", True),
        (COMMAND, "dangerously_skip_permissions", True),
        (COMMAND, "plan", False),
    ],
)
async def test_what_may_be_asked_in_a_mode_violates_nothing(
    method: str, mode: str, allowed: bool
) -> None:
    answer, events = await answered(PeerRequest(0, method, {"itemId": "c"}), mode=mode)
    assert isinstance(answer, SentAnswer)
    assert isinstance(answer.decision, Allow) is allowed
    assert not any(isinstance(each, PolicyViolation) for each in events)


async def test_an_edit_of_a_path_that_cannot_be_is_not_granted() -> None:
    item = FileChangeItem(id="c", changes=[FileUpdate("a\0b")], status="inProgress")
    asking = PeerRequest(0, EDIT, {"itemId": "c"})
    answer = await ask(asking, mode="accept_edits", before=ItemStartedNotice(item=item))
    assert isinstance(answer, SentAnswer)
    assert isinstance(answer.decision, Deny)


@pytest.mark.parametrize(
    ("path", "granted"),
    [
        ("src/a.py", True),
        (".gitignore", True),
        (".git/hooks/pre-commit", False),
        ("inner/.codex/rules/a.rules", False),
        ("link/hooks/pre-commit", False),
        ("../outside", False),
    ],
)
async def test_what_may_be_run_one_day_is_no_edit_that_is_granted_unasked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, granted: bool
) -> None:
    work = tmp_path / ".codex" / "worktree"
    (work / ".git").mkdir(parents=True)
    (work / "link").symlink_to(".git")
    monkeypatch.chdir(work)
    item = FileChangeItem(id="c", changes=[FileUpdate(path)], status="inProgress")
    asking = PeerRequest(0, EDIT, {"itemId": "c"})
    answer = await ask(asking, mode="accept_edits", before=ItemStartedNotice(item=item))
    assert isinstance(answer, SentAnswer)
    assert isinstance(answer.decision, Allow) is granted
