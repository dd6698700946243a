"""Open calls of a conversation that closes: their effects are undone.

A player replaces the app-server. It exits with an error if it receives anything other than its
steps expect, in this order.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from sessionmgr.adapter.connections import ConnectionSpec
from sessionmgr.adapter.kit.json_rpc_caller import PeerReply, RpcCall
from sessionmgr.adapter.kit.json_rpc_peer import IN_FLIGHT
from sessionmgr.process import Command, open_launcher
from sessionmgr.testing.player import ExpectStep, Step, UntilClosedStep, WriteStep, command_of
from sessionmgr_adapters.codex.conversation import CodexConversation
from sessionmgr_adapters.codex.frames import CodexFrame
from sessionmgr_adapters.codex.sdk import CodexConnection, connect_codex
from tests.adapters.codex.dialect import OPENED, THREAD
from tests.adapters.codex.test_app_server import GREETING, answers, hears, says, tells, turn_of

CLOSED: Step = tells("thread/closed")


def signs(word: str) -> WriteStep:
    """Return a notice about no thread, which all conversations receive."""
    return tells("configWarning", "", summary=word)


class CallListener:
    """A driver that records the frames pushed into it."""

    def __init__(self) -> None:
        self.heard: list[CodexFrame] = []
        self.has_ended = False
        self._news = trio.Event()

    def feed(self, frames: Sequence[CodexFrame], size: int) -> None:
        self.heard += frames
        self._tell()

    def crash(self, error: Exception) -> None:
        raise error

    def end(self) -> None:
        self.has_ended = True
        self._tell()

    async def room(self) -> None:
        await trio.lowlevel.checkpoint()

    def _tell(self) -> None:
        self._news.set()
        self._news = trio.Event()

    async def until(self, word: str) -> None:
        while not any(word in str(each) for each in self.heard):
            assert not self.has_ended, "it has heard something else, and is gone"
            await self._news.wait()


class LeftCallStage:
    """An app-server, and a conversation that stays open on it."""

    def __init__(
        self, connection: CodexConnection, stays: CodexConversation, ear: CallListener
    ) -> None:
        self.connection = connection
        self.stays = stays
        self.until = ear.until

    async def leave(self, *calls: RpcCall) -> None:
        """Open a conversation that closes after its calls have arrived."""
        conversation = await self.connection.open(None, CallListener())
        for each in calls:
            await conversation.send(each)
        await self.until("asked")
        conversation.close()


@asynccontextmanager
async def stage(tmp_path: Path, *steps: Step) -> AsyncGenerator[LeftCallStage]:
    book = [*GREETING, signs("greeted"), *steps, signs("done"), UntilClosedStep()]
    argv = command_of(book, tmp_path / "playbook.json")
    ear = CallListener()
    with trio.fail_after(20):
        async with open_launcher() as launcher:
            command = Command(argv=argv, cwd=str(tmp_path), env={})
            async with connect_codex(
                ConnectionSpec(launcher=launcher, command=command)
            ) as connection:
                stays = await connection.open(None, ear)
                await ear.until("greeted")
                yield LeftCallStage(connection, stays, ear)
                await ear.until("done")


async def test_a_turn_that_begins_when_its_run_has_left_is_interrupted(tmp_path: Path) -> None:
    async with stage(
        tmp_path,
        hears("thread/start"),
        answers(3, OPENED),
        signs("opened"),
        hears("turn/start"),
        signs("asked"),
        hears("thread/unsubscribe", threadId=THREAD),
        answers(4, {"turn": {"id": "t"}}),
        hears("turn/interrupt", threadId=THREAD, turnId="t"),
    ) as it:
        conversation = await it.connection.open(None, CallListener())
        await conversation.send(RpcCall(1, "thread/start", {}))
        await it.until("opened")
        await conversation.send(RpcCall(2, "turn/start", {"threadId": THREAD}))
        await it.until("asked")
        conversation.close()


async def test_a_turn_that_has_begun_when_its_run_leaves_is_interrupted(tmp_path: Path) -> None:
    async with stage(
        tmp_path,
        hears("thread/start"),
        answers(3, OPENED),
        signs("opened"),
        hears("turn/start"),
        turn_of(THREAD, "t"),
        signs("asked"),
        hears("turn/interrupt", threadId=THREAD, turnId="t"),
        answers(5, {}),
        hears("thread/backgroundTerminals/clean", threadId=THREAD),
        answers(6, {}),
        hears("thread/unsubscribe", threadId=THREAD),
    ) as it:
        conversation = await it.connection.open(None, CallListener())
        await conversation.send(RpcCall(1, "thread/start", {}))
        await it.until("opened")
        await conversation.send(RpcCall(2, "turn/start", {"threadId": THREAD}))
        await it.until("asked")
        conversation.close(keep=True)


@pytest.mark.parametrize("method", ["thread/start", "thread/fork"])
async def test_a_thread_that_is_opened_when_its_run_has_left_is_given_back(
    tmp_path: Path, method: str
) -> None:
    async with stage(
        tmp_path,
        hears(method),
        signs("asked"),
        hears("config/read"),
        answers(3, OPENED),
        hears("thread/unsubscribe", threadId=THREAD),
    ) as it:
        await it.leave(RpcCall(1, method, {"threadId": "another"}))
        await it.stays.send(RpcCall(1, "config/read", {}))


@pytest.mark.parametrize("is_refused", [False, True], ids=["opened", "refused"])
async def test_a_thread_that_one_that_has_left_is_about_to_open_is_opened_after_that(
    tmp_path: Path, is_refused: bool
) -> None:
    refused: list[Step] = [says({"id": 3, "error": {"code": -32600, "message": "no"}})]
    given_back: list[Step] = [
        answers(3, OPENED),
        hears("thread/unsubscribe", threadId=THREAD),
        answers(5, {}),
        CLOSED,
    ]
    resume = RpcCall(1, "thread/resume", {"threadId": THREAD})
    async with (
        stage(
            tmp_path,
            hears("thread/resume"),
            signs("asked"),
            hears("config/read"),
            *(refused if is_refused else given_back),
            hears("thread/resume", threadId=THREAD),
        ) as it,
        trio.open_nursery() as nursery,
    ):
        await it.leave(resume)
        nursery.start_soon((await it.connection.open(None, CallListener())).send, resume)
        await wait_all_tasks_blocked()
        await it.stays.send(RpcCall(1, "config/read", {}))


async def test_a_thread_that_one_that_has_left_is_about_to_fork_is_opened_at_once(
    tmp_path: Path,
) -> None:
    async with stage(
        tmp_path, hears("thread/fork"), signs("asked"), hears("thread/resume", threadId=THREAD)
    ) as it:
        await it.leave(RpcCall(1, "thread/fork", {"threadId": THREAD}))
        await it.stays.send(RpcCall(1, "thread/resume", {"threadId": THREAD}))


async def test_a_refused_fork_of_a_closed_conversation_does_not_end_the_wait_for_its_source(
    tmp_path: Path,
) -> None:
    resume = RpcCall(1, "thread/resume", {"threadId": THREAD})
    async with (
        stage(
            tmp_path,
            hears("thread/start"),
            answers(3, OPENED),
            signs("opened"),
            hears("thread/unsubscribe", threadId=THREAD),
            hears("thread/fork", threadId=THREAD),
            signs("asked"),
            hears("config/read"),
            says({"id": 5, "error": {"code": -32600, "message": "no"}}),
            signs("refused"),
            hears("model/list"),
            answers(4, {}),
            CLOSED,
            hears("thread/resume", threadId=THREAD),
        ) as it,
        trio.open_nursery() as nursery,
    ):
        first = await it.connection.open(None, CallListener())
        await first.send(RpcCall(1, "thread/start", {}))
        await it.until("opened")
        first.close()
        await wait_all_tasks_blocked()
        await it.leave(RpcCall(1, "thread/fork", {"threadId": THREAD}))
        nursery.start_soon((await it.connection.open(None, CallListener())).send, resume)
        await wait_all_tasks_blocked()
        await it.stays.send(RpcCall(1, "config/read", {}))
        await it.until("refused")
        await wait_all_tasks_blocked()
        await it.stays.send(RpcCall(2, "model/list", {}))


async def test_calls_of_one_that_has_left_take_no_room(tmp_path: Path) -> None:
    calls = [RpcCall(number, "config/read", {}) for number in range(IN_FLIGHT)]
    async with stage(
        tmp_path, *(hears("config/read") for _ in calls), signs("asked"), hears("model/list")
    ) as it:
        await it.leave(*calls)
        await it.stays.send(RpcCall(1, "model/list", {}))


async def test_a_call_that_waits_for_room_when_its_run_leaves_is_not_sent_and_takes_none(
    tmp_path: Path,
) -> None:
    async with (
        stage(
            tmp_path,
            *(hears("config/read") for _ in range(IN_FLIGHT)),
            signs("asked"),
            ExpectStep({"id": "a reply needs no room"}),
            answers(3, {}),
            hears("model/list"),
        ) as it,
        trio.open_nursery() as nursery,
    ):
        for number in range(IN_FLIGHT):
            await it.stays.send(RpcCall(number, "config/read", {}))
        await it.until("asked")
        leaves = await it.connection.open(None, CallListener())
        nursery.start_soon(leaves.send, RpcCall(1, "thread/start", {}))
        await wait_all_tasks_blocked()
        leaves.close()
        await it.stays.send(PeerReply("a reply needs no room"))
        await it.stays.send(RpcCall(IN_FLIGHT, "model/list", {}))


async def test_a_turn_that_was_interrupted_before_it_began_is_ended_once_it_has(
    tmp_path: Path,
) -> None:
    async with stage(
        tmp_path,
        hears("thread/start"),
        answers(3, OPENED),
        signs("opened"),
        hears("turn/start"),
        turn_of(THREAD, "t"),
        hears("turn/interrupt", threadId=THREAD, turnId="t"),
        answers(5, {}),
        turn_of(THREAD, "t", "completed"),
        turn_of(THREAD, "of another"),
        signs("begun"),
        hears("config/read"),
    ) as it:
        conversation = await it.connection.open(None, CallListener())
        await conversation.send(RpcCall(1, "thread/start", {}))
        await it.until("opened")
        await conversation.interrupt()
        await conversation.send(RpcCall(2, "turn/start", {"threadId": THREAD}))
        await it.until("begun")
        await it.stays.send(RpcCall(1, "config/read", {}))


async def test_a_thread_whose_turn_is_over_stays_loaded_for_the_next_that_wants_it(
    tmp_path: Path,
) -> None:
    async with stage(
        tmp_path,
        hears("thread/start"),
        answers(3, OPENED),
        turn_of(THREAD, "t"),
        turn_of(THREAD, "t", "completed"),
        signs("over"),
        hears("turn/start", threadId=THREAD),
    ) as it:
        conversation = await it.connection.open(None, CallListener())
        await conversation.send(RpcCall(1, "thread/start", {}))
        await it.until("over")
        conversation.close(keep=True)
        await it.stays.send(RpcCall(1, "thread/resume", {"threadId": THREAD}))
        await it.stays.send(RpcCall(2, "turn/start", {"threadId": THREAD}))


async def test_one_that_comes_when_the_app_server_is_gone_is_told_so_at_once(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path) as it:
        await it.until("done")
        await it.connection.aclose()
        late = CallListener()
        await it.connection.open(None, late)
        assert late.has_ended
