"""The choice of a reply, as a function of the conversation."""

from collections.abc import Mapping

import msgspec
import pytest

from sessionmgr.model import Json
from sessionmgr.testing.model_server import (
    ModelCall,
    ModelMessage,
    ModelReply,
    ModelRequest,
    ModelSay,
    ModelScript,
    ModelToolCall,
    ModelToolResult,
    RequestItem,
    ToolOffer,
    TruncatedReply,
    UserInterrupt,
    UserPrompt,
    prompt_with,
)
from sessionmgr.testing.model_server.choose_reply import (
    COMPLETE,
    STRUCTURED,
    TITLE,
    Scripts,
    choose_reply,
)
from sessionmgr.testing.model_server.request import Purpose, call_id, reply_of
from sessionmgr.testing.model_server.script import ModelRefuse, script_in

A, B, C = ModelSay(text="a"), ModelSay(text="b"), ModelSay(text="c")
PLAYED = UserPrompt(prompt_with(((A,), (B,), (C,))))


def asked(*items: RequestItem, purpose: Purpose = "turn", session: str = "s") -> ModelRequest:
    return ModelRequest(face="test", model="m", items=items, purpose=purpose, session=session)


def reply_to(*items: RequestItem, scripts: Scripts | None = None) -> ModelReply:
    return choose_reply(asked(*items), scripts).reply


def called(reply: int, number: int = 0) -> ModelToolCall:
    return ModelToolCall(call_id("toolu", asked(PLAYED), reply, number), "Bash")


def test_a_prompt_gets_the_replies_of_its_script_one_after_the_other() -> None:
    assert reply_to(PLAYED) == (A,)
    assert reply_to(PLAYED, called(0), ModelToolResult("", "")) == (B,)
    assert reply_to(
        PLAYED, called(0), called(0, 1), ModelToolResult("", ""), ModelToolResult("", "")
    ) == (B,)
    second = (ModelMessage("b"), called(1), ModelToolResult("", ""))
    assert reply_to(PLAYED, called(0), ModelToolResult("", ""), *second) == (C,)


def test_a_text_without_a_call_counts_as_a_reply_as_well() -> None:
    assert reply_to(PLAYED, ModelMessage("a"), UserPrompt("go on")) == (B,)
    assert reply_to(PLAYED, ModelMessage("a"), ModelMessage("still a"), UserPrompt("go on")) == (B,)


def test_a_call_by_somebody_else_is_counted_as_it_stands() -> None:
    assert reply_of("toolu_01abc") is None
    assert reply_to(PLAYED, ModelToolCall("toolu_01abc", "Bash"), ModelToolResult("", "")) == (B,)


def test_a_script_that_is_all_said_is_followed_by_an_echo() -> None:
    said = (
        ModelMessage("a"),
        UserPrompt("x"),
        ModelMessage("b"),
        UserPrompt("y"),
        ModelMessage("c"),
    )
    assert reply_to(PLAYED, *said, UserPrompt("and now?")) == (ModelSay(text="You said: and now?"),)
    assert reply_to(UserPrompt(prompt_with(())), ModelMessage("a")) == (ModelSay(text="Done."),)


def test_a_prompt_with_a_script_of_its_own_begins_anew() -> None:
    assert reply_to(PLAYED, ModelMessage("a"), UserPrompt(prompt_with(((C,),)))) == (C,)


def test_an_interrupted_script_is_over() -> None:
    assert reply_to(PLAYED, UserInterrupt(), UserPrompt("hm?")) == (ModelSay(text="You said: hm?"),)
    assert reply_to(PLAYED, UserInterrupt(), PLAYED) == (A,)


def test_what_was_broken_off_is_tried_again() -> None:
    failing: ModelScript = ((ModelRefuse(status=500, times=1), A), (B,))
    prompt = UserPrompt(prompt_with(failing))
    again = choose_reply(asked(prompt, ModelMessage("half"), TruncatedReply()))
    assert (again.number, again.attempt) == (0, 1)
    then = choose_reply(
        asked(prompt, ModelMessage("half"), TruncatedReply(), called(0), ModelToolResult("", ""))
    )
    assert (then.number, then.attempt) == (1, 0)


def test_a_summary_holds_what_is_left_of_the_script() -> None:
    request = asked(PLAYED, ModelMessage("a"), UserPrompt("sum it up"), purpose="compaction")
    [said] = choose_reply(request).reply
    assert isinstance(said, ModelSay)
    assert script_in(said.text) == ((A,), (B,), (C,))
    # Some agents keep the summary as a prompt, and others as a message of the model.
    for summary in UserPrompt(said.text), ModelMessage(said.text):
        assert reply_to(summary, UserPrompt("go on")) == (B,)
        assert reply_to(summary, called(1), ModelToolResult("", "")) == (C,)
    [said] = choose_reply(asked(UserPrompt("hi"), purpose="compaction")).reply
    assert isinstance(said, ModelSay)
    assert script_in(said.text) is None


