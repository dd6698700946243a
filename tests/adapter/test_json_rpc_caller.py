"""Requests of one driver to a JSON-RPC server: each ends with an answer or at its deadline."""

import trio
from trio.testing import MockClock

from sessionmgr.adapter.kit.json_rpc_caller import JsonRpcCaller, RpcAnswer, RpcCall
from sessionmgr.adapter.kit.json_rpc_peer import DEADLINE
from sessionmgr.model import Json


async def send(call: RpcCall) -> None:
    await trio.lowlevel.checkpoint()


async def test_a_call_that_is_over_is_forgotten(autojump_clock: MockClock) -> None:
    caller = JsonRpcCaller(send, lambda _: False)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(caller.call, "look", dict[str, Json]())
        await trio.testing.wait_all_tasks_blocked()
        assert len(caller) == 1
        caller.resolve(RpcAnswer(1, "look", b"true"))
    assert len(caller) == 0
    with trio.move_on_after(1):
        await caller.call("look", {})
    assert len(caller) == 0
    with trio.fail_after(DEADLINE + 1):
        answer = await caller.call("look", {})
    assert answer.refusal is not None
    assert caller.is_unresponsive
    assert len(caller) == 0
