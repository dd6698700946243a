"""Texts that agents add: reminders around prompts, and requests beside the turns."""

import pytest
from hypothesis import given, strategies as st

from sessionmgr.testing.model_server import ModelSay, prompt_with
from sessionmgr.testing.model_server.agent_texts import (
    purpose_of,
    session_of,
    without_reminders,
)
from sessionmgr.testing.model_server.request import Purpose

SCRIPTED = prompt_with([[ModelSay(text="<system-reminder>a</system-reminder>")]])


@pytest.mark.parametrize("prompt", ["hi", SCRIPTED, "a <b>c</b> d"])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", ""),
        ("<current_datetime>now</current_datetime>\n\n", ""),
        ("<system>a</system><system-reminder>\nb\n</system-reminder>\n", ""),
        ("", "\n<turn-context>\n<current-time>now</current-time>\n</turn-context>"),
        ("", "\n<info-msg>a</info-msg>\n<info-msg>b</info-msg>\n"),
    ],
)
def test_reminders_before_and_after_a_prompt_are_removed(
    prompt: str, before: str, after: str
) -> None:
    assert without_reminders(f"{before}{prompt}{after}") == prompt


def test_a_message_of_reminders_alone_is_empty() -> None:
    assert without_reminders("<system-reminder>be good</system-reminder>") == ""


@given(text=st.text(st.sampled_from("a <>/\n"), max_size=40))
def test_a_text_without_reminders_stays_as_it_is(text: str) -> None:
    assert without_reminders(text) == text


@pytest.mark.parametrize(
    ("instructions", "last", "tools", "purpose"),
    [
        ("You are an agent.", "Generate a title for this conversation", True, "turn"),
        ("You are a title generator.", "hi", False, "auxiliary"),
        ("Generate a short title (four words or less).", "hi", False, "auxiliary"),
        ("You are a title generator.", "hi", True, "turn"),
        ("You are a context summarization agent.", "hi", False, "compaction"),
        ("", "You are about to run out of context. Create a handoff summary …", True, "compaction"),
        ("", "Your task is to generate a very short title for …", True, "auxiliary"),
        ("", "hi", False, "turn"),
    ],
)
def test_a_request_is_for_a_turn_or_for_something_else(
    instructions: str, last: str, tools: bool, purpose: Purpose
) -> None:
    assert purpose_of(instructions, last, offers_tools=tools) == purpose


def test_a_session_is_known_by_its_instructions() -> None:
    assert session_of("in /a") == session_of("in /a")
    assert session_of("in /a") != session_of("in /b")
    assert session_of("") == ""
