"""Fallbacks after a failed start."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from sessionmgr.manager import RunHandle, open_manager
from sessionmgr.model import ErrorOccurred, FailureKind, ProcessExited, RunStatus
from sessionmgr.store import MemoryStore
from sessionmgr.testing.mock_sdk import MockSdk
from sessionmgr_adapters.claude import ClaudeAdapter, ClaudeOptions
from sessionmgr_adapters.claude.fallback import FIRST_FRAME_TIMEOUT
from sessionmgr_adapters.claude.outgoing import ClaudeUserMessage
from tests.adapters.claude.mock_agent import Talk, heard_prompt
from tests.adapters.claude.mocked_manager import Mock, answer, open_claude_manager, ran


async def codes(run: RunHandle) -> list[str | None]:
    """Return the codes of a run's incidents."""
    return [each.failure.provider_code async for each in run if isinstance(each, ErrorOccurred)]


@pytest.mark.parametrize("how", ["hung", "died"])
@pytest.mark.parametrize("when", ["as it is greeted", "as it is asked"])
async def test_a_child_that_does_not_start_is_replaced_by_one_of_the_runs_own(
    autojump_clock: MockClock, how: str, when: str
) -> None:
    async def script(it: Talk) -> None:
        if len(sdk.connections) != 1:
            await answer(it)
            return
        await (it.heard() if when == "as it is greeted" else heard_prompt(it))
        if how == "died":
            sdk.connections[0].hang_up()

    sdk: Mock = MockSdk(script)
    async with open_claude_manager(sdk) as session:
        began = trio.current_time()
        run = await session.submit("hi")
        assert (await run.result()).status is RunStatus.COMPLETED
        assert await codes(run) == [f"fallback_{how}"]
        assert (trio.current_time() - began >= FIRST_FRAME_TIMEOUT) == (how == "hung")
        assert all(each.is_closed for each in sdk.connections)  # no process is kept
        await ran(session)
        await ran(session)
        assert len(sdk.connections) == 3
        assert not sdk.connections[2].is_closed


async def test_what_was_kept_and_has_not_a_word_to_say_is_replaced(
    autojump_clock: MockClock,
) -> None:
    async def script(it: Talk) -> None:
        if len(sdk.conversations) == 2:
            await trio.sleep_forever()
        await answer(it)

    sdk: Mock = MockSdk(script)
    async with open_claude_manager(sdk) as session:
        first = await ran(session)
        run = await session.submit("hi")
        second = await run.result()
        assert await codes(run) == ["fallback_hung"]
    assert (second.status, second.provider_session_id) == (
        RunStatus.COMPLETED,
        first.provider_session_id,
    )


async def test_what_was_kept_and_is_dead_is_replaced_by_one_that_is_kept_and_no_word_is_said(
    autojump_clock: MockClock,
) -> None:
    async def script(it: Talk) -> None:
        if len(sdk.conversations) == 2:
            await it.heard()
            sdk.connections[0].hang_up()
            return
        await answer(it)

    sdk: Mock = MockSdk(script)
    async with open_claude_manager(sdk) as session:
        await ran(session)
        run = await session.submit("hi")
        assert (await run.result()).status is RunStatus.COMPLETED
        assert await codes(run) == []
        await ran(session)
        assert [each.is_closed for each in sdk.connections] == [True, False]


async def test_the_beginning_of_a_line_is_no_word(autojump_clock: MockClock) -> None:
    async def script(it: Talk) -> None:
        if len(sdk.connections) != 1:
            await answer(it)
            return
        await heard_prompt(it)
        it.says()  # a read without a complete line
        await trio.sleep_forever()

    sdk: Mock = MockSdk(script)
    async with open_claude_manager(sdk) as session:
        run = await session.submit("hi")
        assert (await run.result()).status is RunStatus.COMPLETED
        assert await codes(run) == ["fallback_hung"]


@pytest.mark.parametrize("kept", [False, True])
async def test_a_child_that_goes_before_its_first_word_as_its_run_is_cancelled_is_not_replaced(
    autojump_clock: MockClock, kept: bool
) -> None:
    async def script(it: Talk) -> None:
        if kept and len(sdk.conversations) == 1:
            await answer(it)
            return
        await heard_prompt(it)
        await it.gate("asked")
        sdk.connections[-1].hang_up()

    sdk: Mock = MockSdk(script)
    async with open_claude_manager(sdk) as session:
        if kept:
            await ran(session)
        run = await session.submit("hi")
        await sdk.reached("asked")
        run.cancel()
        sdk.open_gate("asked")
        assert (await run.result()).status is RunStatus.CANCELLED
        assert await codes(run) == []
        await trio.sleep(FIRST_FRAME_TIMEOUT)
        assert len(sdk.connections) == 1


