"""Recordings can be played, and an adapter that sends something else is detected."""

from pathlib import Path

import pytest
import trio

from sessionmgr.adapter import Allow, ApprovalRequest, Decision
from sessionmgr.manager import open_manager
from sessionmgr.model import Json, RunResult, RunStatus
from sessionmgr.testing.player import RecordedLine, Recording, WriteStep, command_of, recorder_of
from sessionmgr.testing.toy import ToyAdapter
from sessionmgr.testing.toy.adapter import AGENT

PROMPT = "say one two; complain ouch; print noise; ask saw; three"


async def play(prompt: str, command: tuple[str, ...], cwd: Path) -> tuple[RunResult, list[str]]:
    async def approve(request: ApprovalRequest) -> Decision:
        return Allow(tool_input={"n": 5})

    with trio.fail_after(60):
        async with open_manager(adapters={"toy": ToyAdapter}) as manager:
            session = await manager.open_session("toy", cwd=cwd)
            options: dict[str, Json] = {"command": list(command), "keep": False}
            async with session.start(prompt, options=options, approve=approve) as run:
                kinds: list[str] = [event.type async for event in run]
                return await run.result(), kinds


@pytest.fixture
async def recorded(tmp_path: Path) -> Recording:
    file = tmp_path / "recorded.jsonl"
    result, _ = await play(PROMPT, recorder_of(file, AGENT), tmp_path)
    assert result.status is RunStatus.COMPLETED
    return Recording.read(file)


async def test_a_recording_holds_what_both_sides_said(recorded: Recording) -> None:
    said = [entry.dir for entry in recorded.entries]
    assert said[0] == "#"
    assert said.count(">") == 3  # open, say, answer
    assert "!" in said
    assert [entry.line for entry in recorded.entries if entry.dir == "<" and entry.line] == [
        "noise"
    ]


@pytest.mark.parametrize("timed", [False, True])
async def test_a_recording_plays_as_the_agent_did(
    recorded: Recording, tmp_path: Path, timed: bool
) -> None:
    true, true_kinds = await play(PROMPT, AGENT, tmp_path)
    playbook = recorded.playbook(timed=timed)
    played, played_kinds = await play(PROMPT, command_of(playbook, tmp_path / "b.json"), tmp_path)
    assert played_kinds == true_kinds
    assert (played.status, played.text, played.tool_calls, played.usage) == (
        true.status,
        true.text,
        true.tool_calls,
        true.usage,
    )


async def test_an_adapter_that_says_something_else_is_found_out(
    recorded: Recording, tmp_path: Path
) -> None:
    command = command_of(recorded.playbook(), tmp_path / "b.json")
    result, _ = await play("say something else", command, tmp_path)
    assert result.status is RunStatus.FAILED
    assert result.failure is not None
    assert result.failure.exit_code == 70
    free = command_of(recorded.playbook(free=["text"]), tmp_path / "b.json")
    result, _ = await play("say something else", free, tmp_path)
    assert result.status is RunStatus.COMPLETED


def test_the_pauses_of_a_recording_are_played_if_that_is_asked() -> None:
    recording = Recording(
        (
            RecordedLine(t=1.0, dir=">", msg={}),
            RecordedLine(t=1.5, dir="<", msg={}),
            RecordedLine(t=3.0, dir="!", msg="x"),
            RecordedLine(t=2.9, dir="<", msg={}),  # two writers at once
        )
    )
    steps = recording.playbook(timed=True)
    assert [each.after for each in steps if isinstance(each, WriteStep)] == [0.5, 1.5, 0]
    assert [each.after for each in recording.playbook() if isinstance(each, WriteStep)] == [0, 0, 0]


async def test_an_id_that_was_recorded_gives_way_to_the_one_that_is_heard(tmp_path: Path) -> None:
    recording = Recording(
        (
            RecordedLine(t=0, dir=">", msg={"id": 1, "method": "add"}),
            RecordedLine(t=0, dir="<", msg={"id": 1, "result": 3}),
            RecordedLine(t=0, dir="<", msg={"id": 1, "method": "ask"}),
        )
    )
    argv = command_of(recording.playbook(free=["id"]), tmp_path / "b.json")
    sent = b'{"id": "x7", "method": "add"}\n'
    found = await trio.run_process(argv, stdin=sent, capture_stdout=True)
    assert found.stdout.splitlines() == [
        b'{"id": "x7", "result": 3}',
        b'{"id":1,"method":"ask"}',
    ]
