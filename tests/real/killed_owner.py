"""A program that owns a run and is killed: no process survives, and its session can continue."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import trio

from sessionmgr.model import RunStatus
from sessionmgr.testing.model_server import ModelCall, ModelHang, prompt_with
from tests.real.harness import PATIENCE, RealAgentHarness, is_kept, living, until, with_word

PROGRAM = """
import sys, trio
from sessionmgr import open_manager

async def main(provider, program, store, work, prompt):
    async with open_manager(store=store) as manager:
        session = await manager.open_session(provider, cwd=work, permission_mode="full_auto")
        run = await session.submit(prompt, options={"command": [program]})
        async for event in run:
            print(event.type, flush=True)

trio.run(main, *sys.argv[1:])
"""


async def kill_owner(
    provider: str, program: Path, store: Path, work: Path, env: dict[str, str]
) -> None:
    """Start a run, kill its owner while a tool runs, and check that no process remains.

    At that time the owner has stored the start of the run and the agent has recorded its
    prompt: without these there is nothing to resume.
    """
    shell = ModelCall(tool="shell", input={"command": "touch begun; sleep 1000; true"})
    prompt = prompt_with(
        [[shell], [ModelHang()]]
    )  # Codex waits ten seconds for a command, then continues
    argv = [sys.executable, "-c", PROGRAM, provider, str(program), str(store), str(work), prompt]
    path = os.pathsep.join(sys.path)
    owner = await trio.lowlevel.open_process(
        argv, stdout=-1, env={**env, "PYTHONPATH": path}, cwd=work.parent
    )
    try:
        await _until_said(owner, b"tool_call_started")
        await until(lambda: any("sleep 1000" in each for each in living(work)))
        await until(lambda: is_kept(work.parent, "touch begun"))
    finally:
        owner.send_signal(signal.SIGKILL)
        with trio.CancelScope(shield=True):
            await owner.wait()
    await until(lambda: not with_word(str(work.parent)))


async def _until_said(owner: trio.Process, words: bytes) -> None:
    assert owner.stdout is not None
    said = b""
    with trio.fail_after(PATIENCE):
        await trio.lowlevel.checkpoint()
        while words not in said:
            more = await owner.stdout.receive_some()
            assert more, f"it went, and had said {said!r}"
            said += more


async def goes_on_after_that(house: RealAgentHarness) -> None:
    """Check that its one session continues where it was."""
    (session,) = await house.manager.sessions()
    (run,) = await house.manager.settled(session.id)
    assert run.status is RunStatus.FAILED
    again = await house.goes_on(await house.manager.session(session.id))
    assert again.result.provider_session_id == run.provider_session_id
