"""A real Claude Code is stopped, whatever it does, and what it had started with it."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
import trio

from sessionmgr.model import FailureKind, Json, Reason, RunStatus
from sessionmgr.provider import Allow, ApprovalRequest, Decision
from sessionmgr.testing.model_server import Call, Hang, Refuse, Say, Script, prompt_with
from tests.real.claude.house import CLOSE, House, living, until

SLEEP = "touch begun; sleep 1000; echo over"
DEAF = "touch begun; trap '' TERM INT HUP; setsid sleep 1000 & while :; do sleep 0.2; done"
SCRIPTS: dict[str, tuple[Script, str]] = {
    "streaming": ([[Say(text="on and on " * 500, deltas=1000, pause=0.05)]], "message_streamed"),
    "in a tool": ([[Call(tool="shell", input={"command": SLEEP})]], "tool_call_started"),
    "in a deaf tool": ([[Call(tool="shell", input={"command": DEAF})]], "tool_call_started"),
    "before a retry": ([[Refuse(status=529, retry_after=60)]], "retry_scheduled"),
    "on a hung server": ([[Hang()]], "run_started"),
    "hung in mid-stream": ([[Say(text="half", deltas=2), Hang()]], "message_streamed"),
}


@pytest.mark.parametrize("what", SCRIPTS)
async def test_a_cancel_is_over_at_once_and_the_session_goes_on(
    any_house: House, what: str
) -> None:
    script, sign = SCRIPTS[what]
    session = await any_house.session("full_auto")
    run = await session.submit(prompt_with(script), options=any_house.options())
    async for event in run:
        if event.type == sign:
            break
    if "tool" in what:
        await until(lambda: any("sleep" in each for each in living(any_house.work)))
    began = trio.current_time()
    run.cancel("enough")
    result = await run.result()
    assert trio.current_time() - began < CLOSE + 1
    assert (result.status, result.reason) == (RunStatus.CANCELLED, Reason.USER)
    assert not [each for each in living(any_house.work) if "sleep" in each]
    played = await any_house.play([[Say(text="again")]], session)
    assert (played.result.status, played.result.text) == (RunStatus.COMPLETED, "again")


async def test_a_cancel_while_it_asks_is_over_at_once(any_house: House) -> None:
    asked = trio.Event()

    async def approve(request: ApprovalRequest) -> Decision:
        asked.set()
        await trio.sleep(1000)
        return Allow()

    session = await any_house.session()
    script: Script = [[Call(tool="shell", input={"command": "touch x"})], [Say(text="done")]]
    run = await session.submit(prompt_with(script), approve=approve, options=any_house.options())
    await asked.wait()
    began = trio.current_time()
    run.cancel()
    assert (await run.result()).status is RunStatus.CANCELLED
    assert trio.current_time() - began < CLOSE + 1
    assert not Path(any_house.work, "x").exists()
    played = await any_house.play([[Say(text="again")]], session)
    assert played.result.text == "again"


async def test_work_in_the_background_keeps_a_run_open(house: House) -> None:
    command: dict[str, Json] = {
        "command": "sleep 1; touch late",
        "run_in_background": True,
        "description": "d",
    }
    script: Script = [[Call(tool="Bash", input=command)], [Say(text="soon")], [Say(text="seen")]]
    played = await house.play(script, await house.session("full_auto"))
    assert played.result.status is RunStatus.COMPLETED, played.result.failure
    assert Path(house.work, "late").exists()
    assert played.result.turns == 2


async def test_a_cancel_ends_what_goes_on_in_the_background(any_house: House) -> None:
    command: dict[str, Json] = {"command": SLEEP, "run_in_background": True, "description": "d"}
    script: Script = [[Call(tool="Bash", input=command)], [Say(text="soon")]]
    session = await any_house.session("full_auto")
    run = await session.submit(prompt_with(script), options=any_house.options())
    async for event in run:
        if event.type == "turn_completed":
            break
    await until(lambda: any("sleep" in each for each in living(any_house.work)))
    began = trio.current_time()
    run.cancel()
    assert (await run.result()).status is RunStatus.CANCELLED
    await until(lambda: not any("sleep" in each for each in living(any_house.work)), CLOSE)
    assert trio.current_time() - began < CLOSE + 1
    played = await any_house.play([[Say(text="again")]], session)
    assert played.result.text == "again"


@pytest.mark.parametrize("when", ["in a tool", "at rest"])
async def test_a_child_that_is_killed_costs_its_run_at_most(any_house: House, when: str) -> None:
    session = await any_house.session("full_auto")
    first = await any_house.play([[Say(text="one")]], session)
    if when == "in a tool":
        script: Script = [[Call(tool="shell", input={"command": SLEEP})]]
        run = await session.submit(prompt_with(script), options=any_house.options())
        await until(lambda: any("sleep" in each for each in living(any_house.work)))
        _kill(any_house)
        result = await run.result()
        assert result.status is RunStatus.FAILED
        assert result.failure is not None
        assert result.failure.kind in {FailureKind.KILLED_BY_OS, FailureKind.PROCESS_EXITED}
        assert (result.failure.retryable, result.failure.resumable) == (True, True)
        await until(lambda: not any("sleep" in each for each in living(any_house.work)))
    else:
        await until(lambda: _is_kept(any_house, "one"))  # older ones take their time
        _kill(any_house)
    again = await any_house.play([[Say(text="two")]], session)
    assert again.result.text == "two", again.result.failure
    assert again.result.provider_session_id == first.result.provider_session_id


def _is_kept(house: House, text: str) -> bool:
    """Whether a session with this text in it is on disk."""
    kept = house.work.parent.glob("home/.claude/projects/*/*.jsonl")
    return any(f'"{text}"' in each.read_text() for each in kept)


def _kill(house: House) -> None:
    for place in Path("/proc").glob("[0-9]*"):
        try:
            line = (place / "cmdline").read_bytes()
            if line.startswith(bytes(house.program)) and house.work == (place / "cwd").readlink():
                os.kill(int(place.name), signal.SIGKILL)
        except OSError:
            continue
