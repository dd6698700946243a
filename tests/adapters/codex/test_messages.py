"""Messages to a running turn."""

from __future__ import annotations

from sessionmgr.adapter.kit.json_rpc_caller import RpcCall
from sessionmgr.manager import open_manager
from sessionmgr.model import (
    Json,
    MessageReceived,
)
from sessionmgr.store import MemoryStore
from sessionmgr.testing.mock_sdk import MockSdk, with_sdk
from sessionmgr_adapters.codex import CodexAdapter
from sessionmgr_adapters.codex.frames import ItemStartedNotice
from sessionmgr_adapters.codex.items import UserMessageItem
from tests.adapters.codex.mock_agent import (
    TURN,
    Talk,
    begin,
    end,
    opening,
    result,
    text,
    thread_of,
)
from tests.adapters.codex.mocked_manager import manager_of


async def test_a_message_that_was_taken_and_not_heard_is_said_again() -> None:
    async def distracted(it: Talk) -> None:
        call = await opening(it)
        thread = thread_of(call)
        begin(it, call)
        it.says(*text(thread, "one"))
        steer = await it.heard()
        assert isinstance(steer, RpcCall)
        assert (steer.method, steer.params["expectedTurnId"]) == ("turn/steer", TURN)
        it.says(result(steer, {"turnId": TURN}))
        end(it, thread)
        again = await it.heard()
        assert isinstance(again, RpcCall)
        assert again.method == "turn/start"
        assert again.params["input"] == [{"type": "text", "text": "more", "text_elements": []}]
        begin(it, again, "turn-2")
        it.says(*text(thread, "two"))
        end(it, thread, turn="turn-2")

    async with manager_of(distracted) as manager:
        session = await manager.open_session("codex")
        run = await session.submit("hi")
        async for event in run:
            if isinstance(event, MessageReceived) and event.content == "one":
                follow_up = await run.append("more")
                assert follow_up.run is run
        done = await run.result()
    assert (done.status, done.text, done.turns) == ("completed", "two", 2)


async def test_a_message_that_was_written_down_at_the_end_of_a_turn_is_answered_in_another() -> (
    None
):
    """Codex accepts it after the model's last word, and does not send it to the model."""

    async def late(it: Talk) -> None:
        call = await opening(it)
        thread = thread_of(call)
        begin(it, call)
        it.says(*text(thread, "one"))
        steer = await it.heard()
        assert isinstance(steer, RpcCall)
        name = str(steer.params["clientUserMessageId"])
        it.says(result(steer, {"turnId": TURN}))
        it.says(ItemStartedNotice(thread_id=thread, item=UserMessageItem(id="u", client_id=name)))
        end(it, thread)
        again = await it.heard()
        assert isinstance(again, RpcCall)
        assert (again.method, again.params["input"]) == ("turn/start", [])  # already sent
        begin(it, again, "turn-2")
        it.says(*text(thread, "two"))
        end(it, thread, turn="turn-2")

    async with manager_of(late) as manager:
        run = await (await manager.open_session("codex")).submit("hi")
        async for event in run:
            if isinstance(event, MessageReceived) and event.content == "one":
                assert (await run.append("more")).accepted
        done = await run.result()
    assert (done.status, done.text, done.turns) == ("completed", "two", 2)


async def test_a_message_for_later_is_a_run_of_its_own() -> None:
    prompts: list[Json] = []

    async def simple(it: Talk) -> None:
        call = await opening(it)
        prompts.append(call.params["input"])
        thread = thread_of(call)
        begin(it, call)
        it.says(*text(thread, "one"))
        await it.gate("on")
        end(it, thread)

    async with (
        MockSdk(simple) as sdk,
        open_manager(
            store=MemoryStore(), adapters={"codex": with_sdk(CodexAdapter, sdk)}
        ) as manager,
    ):
        session = await manager.open_session("codex")
        run = await session.submit("hi", options={"follow_up": "later"})
        await sdk.reached("on")
        follow_up = await run.append("more")
        assert follow_up.run is not run
        sdk.open_gate("on")
        assert (await follow_up.run.result()).status == "completed"
    assert len(prompts) == 2
