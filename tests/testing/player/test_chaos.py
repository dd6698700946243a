"""The misbehaviours of players, in a dialect."""

from pathlib import Path

import msgspec
import pytest
import trio

from sessionmgr.testing.player import (
    CHAOS,
    Dialect,
    ExpectStep,
    Misbehaviour,
    WriteStep,
    command_of,
    line,
)

REPLIES = Dialect(
    opening=(
        ExpectStep({"id": "open"}, free=("id",)),
        WriteStep(line({"id": "open", "result": "opened"}), reply=True),
        ExpectStep({"id": "turn"}, free=("id",)),
    ),
    word=lambda text: line({"text": text}),
    end=line({"id": "turn", "result": "done"}),
)


@pytest.mark.parametrize(
    "chaos",
    [each for each in CHAOS if each.name in {"makes noise", "cuts characters anywhere"}],
    ids=str,
)
async def test_a_turn_may_end_with_the_reply_to_its_request(
    chaos: Misbehaviour, tmp_path: Path
) -> None:
    playbook = chaos.playbook(REPLIES, str(tmp_path / "leaked"))
    command = command_of(playbook, tmp_path / "playbook.json")
    asked = line({"id": 7}) + line({"id": "eight"})
    with trio.fail_after(30):
        played = await trio.run_process(command, stdin=asked, capture_stdout=True)
    lines = played.stdout.splitlines()
    assert line({"id": 7, "result": "opened"}).strip() in [
        each.replace(b" ", b"") for each in lines
    ]
    assert msgspec.json.decode(lines[-1]) == {"id": "eight", "result": "done"}
