"""Lost app-servers: whether a run is started again, and what other runs receive."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from trio.testing import MockClock

from sessionmgr.adapter.kit.json_rpc_caller import RpcAnswer, RpcCall, RpcOutgoing
from sessionmgr.manager import RunHandle, open_manager
from sessionmgr.model import Event, FailureKind, Json
from sessionmgr.store import MemoryStore
from sessionmgr.testing.mock_sdk import MockSdk, with_sdk
from sessionmgr.testing.player import Step, WriteStep
from sessionmgr_adapters.codex import CodexAdapter, driver, router
from sessionmgr_adapters.codex.conversation import CodexConversation
from sessionmgr_adapters.codex.frames import CodexFrame
from sessionmgr_adapters.codex.normalise import normalise
from sessionmgr_adapters.codex.router import called_threads
from sessionmgr_adapters.codex.state import CodexState
from tests.adapters.codex.dialect import OPENED, SETTLED, THREAD
from tests.adapters.codex.mock_agent import (
    HELLO,
    Talk,
    begin,
    end,
    opened,
    opening,
    refusal,
    settled,
    text,
    thread_of,
)
from tests.adapters.codex.mocked_manager import failure, play
from tests.adapters.codex.test_app_server import (
    GREETING,
    OTHER,
    answers,
    hears,
    message,
    playing,
    tells,
)


async def kept(it: Talk) -> RpcCall:
    """Resume a cached thread, as the connection does; return the call that starts the turn.

    The connection answers for Codex, which has not sent anything yet and may be dead.
    """
    it.says(HELLO)
    call = await it.heard()
    assert isinstance(call, RpcCall)
    assert call.method == "thread/resume"
    sandbox: Json = {"type": "readOnly", "networkAccess": False}
    params = {**call.params, "sandboxPolicy": sandbox, "approvalPolicy": "never"}
    found = opened(RpcCall(call.id, call.method, {**params, "sandbox": "read-only"}))
    it.says(RpcAnswer(call.id, call.method, found.result, is_remembered=True))
    turn = await it.heard()
    assert isinstance(turn, RpcCall)
    assert turn.method == "turn/start"
    return turn


@pytest.mark.parametrize("says", ["nothing", "something"])
async def test_a_kept_thread_whose_server_was_dead_goes_on_in_another(
    autojump_clock: MockClock, says: str
) -> None:
    scripts: list[Talk] = []

    async def agent(it: Talk) -> None:
        scripts.append(it)
        if len(scripts) == 2:
            call = await kept(it)
            if says == "something":
                it.says(settled(RpcCall(0, "", {**call.params, **SANDBOX})))
            sdk.connections[0].hang_up()
            return
        call = await opening(it)
        begin(it, call)
        it.says(*text(thread_of(call), "well"))
        end(it, thread_of(call))

    async with (
        MockSdk[RpcOutgoing, CodexFrame](agent) as sdk,
        open_manager(
            store=MemoryStore(),
            adapters={"codex": with_sdk(CodexAdapter, sdk)},
            environ={"HOME": "/nowhere"},
        ) as manager,
    ):
        session = await manager.open_session("codex", permission_mode="plan")
        assert (await (await session.submit("one")).result()).status == "completed"
        result = await (await session.submit("two")).result()
    if says == "nothing":
        assert (result.status, result.text, len(sdk.connections)) == ("completed", "well", 2)
    else:
        assert (result.status, len(sdk.connections)) == ("failed", 1)
        assert result.failure is not None
        assert result.failure.kind is FailureKind.PROTOCOL_ERROR


SANDBOX: dict[str, Json] = {"approvalPolicy": "never", "sandboxPolicy": {"type": "readOnly"}}


async def test_a_prompt_that_was_sent_to_a_thread_just_opened_is_not_sent_again(
    autojump_clock: MockClock,
) -> None:
    scripts: list[Talk] = []

    async def agent(it: Talk) -> None:
        scripts.append(it)
        call = await opening(it)
        if len(scripts) == 2:
            it.ends()
            return
        begin(it, call)
        end(it, thread_of(call))

    async with (
        MockSdk[RpcOutgoing, CodexFrame](agent) as sdk,
        open_manager(
            store=MemoryStore(),
            adapters={"codex": with_sdk(CodexAdapter, sdk)},
            environ={"HOME": "/nowhere"},
        ) as manager,
    ):
        first, second = [await manager.open_session("codex") for _ in range(2)]
        assert (await (await first.submit("one")).result()).status == "completed"
        assert (await (await second.submit("two")).result()).status == "failed"
    assert len(scripts) == 2


TWO_RUNS: list[Step] = [
    *GREETING,
    hears("config/read"),
    answers(3, {"config": {}}),
    hears("thread/start"),
    answers(4, {**OPENED, "thread": {"id": OTHER}}),
    hears("thread/settings/update"),
    answers(5, {}),
    tells("thread/settings/updated", OTHER, threadSettings=SETTLED),
    hears("turn/start"),
    answers(6, {"turn": {"id": "t"}}),
    hears("thread/start"),
    answers(7, OPENED),
    hears("thread/settings/update"),
    answers(8, {}),
    tells("thread/settings/updated", threadSettings=SETTLED),
    hears("turn/start"),
    answers(9, {"turn": {"id": "t"}}),
]


def together(*messages: WriteStep) -> WriteStep:
    """Return one write of several messages, so that they arrive in one read."""
    return WriteStep(b"".join(each.data for each in messages))


@asynccontextmanager
async def two_runs(
    tmp_path: Path, steps: list[Step]
) -> AsyncGenerator[tuple[RunHandle, RunHandle], None]:
    """Start a run on THREAD, after one on OTHER, on one app-server."""
    async with playing(tmp_path, steps) as (manager, options):
        other = await (await manager.open_session("codex", cwd=tmp_path)).submit(
            "one", options=options
        )
        async for event in other:
            if event.type == "run_started":
                break
        session = await manager.open_session("codex", cwd=tmp_path)
        yield await session.submit("two", options=options), other


async def neighbour_of_a_crash(tmp_path: Path) -> None:
    """Send frames of two runs in one read; the first run crashes, the second gets its own."""
    steps: list[Step] = [
        *TWO_RUNS,
        # Not a message: the connection does not inspect output of the model.
        together(
            tells("thread/name/updated", THREAD, name="-"),
            tells("warning", THREAD, message="too much"),
            message("on", OTHER),
        ),
        hears("thread/unsubscribe", threadId=THREAD),
        answers(10, {"status": "unsubscribed"}),
        tells("thread/closed", THREAD),
        tells("turn/completed", OTHER, turn={"id": "t", "status": "completed"}),
    ]
    async with two_runs(tmp_path, steps) as (run, other):
        crashed, result = await run.result(), await other.result()
    assert crashed.failure is not None
    assert crashed.failure.kind is FailureKind.ADAPTER_CRASHED
    assert (result.status, result.text) == ("completed", "on"), result


async def test_a_frame_that_crashes_one_run_costs_its_neighbour_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(frame: CodexFrame, state: CodexState) -> list[Event]:
        if "too much" in str(frame):
            raise RuntimeError("this frame is too much")
        return normalise(frame, state)

    monkeypatch.setattr(driver, "normalise", crash)
    await neighbour_of_a_crash(tmp_path)


async def test_a_frame_that_the_connection_crashes_at_costs_its_neighbour_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(conversation: CodexConversation, frame: CodexFrame) -> None:
        if "too much" in str(frame):
            raise RuntimeError("this frame is too much")
        note(conversation, frame)

    note = CodexConversation.note
    monkeypatch.setattr(CodexConversation, "note", crash)
    await neighbour_of_a_crash(tmp_path)


async def test_a_thread_that_cannot_be_routed_costs_its_neighbour_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(frame: CodexFrame) -> tuple[str, list[str]]:
        if "too much" in str(frame):
            raise RuntimeError("this frame is too much")
        return called_threads(frame)

    monkeypatch.setattr(router, "called_threads", crash)
    await neighbour_of_a_crash(tmp_path)


async def test_texts_that_stream_at_the_same_time_do_not_mix(tmp_path: Path) -> None:
    def piece(thread: str, text: str) -> WriteStep:
        return tells("item/agentMessage/delta", thread, turnId="t", itemId="m", delta=text)

    ended = {"id": "t", "status": "completed"}
    steps: list[Step] = [
        *TWO_RUNS,
        together(
            piece(THREAD, "a"),
            piece(THREAD, "b"),
            piece(OTHER, "c"),
            message("said", OTHER),
            piece(OTHER, "d"),
            piece("nobody's", "e"),
            piece(THREAD, "f"),
            piece(THREAD, "g"),
            tells("turn/completed", THREAD, turn=ended),
            tells("turn/completed", OTHER, turn=ended),
        ),
    ]
    async with two_runs(tmp_path, steps) as runs:
        told = [[(e.type, getattr(e, "delta", None)) async for e in run] for run in runs]
    pieces = [[delta for kind, delta in each if kind == "message_streamed"] for each in told]
    assert pieces == [["a", "b", "f", "g"], ["c", "d"]]
    types = [kind for kind, _ in told[1] if kind in {"message_streamed", "message_received"}]
    assert types == ["message_streamed", "message_received", "message_streamed"]


async def test_a_turn_that_is_refused_says_why(autojump_clock: MockClock) -> None:
    async def agent(it: Talk) -> None:
        it.says(refusal(await opening(it), "input is too long"))

    kind, why = failure(await play(agent))
    assert kind is FailureKind.CONFIG_INVALID
    assert why == "Codex refused turn/start: input is too long"