async def test_two_that_hang_are_a_stall(autojump_clock: MockClock) -> None:
    async def script(it: Talk) -> None:
        await trio.sleep_forever()

    sdk: Mock = MockSdk(script)
    async with open_claude_manager(sdk) as session:
        stalled = await ran(session)
    assert stalled.failure is not None
    assert (stalled.status, stalled.failure.kind) == (RunStatus.TIMED_OUT, FailureKind.STALLED)
    assert len(sdk.connections) == 2


async def test_two_that_die_are_a_failure(autojump_clock: MockClock) -> None:
    async def script(it: Talk) -> None:
        await it.heard()
        sdk.connections[-1].hang_up()

    sdk: Mock = MockSdk(script)
    async with open_claude_manager(sdk) as session:
        run = await session.submit("hi")
        assert (await run.result()).status is RunStatus.FAILED
        assert await codes(run) == ["fallback_died"]
    assert len(sdk.connections) == 2


async def test_what_has_said_a_word_is_not_asked_twice(autojump_clock: MockClock) -> None:
    asked: list[ClaudeUserMessage] = []

    async def script(it: Talk) -> None:
        asked.append(await heard_prompt(it))
        sdk.connections[-1].hang_up()

    sdk: Mock = MockSdk(script)
    async with open_claude_manager(sdk) as session:
        assert (await ran(session, keep=False)).status is RunStatus.FAILED
    assert len(asked) == 1


NO_FRAMES = """#!/bin/sh
case "$*" in
  *--version*) echo 2.1.327; exit;;
  *stream-json*) {refusal};;
esac
read -r prompt
echo "heard: $prompt"
"""
REFUSALS = {
    "unknown": "echo \"error: unknown option '--input-format=stream-json'\" >&2; exit 1",
    "bad value": "echo \"error: option '--output-format <f>' argument is invalid\" >&2; exit 1",
    "noise": "echo Welcome; exit 0",
}


def program(place: Path, refusal: str) -> str:
    file = place / "claude"
    file.write_text(NO_FRAMES.replace("{refusal}", refusal))
    file.chmod(0o755)
    return str(file)


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("refusal", REFUSALS)
async def test_one_that_knows_no_frames_is_run_for_its_text(
    tmp_path: Path, refusal: str, keep: bool
) -> None:
    command = (program(tmp_path, REFUSALS[refusal]),)
    options = ClaudeOptions(command=command, keep=keep)
    async with open_manager(adapters={"claude": ClaudeAdapter}) as manager:
        session = await manager.open_session("claude", cwd=tmp_path)
        run = await session.submit("hi", options=options)
        done = await run.result()
        assert (done.status, done.text) == (RunStatus.COMPLETED, "heard: hi"), done.failure
        assert await codes(run) == ["fallback_knows_no_frames"]


async def test_plain_text_is_no_way_round_what_was_asked_for(tmp_path: Path) -> None:
    command = (program(tmp_path, REFUSALS["unknown"]),)
    options = ClaudeOptions(command=command, billing="subscription")
    async with open_manager(adapters={"claude": ClaudeAdapter}) as manager:
        session = await manager.open_session("claude", cwd=tmp_path)
        failure = (await (await session.submit("hi", options=options)).result()).failure
    assert failure is not None
    assert (failure.kind, "options.billing" in failure.message) == (
        FailureKind.CONFIG_INVALID,
        True,
    )


@pytest.mark.parametrize("keep", [True, False])
async def test_a_start_that_says_what_is_wrong_is_not_tried_again(
    tmp_path: Path, keep: bool
) -> None:
    refusal = f"echo x >> {tmp_path}/starts; echo 'unknown option --x' >&2; exit 1"
    options = ClaudeOptions(command=(program(tmp_path, refusal),), keep=keep)
    store = MemoryStore()
    async with open_manager(store=store, adapters={"claude": ClaudeAdapter}) as manager:
        session = await manager.open_session("claude", cwd=tmp_path)
        run = await session.submit("hi", options=options)
        failure = (await run.result()).failure
    assert failure is not None
    assert failure.kind is FailureKind.CONFIG_INVALID
    async with open_manager(store=store, adapters={"claude": ClaudeAdapter}) as manager:
        events = [event async for event in manager.events(run.id)]
    assert [each.exit_code for each in events if isinstance(each, ProcessExited)] == [1]
    assert (tmp_path / "starts").read_text() == "x\n"
