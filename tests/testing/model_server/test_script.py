import msgspec
import pytest
from hypothesis import given, strategies as st

from sessionmgr.testing.model_server import (
    ModelCall,
    ModelCut,
    ModelRefuse,
    ModelReply,
    ModelSay,
    ModelScript,
    ModelWait,
    prompt_with,
)
from sessionmgr.testing.model_server.script import (
    moves_at,
    parse_script,
    script_in,
    text_without_script,
    write_script,
)

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
moves = (
    st.builds(ModelSay, text=texts, deltas=st.integers(1, 9))
    | st.builds(ModelWait, seconds=st.floats(0, 9))
    | st.builds(ModelCall, tool=texts, input=st.dictionaries(texts, texts, max_size=2))
    | st.builds(ModelRefuse, status=st.integers(400, 599), times=st.none() | st.integers(0, 3))
)
scripts = st.lists(st.lists(moves, max_size=3).map(tuple), max_size=3).map(tuple)


@given(script=scripts, before=texts.filter(lambda text: "<script>" not in text))
def test_a_prompt_carries_its_script_and_the_scripts_in_it(
    script: ModelScript, before: str
) -> None:
    assert script_in(prompt_with(script, before)) == script
    nested: ModelScript = ((ModelCall(tool="agent", input={"prompt": prompt_with(script)}),),)
    assert script_in(prompt_with(nested, before)) == nested
    assert text_without_script(prompt_with(nested, before)) == before.strip()


def test_the_last_of_several_scripts_is_the_one_that_is_meant() -> None:
    prompt = prompt_with([[ModelSay(text="one")]]) + " or " + prompt_with([[ModelSay(text="two")]])
    assert script_in(prompt) == ((ModelSay(text="two"),),)


def test_a_script_is_found_in_a_prompt_whose_quotes_an_agent_has_escaped() -> None:
    script = ((ModelSay(text='a "b" \\ c\n'),), (ModelCall(tool="shell", input={"command": "ls"}),))
    quoted = prompt_with(script).replace('"', '\\"')
    assert script_in(f'"{quoted}"') == script


def test_a_list_of_moves_is_a_script_of_one_reply() -> None:
    assert parse_script('[{"do": "say", "text": "a"}, {"do": "cut"}]') == (
        (ModelSay(text="a"), ModelCut()),
    )
    assert parse_script("[]") == ()


@pytest.mark.parametrize(
    ("prompt", "complaint"),
    [
        ("<script>nonsense</script>", "not JSON"),
        ('<script>[[{"do": "dance"}]]</script>', "dance"),
        ('<script>[[{"do": "say", "txt": "a"}]]</script>', "txt"),
    ],
)
def test_what_is_no_script_is_named(prompt: str, complaint: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=complaint):
        script_in(prompt)


def test_a_prompt_without_a_script_is_left_as_it_is() -> None:
    assert script_in("hi") is None
    assert text_without_script("hi") == "hi"
    assert text_without_script("hi <script>[]") == "hi"


def test_what_fails_so_many_times_is_passed_over_then() -> None:
    reply: ModelReply = (ModelRefuse(status=529, times=1), ModelCut(times=2), ModelSay(text="well"))
    kinds = [[type(move) for move in moves_at(reply, attempt)] for attempt in range(3)]
    assert kinds == [[ModelRefuse, ModelCut, ModelSay], [ModelCut, ModelSay], [ModelSay]]
    assert moves_at((ModelCut(),), 99) == [ModelCut()]


def test_a_script_is_written_without_what_is_understood() -> None:
    assert write_script([[ModelSay(text="a")]]) == '[[{"do":"say","text":"a"}]]'
