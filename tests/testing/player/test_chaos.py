"""Whatever its agent does, a run ends as it must, and nothing is left of it."""

import os
from pathlib import Path

import pytest
import trio

from sessionmgr.manager import Clocks, open_manager
from sessionmgr.model import MessageStreamed
from sessionmgr.testing.player import CHAOS, Chaos, command_of
from sessionmgr.testing.toy import ToyAdapter
from tests.testing.toy.dialect import TOY

PATIENCE = 120.0


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("chaos", CHAOS, ids=str)
async def test_an_agent_that_misbehaves_does_no_harm(chaos: Chaos, tmp_path: Path) -> None:
    note = tmp_path / "leaked"
    playbook = chaos.playbook(TOY, str(note))
    command = command_of(playbook, tmp_path / "playbook.json")
    with trio.fail_after(PATIENCE):
        async with open_manager(adapters={"toy": ToyAdapter}, clocks=Clocks(close=2)) as manager:
            session = await manager.open_session("toy", cwd=tmp_path)
            async with session.start("go on", options={"command": list(command)}) as run:
                kinds: set[str] = set()
                async for event in run:
                    kinds.add(event.type)
                    if chaos.cancel and isinstance(event, MessageStreamed):
                        run.cancel()
                result = await run.result()
    assert result.status is chaos.status
    if chaos.text is not None:
        assert result.text == chaos.text
    if chaos.told is not None:
        assert chaos.told in kinds
    if note.exists():
        assert not is_alive(int(note.read_text()))
