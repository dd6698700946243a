"""The owner of each frame, with a player in place of the app-server."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from sessionmgr.adapter.connections import ConnectionSpec
from sessionmgr.adapter.kit.json_rpc_caller import RpcCall
from sessionmgr.process import Command, open_launcher
from sessionmgr.testing.player import RepeatStep, Step, WriteStep, command_of
from sessionmgr_adapters.codex.frames import CodexMessageDelta
from sessionmgr_adapters.codex.router import MAX_EARLY_FRAMES, MAX_HELD_FRAMES
from sessionmgr_adapters.codex.sdk import connect_codex
from tests.adapters.codex.dialect import OPENED, THREAD
from tests.adapters.codex.test_app_server import (
    CHILD,
    GREETING,
    OTHER,
    answers,
    hears,
    message,
    tells,
)
from tests.adapters.codex.test_lost_servers import together
from tests.adapters.codex.test_open_calls import CLOSED, CallListener, LeftCallStage, signs, stage

START = RpcCall(1, "thread/start", {})
RESUME = RpcCall(1, "thread/resume", {"threadId": THREAD})
OTHER_OPENED = {**OPENED, "thread": {"id": OTHER}}


def adopts(child: str, caller: str) -> Step:
    return tells("thread/started", child, thread={"id": child, "parentThreadId": caller})


async def heard_by_one_on_a_thread(it: LeftCallStage) -> str:
    """Return everything that a conversation on THREAD receives."""
    ear = CallListener()
    await (await it.connection.open(None, ear)).send(START)
    await it.until("done")
    return str(ear.heard)


async def test_texts_that_come_in_one_read_are_each_for_their_own(tmp_path: Path) -> None:
    def piece(thread: str, text: str) -> WriteStep:
        return tells("item/agentMessage/delta", thread, turnId="t", itemId="m", delta=text)

    async with stage(
        tmp_path,
        hears("thread/start"),
        answers(3, OPENED),
        hears("thread/start"),
        answers(4, OTHER_OPENED),
        signs("opened"),
        hears("config/read"),
        together(piece(THREAD, "one"), piece(OTHER, "two")),
        hears("config/read"),
    ) as it:
        ears = CallListener(), CallListener()
        for each in ears:
            await (await it.connection.open(None, each)).send(START)
        await it.until("opened")
        await it.stays.send(RpcCall(1, "config/read", {}))
        await ears[0].until("one")
        await it.stays.send(RpcCall(2, "config/read", {}))
        await it.until("done")
    pieces = [
        [each.delta for each in ear.heard if isinstance(each, CodexMessageDelta)] for ear in ears
    ]
    assert pieces == [["one"], ["two"]]


@pytest.mark.parametrize("is_too_much", [False, True])
async def test_of_threads_that_nobody_knows_so_much_is_kept_and_of_the_oldest_nothing(
    tmp_path: Path, is_too_much: bool
) -> None:
    others = (
        MAX_HELD_FRAMES - 2 + is_too_much
    )  # beside the first text, and the notice that names the thread's caller
    async with stage(
        tmp_path,
        hears("thread/start"),
        answers(3, OPENED),
        message("the first word", CHILD),
        RepeatStep(message("of nobody", OTHER).data, others),
        adopts(CHILD, THREAD),
        message("the last word", CHILD),
    ) as it:
        heard = await heard_by_one_on_a_thread(it)
    assert ("the first word" in heard, "the last word" in heard) == (not is_too_much, True)


async def test_what_came_before_there_was_anyone_is_kept_for_who_comes_first(
    tmp_path: Path,
) -> None:
    flood = RepeatStep(signs("early").data, MAX_EARLY_FRAMES + 1)
    argv = command_of([*GREETING, flood], tmp_path / "playbook.json")
    command = Command(argv=argv, cwd=str(tmp_path), env={})
    first, second = CallListener(), CallListener()
    with trio.fail_after(20):
        async with (
            open_launcher() as launcher,
            connect_codex(ConnectionSpec(launcher=launcher, command=command)) as connection,
        ):
            await connection.wait_closed()
            await connection.open(None, first)
            await connection.open(None, second)
    assert (str(first.heard).count("early"), str(second.heard).count("early")) == (
        MAX_EARLY_FRAMES,
        0,
    )


async def test_what_was_kept_of_a_thread_is_no_agents_of_who_comes_when_all_have_left(
    tmp_path: Path,
) -> None:
    async with stage(
        tmp_path,
        hears("thread/start"),
        answers(3, OTHER_OPENED),
        message("long ago", CHILD),
        signs("asked"),
        hears("thread/unsubscribe", threadId=OTHER),
        hears("thread/start"),
        answers(5, OPENED),
        adopts(CHILD, THREAD),
        message("now", CHILD),
    ) as it:
        await it.leave(START)
        heard = await heard_by_one_on_a_thread(it)
    assert ("long ago" in heard, "now" in heard) == (False, True)


async def test_what_comes_of_a_thread_that_is_given_back_is_nobodys(tmp_path: Path) -> None:
    async with stage(
        tmp_path,
        hears("thread/start"),
        answers(3, OTHER_OPENED),
        hears("thread/start"),
        answers(4, OPENED),
        signs("asked"),
        hears("thread/unsubscribe", threadId=THREAD),
        message("too late"),
        answers(5, {}),
        CLOSED,
        hears("thread/resume"),
        answers(6, OPENED),
        message("again"),
    ) as it:
        await it.stays.send(START)
        await it.leave(START)
        ear = CallListener()
        await (await it.connection.open(None, ear)).send(RESUME)
        await it.until("done")
    assert ("too late" in str(ear.heard), "again" in str(ear.heard)) == (False, True)


async def test_a_thread_that_is_closed_while_it_is_kept_is_opened_again(tmp_path: Path) -> None:
    async with stage(
        tmp_path,
        hears("thread/start"),
        answers(3, OPENED),
        signs("opened"),
        hears("config/read"),
        CLOSED,
        signs("closed"),
        hears("thread/resume", threadId=THREAD),
    ) as it:
        conversation = await it.connection.open(None, CallListener())
        await conversation.send(START)
        await it.until("opened")
        conversation.close(keep=True)
        await it.stays.send(RpcCall(1, "config/read", {}))
        await it.until("closed")
        await it.stays.send(RESUME)


async def test_what_comes_of_a_thread_that_was_closed_is_heard_by_the_run_that_is_on_it(
    tmp_path: Path,
) -> None:
    async with stage(
        tmp_path, hears("thread/start"), answers(3, OPENED), CLOSED, message("after that")
    ) as it:
        assert "after that" in await heard_by_one_on_a_thread(it)
