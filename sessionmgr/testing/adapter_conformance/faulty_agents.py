"""The behaviours of an adapter whose agent misbehaves."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Final

from sessionmgr.model import FailureKind
from sessionmgr.testing.adapter_conformance.behaviour import AdapterBehaviour
from sessionmgr.testing.adapter_conformance.case import Play
from sessionmgr.testing.player import CHAOS, command_of

if TYPE_CHECKING:
    from pathlib import Path

    from sessionmgr.model import Json
    from sessionmgr.testing.adapter_conformance.harness import ConformanceHarness
    from sessionmgr.testing.player import Misbehaviour


async def _survive(chaos: Misbehaviour, stage: ConformanceHarness) -> None:
    assert stage.case.dialect is not None
    note = stage.place / "leaked"
    playbook = chaos.playbook(stage.case.dialect, str(note))
    command = command_of(playbook, stage.place / "playbook.json")
    options: dict[str, Json] = {**stage.case.answers.options}
    options[stage.case.command_option] = list(command)
    run = await stage.submit(Play(prompt=stage.case.answers.prompt, options=options))
    if chaos.cancel:
        await stage.wait_for_text(run, chaos.text)
        run.cancel()
        await stage.result_in_time(run)
    played = await stage.collect(run)
    result = played.result
    assert result.status == chaos.status, f"{result.status}: {result.failure}"
    assert chaos.text in {None, result.text}, f"its text is {result.text[:200]!r}"
    assert chaos.told is None or chaos.told in played.types
    if result.failure is not None:
        assert result.failure.kind is not FailureKind.ADAPTER_CRASHED, result.failure.message
    # A cached connection may keep leaked processes; when the manager ends, all must be gone.
    stage.afterwards.append(partial(_require_gone, note))


def _require_gone(note: Path) -> None:
    if note.exists():
        pid = int(note.read_text())
        assert not _is_alive(pid), f"process {pid} was left behind"


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def _behaviour_name(chaos: Misbehaviour) -> str:
    words = "".join(each if each.isalnum() else " " for each in chaos.name).split()
    return "_".join(["an_agent_that", *words, "does_no_harm"])


MISBEHAVING: Final = tuple(
    AdapterBehaviour(_behaviour_name(each), partial(_survive, each), prompts=("dialect",))
    for each in CHAOS
)
