"""Which reply is given, as a function of what was said."""

from collections.abc import Mapping

from sessionmgr.model import Json
from sessionmgr.testing.model_server import (
    Broken,
    Call,
    Called,
    Interrupted,
    Item,
    ModelRequest,
    Offer,
    Prompt,
    Reply,
    Result,
    Said,
    Say,
    Script,
    prompt_with,
)
from sessionmgr.testing.model_server.plan import STRUCTURED, Scripts, plan
from sessionmgr.testing.model_server.request import Purpose, call_id, reply_of
from sessionmgr.testing.model_server.script import Refuse, script_in

A, B, C = Say(text="a"), Say(text="b"), Say(text="c")
PLAYED = Prompt(prompt_with(((A,), (B,), (C,))))


def asked(*items: Item, purpose: Purpose = "turn", session: str = "s") -> ModelRequest:
    return ModelRequest(face="test", model="m", items=items, purpose=purpose, session=session)


def reply_to(*items: Item, scripts: Scripts | None = None) -> Reply:
    return plan(asked(*items), scripts).reply


def called(reply: int, number: int = 0) -> Called:
    return Called(call_id("toolu", asked(PLAYED), reply, number), "Bash")


def test_a_prompt_gets_the_replies_of_its_script_one_after_the_other() -> None:
    assert reply_to(PLAYED) == (A,)
    assert reply_to(PLAYED, called(0), Result("", "")) == (B,)
    assert reply_to(PLAYED, called(0), called(0, 1), Result("", ""), Result("", "")) == (B,)
    second = (Said("b"), called(1), Result("", ""))
    assert reply_to(PLAYED, called(0), Result("", ""), *second) == (C,)


def test_a_text_without_a_call_counts_as_a_reply_as_well() -> None:
    assert reply_to(PLAYED, Said("a"), Prompt("go on")) == (B,)
    assert reply_to(PLAYED, Said("a"), Said("still a"), Prompt("go on")) == (B,)


def test_a_call_by_somebody_else_is_counted_as_it_stands() -> None:
    assert reply_of("toolu_01abc") is None
    assert reply_to(PLAYED, Called("toolu_01abc", "Bash"), Result("", "")) == (B,)


def test_a_script_that_is_all_said_is_followed_by_an_echo() -> None:
    said = (Said("a"), Prompt("x"), Said("b"), Prompt("y"), Said("c"))
    assert reply_to(PLAYED, *said, Prompt("and now?")) == (Say(text="You said: and now?"),)
    assert reply_to(Prompt(prompt_with(())), Said("a")) == (Say(text="Done."),)


def test_a_prompt_with_a_script_of_its_own_begins_anew() -> None:
    assert reply_to(PLAYED, Said("a"), Prompt(prompt_with(((C,),)))) == (C,)


def test_an_interrupted_script_is_over() -> None:
    assert reply_to(PLAYED, Interrupted(), Prompt("hm?")) == (Say(text="You said: hm?"),)
    assert reply_to(PLAYED, Interrupted(), PLAYED) == (A,)


def test_what_was_broken_off_is_tried_again() -> None:
    failing: Script = ((Refuse(status=500, times=1), A), (B,))
    prompt = Prompt(prompt_with(failing))
    again = plan(asked(prompt, Said("half"), Broken()))
    assert (again.number, again.attempt) == (0, 1)
    then = plan(asked(prompt, Said("half"), Broken(), called(0), Result("", "")))
    assert (then.number, then.attempt) == (1, 0)


def test_a_summary_holds_what_is_left_of_the_script() -> None:
    request = asked(PLAYED, Said("a"), Prompt("sum it up"), purpose="compaction")
    [said] = plan(request).reply
    assert isinstance(said, Say)
    assert script_in(said.text) == ((B,), (C,))
    [said] = plan(asked(Prompt("hi"), purpose="compaction")).reply
    assert isinstance(said, Say)
    assert script_in(said.text) is None


def test_a_script_that_cannot_be_read_is_refused_with_the_reason() -> None:
    [refused] = reply_to(Prompt("<script>[[{}]]</script>"))
    assert isinstance(refused, Refuse)
    assert (refused.status, "do" in refused.message) == (400, True)


def test_a_table_gives_scripts_to_plain_prompts() -> None:
    table: Scripts = {"fix it": ((A,), (B,))}
    assert reply_to(Prompt(" fix it\n"), scripts=table) == (A,)
    assert reply_to(Prompt("fix it"), called(0), Result("", ""), scripts=table) == (B,)
    assert reply_to(Prompt("else"), scripts=table) == (Say(text="You said: else"),)


def test_a_function_replies_or_leaves_it_to_the_prompt() -> None:
    def scripts(request: ModelRequest) -> Reply | None:
        return (C,) if request.results else None

    assert reply_to(PLAYED, scripts=scripts) == (A,)
    assert reply_to(PLAYED, called(0), Result("", ""), scripts=scripts) == (C,)


def test_what_has_to_be_valid_is_made_so() -> None:
    schema: Mapping[str, Json] = {
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "required": ["n"],
    }
    plain = ModelRequest(face="test", model="m", items=(Prompt("n?"),), schema=schema)
    assert plan(plain).reply == (Say(text='{"n":0}'),)
    offers = (Offer(STRUCTURED, schema),)
    by_tool = ModelRequest(face="test", model="m", items=(Prompt("n?"),), tools=offers)
    assert plan(by_tool).reply == (Call(tool=STRUCTURED, input={"n": 0}),)


def test_the_same_question_has_the_same_ids_in_one_session_alone() -> None:
    assert call_id("x", asked(PLAYED), 0, 0) == call_id("x", asked(PLAYED), 0, 0)
    assert call_id("x", asked(PLAYED), 0, 0) != call_id("x", asked(PLAYED, session="t"), 0, 0)
    assert reply_of(call_id("x", asked(PLAYED), 7, 3)) == 7


def test_results_are_those_of_the_last_calls() -> None:
    one, two = Result("1", "one"), Result("2", "two")
    request = asked(PLAYED, called(0), one, Said("hm"), called(1), two, Prompt("wait"))
    assert request.results == (two,)
    assert request.prompt == "wait"
    assert asked().prompt == ""
