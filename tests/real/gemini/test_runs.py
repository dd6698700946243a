"""Runs of a headless Gemini CLI: what is reported, what reaches the model, and what is kept."""

from __future__ import annotations

import base64
from functools import partial
from pathlib import Path

import msgspec
import trio

from sessionmgr.model import (
    FailureKind,
    MessageReceived,
    RunStatus,
    ToolCallCompleted,
    ToolCallStarted,
)
from sessionmgr.testing.model_server import (
    ModelCall,
    ModelHang,
    ModelSay,
    ModelScript,
    ModelThink,
    ModelUse,
)
from tests.real.harness import RealAgentHarness, line_of, text_of, until, with_word

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"
)


def found_in(place: str, pattern: str) -> list[Path]:
    return [*Path(place).glob(pattern)]


def chats(house: RealAgentHarness) -> list[Path]:
    """Return the files of Gemini's sessions."""
    return found_in(house.env["HOME"], ".gemini/tmp/*/chats/session-*.jsonl")


async def test_a_run_is_told_whole_and_the_next_goes_on(house: RealAgentHarness) -> None:
    script: ModelScript = [
        [
            ModelThink(text="I look."),
            ModelSay(text="Let me look.", deltas=3),
            ModelCall(tool="shell", input={"command": "echo 42"}),
            ModelCall(tool="write", input={"path": str(house.work / "x"), "content": "y"}),
        ],
        [ModelSay(text="It is done."), ModelUse(input=100, output=10)],
    ]
    session = await house.session("full_auto")
    played = await house.play(script, session)
    result = played.result
    assert (result.status, result.text, result.exit_code) == ("completed", "It is done.", 0)
    said = [each.content for each in played.events if isinstance(each, MessageReceived)]
    assert said == ["Let me look.", "It is done."]
    begun = [each.tool_name for each in played.events if isinstance(each, ToolCallStarted)]
    assert begun == ["run_shell_command", "write_file"]
    outputs = [each.tool_output for each in played.events if isinstance(each, ToolCallCompleted)]
    assert outputs[0] == "42"
    assert (house.work / "x").read_text() == "y"
    assert result.usage.input > 0
    assert result.usage.output > 0
    again = await house.goes_on(session)
    assert again.result.provider_session_id == result.provider_session_id
    asked = house.server.log.asked[-1]
    assert "Let me look." in str(asked.items)
    # A process that resumes in a later minute leaves a second file of the same session.
    (with_words,) = [file for file in chats(house) if "Let me look." in file.read_text()]
    assert {file.stem[-8:] for file in chats(house)} == {with_words.stem[-8:]}


async def test_plain_text_goes_on_and_says_less(house: RealAgentHarness) -> None:
    session = await house.session("full_auto")
    options = house.options(output="text")
    call = ModelCall(tool="shell", input={"command": "touch x"})
    script: ModelScript = [[ModelSay(text="I look."), call], [ModelSay(text="Seen.\nDone.")]]
    played = await house.play(script, session, options=options)
    result = played.result
    assert result.status is RunStatus.COMPLETED, result.failure
    assert result.text.endswith("Seen.\nDone.")
    assert (house.work / "x").exists()
    assert "tool_call_started" not in played.types
    again = await house.goes_on(session, options=options)
    assert again.result.provider_session_id == result.provider_session_id
    assert (await house.goes_on(session)).result.provider_session_id == result.provider_session_id


async def test_what_is_wished_reaches_the_model(house: RealAgentHarness) -> None:
    (house.work / "a b,(c).png").write_bytes(PIXEL)
    outside = house.place("out side")
    (outside / "x.png").write_bytes(PIXEL)
    word = house.word()
    played = await house.play(
        [[ModelSay(text="seen")]],
        text=word,
        system_prompt=f'system "{word}"\nand more',
        images=("a b,(c).png", str(outside / "x.png")),
        model="fast",
        directories=[outside],
        tools_denied=["google_web_search"],
    )
    assert played.result.text == "seen", played.result.failure
    asked = house.server.log.asked[-1]
    assert f'system "{word}"\\nand more' in str(asked.body["systemInstruction"])
    assert len(asked.images) == 2
    assert str(outside) in str(asked.body["contents"])
    assert "flash" in asked.model
    names = {each.name for each in asked.tools}
    assert "read_file" in names
    assert "google_web_search" not in names


