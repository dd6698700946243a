"""Delivery of messages to Claude Code."""

from __future__ import annotations

from pathlib import Path

import pytest

from sessionmgr.adapter import Allow, Deny
from sessionmgr.manager.approvals import decision_by_mode
from sessionmgr.model import PermissionMode
from sessionmgr_adapters.claude.frames import HostRequestBody
from sessionmgr_adapters.claude.message_delivery import DeliveryStates
from sessionmgr_adapters.claude.outgoing import (
    ClaudeUserMessage,
    ControlRequest,
    ControlResponse,
    encode_outgoing,
)
from sessionmgr_adapters.claude.request_handler import approval_request
from sessionmgr_adapters.claude.sdk import verdict


def test_deliveries_are_settled_by_name_or_once_they_were_taken() -> None:
    deliveries = DeliveryStates()
    seen: list[bool] = []

    def look() -> None:
        seen.append(deliveries.has_open)

    deliveries.send("prompt", alone=True)
    deliveries.send("more")
    deliveries.answer(["prompt"])
    look()
    deliveries.report("more", "queued")
    deliveries.answer(None)
    look()  # it was not started yet
    deliveries.report("more", "started")
    deliveries.answer(None)
    look()
    deliveries.report("more", "started")
    deliveries.report("unknown", "started")
    look()
    assert seen == [True, True, False, False]


def test_commands_that_the_agent_does_by_itself_are_settled_one_after_the_other() -> None:
    deliveries = DeliveryStates()
    deliveries.send("prompt", alone=True)
    deliveries.send("/one", commands=True)
    deliveries.send("words")
    deliveries.send("/two", commands=True)
    deliveries.answer(None, of_model=False)  # this answers the prompt, which was started
    deliveries.answer(None, of_model=False)
    deliveries.answer(None)  # this answers no known message
    deliveries.answer(None, of_model=False)
    deliveries.answer(None, of_model=False)
    assert deliveries.has_open
    deliveries.report("words", "started")
    deliveries.answer(None)
    assert not deliveries.has_open


def test_a_result_of_the_model_answers_no_command_that_was_not_taken() -> None:
    deliveries = DeliveryStates()
    deliveries.send("/one", commands=True)
    deliveries.answer(None)
    assert deliveries.has_open
    deliveries.answer(None, of_model=False)
    assert not deliveries.has_open


def test_decisions_are_put_in_its_words() -> None:
    assert verdict(Allow()) == {"behavior": "allow"}
    assert verdict(Allow(tool_input={"a": 1}))["updatedInput"] == {"a": 1}
    assert verdict(Deny(reason="no")) == {"behavior": "deny", "message": "no"}
    assert verdict(Deny(stop=True))["interrupt"] is True


def test_orders_are_lines_of_json() -> None:
    assert encode_outgoing(ClaudeUserMessage(content="/x", uuid="u", priority="now")) == (
        b'{"type":"user","message":{"role":"user","content":"/x"},"uuid":"u",'
        b'"priority":"now","client_composed":true}\n'
    )
    assert b"client_composed" not in encode_outgoing(
        ClaudeUserMessage(content="/x", uuid="u", is_text=False)
    )
    assert encode_outgoing(
        ControlRequest(id="1", subtype="interrupt", fields={"cancel_queued": True})
    ) == (
        b'{"type":"control_request","request_id":"1",'
        b'"request":{"subtype":"interrupt","cancel_queued":true}}\n'
    )
    assert b'"error":"no"' in encode_outgoing(ControlResponse(id="1", error="no"))
    assert b'"response":{"a":1}' in encode_outgoing(ControlResponse(id="1", response={"a": 1}))


def test_paths_are_seen_from_the_directories_that_they_are_in(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "away").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "work")
    (tmp_path / "work" / "out").symlink_to(tmp_path / "away")
    directories = [str(tmp_path / "link")]

    def paths(path: str) -> tuple[str, ...]:
        ask = HostRequestBody(subtype="can_use_tool", tool_name="Write", input={"file_path": path})
        return approval_request(ask, directories).paths

    assert paths(str(tmp_path / "work" / "x")) == (str(tmp_path / "link" / "x"),)
    assert paths(str(tmp_path / "link" / "out" / "x")) == (str(tmp_path / "away" / "x"),)
    assert (
        approval_request(HostRequestBody(subtype="can_use_tool", tool_name="New"), []).effect
        == "other"
    )


@pytest.mark.parametrize("path", ["inside.txt", "../outside.txt", "~/.bashrc", "a\0b"])
def test_accept_edits_grants_no_edit_by_a_relative_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    (tmp_path / "work" / "sub").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "work" / "sub")
    directories = [str(tmp_path / "work")]
    ask = HostRequestBody(subtype="can_use_tool", tool_name="Write", input={"file_path": path})
    question = approval_request(ask, directories)
    assert decision_by_mode(PermissionMode.ACCEPT_EDITS, question, directories) is None
    whole = HostRequestBody(
        subtype="can_use_tool", tool_name="Write", input={"file_path": f"{directories[0]}/x"}
    )
    granted = decision_by_mode(
        PermissionMode.ACCEPT_EDITS, approval_request(whole, directories), directories
    )
    assert granted == Allow(by="mode")


@pytest.mark.parametrize("tool", ["Grep", "Glob", "LS"])
def test_a_search_is_asked_with_the_directory_that_it_looks_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tool: str
) -> None:
    monkeypatch.chdir("/")
    ask = HostRequestBody(
        subtype="can_use_tool", tool_name=tool, input={"path": "src", "pattern": "x"}
    )
    assert approval_request(ask, [str(tmp_path)]).paths == (str(tmp_path / "src"),)
