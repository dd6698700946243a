"""Many concurrent threads in one app-server, many in sequence, and long lines."""

from __future__ import annotations

from pathlib import Path

import trio

from sessionmgr.adapter import ApprovalRequest, Decision
from sessionmgr.model import ErrorOccurred, FailureKind, RunStatus, ToolCallCompleted
from sessionmgr.testing.model_server import ModelCall, ModelSay, ModelScript
from tests.real.codex.test_kills import app_servers
from tests.real.harness import RealAgentHarness, see, until_event

MEGABYTE = 1024 * 1024
AT_ONCE = 20
"""The number of concurrent turns; one of them waits for an answer."""
THREADS = 120
WARM = 20
"""The number of threads after which an app-server's memory should not grow any more."""
GROWTH = 12 * MEGABYTE
LARGE = 900_000  # Codex keeps at most a megabyte of a command's output


async def test_sessions_at_the_same_time_do_not_mix(house: RealAgentHarness) -> None:
    """Nor does a session wait for another one with an unanswered request."""
    asked = trio.Event()
    gates = [house.work.parent / f"gate{turn}" for turn in range(2)]
    at_work = [0, 0]

    async def never(_: ApprovalRequest) -> Decision:
        asked.set()
        await trio.sleep_forever()

    async def one(number: int) -> None:
        # Codex's sandbox creates something in the directory, and fails if another does too.
        session = await house.session("full_auto", cwd=house.place())
        for turn in range(2):
            name = f"s{number}t{turn}-{house.mark}"
            # Codex waits at most half a minute, even on a slow machine; it may then miss what a
            # command prints just before its end.
            waits = f"until [ -e {gates[turn]} ] || [ $SECONDS -ge 15 ]; do sleep 0.5; done"
            command = f"echo tool-{name}; sleep 2; {waits}"
            script: ModelScript = [
                [ModelCall(tool="exec_command", input={"cmd": command, "yield_time_ms": 30_000})],
                [ModelSay(text=f"text-{name}", deltas=4)],
            ]
            run = await house.submit(session, script)
            await until_event(run, "tool_call_started")
            at_work[turn] += 1
            if at_work[turn] == AT_ONCE - 1:
                gates[turn].touch()
            played = await see(run)
            assert played.result.status is RunStatus.COMPLETED, played.result.failure
            assert played.result.text == f"text-{name}"
            outputs = [getattr(each, "tool_output", None) for each in played.events]
            told = [each for each in outputs if each]
            assert told == [{"output": f"tool-{name}\n", "exit_code": 0}]
            seen = house.asked(played.result.provider_session_id)
            marks = {word for each in seen for word in str(each.items).split("'") if "-" in word}
            assert not [each for each in marks if each.startswith("text-") and name[:3] not in each]

    stuck = await house.session("default", approve=never)
    wish = {"cmd": "true", "sandbox_permissions": "require_escalated", "justification": "May I?"}
    waits = await house.submit(stuck, [[ModelCall(tool="exec_command", input=dict(wish))]])
    await asked.wait()
    async with trio.open_nursery() as nursery:
        for number in range(AT_ONCE - 1):
            nursery.start_soon(one, number)
    assert waits.status == "running"
    assert len(app_servers(house)) == 1
    waits.cancel("enough")
    assert (await waits.result()).status is RunStatus.CANCELLED


async def test_threads_one_after_the_other_cost_no_memory(house: RealAgentHarness) -> None:
    private: list[int] = []
    for number in range(THREADS):
        played = await house.play([[ModelSay(text="hello")]])
        assert played.result.status is RunStatus.COMPLETED, played.result.failure
        if number in {WARM, THREADS - 1}:
            [pid] = app_servers(house)
            private.append(memory_of(pid))
    print(f"{THREADS} threads: {private[0] >> 20} MB, then {private[-1] >> 20} MB")
    assert private[-1] - private[0] < GROWTH


def memory_of(pid: int) -> int:
    """Return the private memory of a process in bytes."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    found = [line.split()[1] for line in lines if line.startswith("Private_Dirty")]
    return int(found[0]) * 1024


async def test_what_a_command_prints_may_be_very_long(house: RealAgentHarness) -> None:
    command = f"head -c {LARGE} /dev/zero | tr '\\0' x"
    script: ModelScript = [
        [ModelCall(tool="shell", input={"command": command})],
        [ModelSay(text="done")],
    ]
    played = await house.play(script, await house.session("full_auto"))
    assert played.result.status is RunStatus.COMPLETED, played.result.failure
    [done] = [each for each in played.events if isinstance(each, ToolCallCompleted)]
    assert done.tool_output == {"output": "x" * LARGE, "exit_code": 0}
    errors = [each.failure.kind for each in played.events if isinstance(each, ErrorOccurred)]
    assert FailureKind.PROTOCOL_ERROR not in errors