async def test_a_prompt_may_be_long_and_begin_with_anything(house: RealAgentHarness) -> None:
    long = "--help\n" + " ".join(f"é{number}" for number in range(100_000))
    for prompt in (long, "/quit", "@nothing and a\\b 'c' \"d\"", "two\n\nparts\n"):
        # Gemini loses output at its exit if the model answers before the echo is read.
        played = await house.play([[ModelSay(text="ok", deltas=2, pause=1.0)]], text=prompt)
        assert played.result.text == "ok", played.result.failure
        assert prompt.strip() in house.server.log.asked[-1].prompt


async def test_no_other_user_can_read_the_prompt(house: RealAgentHarness) -> None:
    word, gate = house.word(), house.gate()
    script: ModelScript = [[ModelSay(text="well", deltas=2, until=str(gate))]]
    session = await house.session()
    run = await house.submit(session, script, system_prompt=word)
    async for event in run:
        if event.type == "message_streamed":
            break
    lines = [line_of(pid) for pid in with_word(house.mark)]
    assert lines
    assert not [each for each in lines if b"<script>" in each or word.encode() in each]
    gate.touch()
    assert (await run.result()).status is RunStatus.COMPLETED


async def test_two_runs_do_not_disturb_each_other(house: RealAgentHarness) -> None:
    names = ("one", "two", "three")
    texts: dict[str, str] = {}

    async def play(name: str, cwd: Path) -> None:
        session = await house.session(cwd=cwd)
        for number in range(2):
            text = f"{name} {number}"
            played = await house.play([[ModelSay(text=text, deltas=5, pause=0.05)]], session)
            assert played.result.status is RunStatus.COMPLETED, played.result.failure
            texts[text] = played.result.text

    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(play, "one", house.work))
        nursery.start_soon(partial(play, "two", house.work))
        nursery.start_soon(partial(play, "three", house.place()))
    assert texts == {f"{name} {number}": f"{name} {number}" for name in names for number in (0, 1)}


async def test_a_session_that_is_unknown_is_not_replaced(house: RealAgentHarness) -> None:
    session = await house.session()
    await house.goes_on(session)
    for file in chats(house):
        file.unlink()
    played = await house.play([[ModelSay(text="never")]], session)
    assert played.result.failure is not None
    assert played.result.failure.kind is FailureKind.SESSION_NOT_FOUND


async def test_a_directory_that_is_not_trusted_says_so(house: RealAgentHarness) -> None:
    settings = Path(house.env["HOME"], ".gemini", "settings.json")
    trusting = msgspec.json.decode(text_of(settings))
    del trusting["security"]["folderTrust"]
    await trio.Path(settings).write_bytes(msgspec.json.encode(trusting))
    played = await house.play([[ModelSay(text="never")]])
    assert played.result.failure is not None
    assert played.result.failure.kind is FailureKind.CONFIG_INVALID
    assert "set the option trust" in played.result.failure.message
    await house.goes_on(await house.session(), options=house.options(trust=True))


async def test_a_long_turn_of_ours_leaves_no_report_behind(house: RealAgentHarness) -> None:
    """Gemini writes failed requests to TMPDIR; that is a directory of the run."""
    session = await house.session()
    run = await house.submit(session, [[ModelSay(text="half", deltas=2), ModelHang()]])
    async for event in run:
        if event.type == "message_streamed":
            break
    run.cancel()
    await run.result()
    await until(lambda: not with_word(house.mark))
    assert [*found_in(house.env["TMPDIR"], "gemini-*")] == []
