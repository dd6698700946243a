"""A program that owns a run, and is killed: nothing of it may live, and its session can go on."""

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
    """Have a run get into a tool, and kill who owns it; see that nothing of it lives there.

    By then its owner has stored how it began, and the agent has written its prompt down: without
    that there is nothing to go on with.
    """
    shell = ModelCall(tool="shell", input={"command": "touch begun; sleep 1000; true"})
    prompt = prompt_with(
        [[shell], [ModelHang()]]
    )  # Codex waits ten seconds for a command, and goes on
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
    """See that its one session goes on where it was."""
    (session,) = await house.manager.sessions()
    (run,) = await house.manager.settled(session.id)
    assert run.status is RunStatus.FAILED
    again = await house.goes_on(await house.manager.session(session.id))
    assert again.result.provider_session_id == run.provider_session_id