def test_a_script_that_cannot_be_read_is_refused_with_the_reason() -> None:
    [refused] = reply_to(UserPrompt("<script>[[{}]]</script>"))
    assert isinstance(refused, ModelRefuse)
    assert (refused.status, "do" in refused.message) == (400, True)


def test_a_table_gives_scripts_to_plain_prompts() -> None:
    table: Scripts = {"fix it": ((A,), (B,))}
    assert reply_to(UserPrompt(" fix it\n"), scripts=table) == (A,)
    assert reply_to(UserPrompt("fix it"), called(0), ModelToolResult("", ""), scripts=table) == (B,)
    assert reply_to(UserPrompt("else"), scripts=table) == (ModelSay(text="You said: else"),)


def test_a_prompt_without_a_script_plays_the_default_one() -> None:
    def reply(*items: RequestItem) -> ModelReply:
        return choose_reply(asked(*items), None, ((A,), (B,))).reply

    assert reply(UserPrompt("hi")) == (A,)
    assert reply(UserPrompt("hi"), called(0), ModelToolResult("", "")) == (B,)
    assert reply(UserPrompt("hi"), ModelMessage("a"), UserPrompt("and?")) == (A,)
    assert reply(PLAYED, ModelMessage("a"), UserPrompt("go on")) == (B,)
    assert reply() == (ModelSay(text="Done."),)


def test_a_request_beside_the_turns_does_not_play_the_script() -> None:
    schema: Mapping[str, Json] = {"type": "object"}
    beside = asked(PLAYED, purpose="auxiliary")
    assert choose_reply(beside).reply == (ModelSay(text=TITLE),)
    assert choose_reply(msgspec.structs.replace(beside, schema=schema)).reply == (
        ModelSay(text="{}"),
    )


def test_a_sub_agent_that_must_complete_its_task_does() -> None:
    schema: Mapping[str, Json] = {
        "type": "object",
        "properties": {"result": {"type": "string"}},
        "required": ["result"],
    }
    request = msgspec.structs.replace(
        asked(PLAYED, called(2), ModelToolResult("", "")), tools=(ToolOffer(COMPLETE, schema),)
    )
    assert choose_reply(request).reply == (ModelCall(tool=COMPLETE, input={"result": "sample"}),)
    assert choose_reply(msgspec.structs.replace(request, items=(PLAYED,))).reply == (A,)


@pytest.mark.parametrize(
    "said",
    [
        "\n[User]: {script}\n\n[Assistant]: a\n[Assistant tool call]: x\n[Tool result]: y\n",
        "## Message 1\nRole: user\nContent:\n{script}\n## Message 2\nRole: assistant\nContent:\na",
    ],
)
def test_replies_are_counted_in_a_transcript_for_a_summary(said: str) -> None:
    text = said.format(script=prompt_with(((A,), (B,))))
    [summary] = choose_reply(asked(UserPrompt(text), purpose="compaction")).reply
    assert isinstance(summary, ModelSay)
    assert reply_to(ModelMessage(summary.text), UserPrompt("go on")) == (B,)


def test_an_attempt_that_left_nothing_is_counted_as_well() -> None:
    nudged = choose_reply(asked(PLAYED, TruncatedReply()))
    assert (nudged.number, nudged.attempt) == (0, 1)


def test_a_function_replies_or_leaves_it_to_the_prompt() -> None:
    def scripts(request: ModelRequest) -> ModelReply | None:
        return (C,) if request.results else None

    assert reply_to(PLAYED, scripts=scripts) == (A,)
    assert reply_to(PLAYED, called(0), ModelToolResult("", ""), scripts=scripts) == (C,)


def test_what_has_to_be_valid_is_made_so() -> None:
    schema: Mapping[str, Json] = {
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "required": ["n"],
    }
    plain = ModelRequest(face="test", model="m", items=(UserPrompt("n?"),), schema=schema)
    assert choose_reply(plain).reply == (ModelSay(text='{"n":0}'),)
    offers = (ToolOffer(STRUCTURED, schema),)
    by_tool = ModelRequest(face="test", model="m", items=(UserPrompt("n?"),), tools=offers)
    assert choose_reply(by_tool).reply == (ModelCall(tool=STRUCTURED, input={"n": 0}),)


def test_the_same_question_has_the_same_ids_in_one_session_alone() -> None:
    assert call_id("x", asked(PLAYED), 0, 0) == call_id("x", asked(PLAYED), 0, 0)
    assert call_id("x", asked(PLAYED), 0, 0) != call_id("x", asked(PLAYED, session="t"), 0, 0)
    assert reply_of(call_id("x", asked(PLAYED), 7, 3)) == 7


def test_results_are_those_of_the_last_calls() -> None:
    one, two = ModelToolResult("1", "one"), ModelToolResult("2", "two")
    request = asked(PLAYED, called(0), one, ModelMessage("hm"), called(1), two, UserPrompt("wait"))
    assert request.results == (two,)
    assert request.prompt == "wait"
    assert asked().prompt == ""
