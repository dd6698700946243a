"""Requests to a JSON-RPC peer: each gets an answer in time, and few are open at once."""

import math

import msgspec
import pytest
import trio
from hypothesis import given, strategies as st
from trio.testing import MockClock, wait_all_tasks_blocked

from sessionmgr.adapter.kit.json_rpc_caller import (
    NO_SUCH_METHOD,
    PeerReply,
    RpcAnswer,
    RpcCall,
    RpcRefusal,
)
from sessionmgr.adapter.kit.json_rpc_peer import BUSY, DEADLINE, PEER_GONE, JsonRpcPeer
from sessionmgr.model import Json
from sessionmgr.wire import RpcErrorResponse, RpcId, RpcNotification, RpcResponse


class PeerLine:
    """Records the messages written to a peer; it can be full."""

    def __init__(self) -> None:
        self.written: list[dict[str, Json]] = []
        self.is_full = False

    def write(self, line: bytes) -> bool:
        if not self.is_full:
            self.written.append(msgspec.json.decode(line))
        return not self.is_full

    @property
    def ids(self) -> list[Json]:
        return [each["id"] for each in self.written]


async def asked(peer: JsonRpcPeer[str], found: list[object], deadline: float = DEADLINE) -> None:
    found.append(await peer.request("look", {"at": 1}, deadline=deadline))


async def test_a_request_gets_its_own_answer_in_any_order(autojump_clock: MockClock) -> None:
    line, first, second = PeerLine(), list[object](), list[object]()
    peer = JsonRpcPeer[str](line.write)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(asked, peer, first)
        await wait_all_tasks_blocked()
        nursery.start_soon(asked, peer, second)
        await wait_all_tasks_blocked()
        assert line.written[0] == {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "look",
            "params": {"at": 1},
        }
        assert peer.resolve(RpcResponse(2, b"true")) is None
        assert peer.resolve(RpcErrorResponse(1, -1, "no")) is None
        assert peer.resolve(RpcResponse(7, b"true")) is None  # no such request is open
    assert first == [RpcErrorResponse(1, -1, "no")]
    assert second == [RpcResponse(2, b"true")]


async def test_an_answer_that_does_not_come_in_time_is_an_error(autojump_clock: MockClock) -> None:
    found: list[object] = []
    peer = JsonRpcPeer[str](PeerLine().write)
    await asked(peer, found, deadline=5)
    assert found == [RpcErrorResponse(1, None, "no answer within 5 seconds")]
    assert peer.resolve(RpcResponse(1, b"1")) is None  # a late answer does no harm


async def test_a_request_without_an_answer_leaves_room_for_the_next(
    autojump_clock: MockClock,
) -> None:
    line, found = PeerLine(), list[object]()
    peer = JsonRpcPeer[str](line.write, in_flight=1)
    with trio.fail_after(60):
        for _ in range(3):
            await asked(peer, found, deadline=5)
    assert len(line.written) == len(found) == 3


async def test_no_more_are_in_flight_than_may_be(autojump_clock: MockClock) -> None:
    line, found = PeerLine(), list[object]()
    peer = JsonRpcPeer[str](line.write, in_flight=2)
    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(asked, peer, found, math.inf)
        for wanted in (2, 3, 4, 5, 5):
            await wait_all_tasks_blocked()
            assert len(line.written) == wanted
            peer.resolve(RpcResponse(len(found) + 1, b"1"))
    assert len(found) == 5


async def test_what_is_asked_for_another_comes_back_with_its_ticket(
    autojump_clock: MockClock,
) -> None:
    line = PeerLine()
    peer = JsonRpcPeer[str](line.write, in_flight=1)
    await peer.slot()
    assert peer.send("look", None, "of run 1") == 1
    assert peer.sent == {1: "of run 1"}
    assert peer.resolve(RpcResponse(1, b"1")) == "of run 1"
    assert peer.resolve(RpcResponse(1, b"1")) is None  # it has an answer already
    await peer.slot()  # its slot is free again
    line.is_full = True
    assert peer.send("look", None, "of run 2") is None
    assert peer.sent == {}
    await peer.slot()
    peer.release_slot()
    await peer.slot()


async def test_a_request_on_behalf_of_another_needs_a_slot_of_its_own() -> None:
    line = PeerLine()
    peer = JsonRpcPeer[str](line.write, in_flight=1)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="slot"):
            peer.send("look", None, "of run 1")
    with pytest.raises(RuntimeError, match="slot"):
        peer.release_slot()
    await peer.slot()
    peer.send("look", None, "of run 1")
    peer.resolve(RpcResponse(1, b"1"))
    await peer.slot()
    assert not peer.slot_nowait()
    with trio.move_on_after(0) as waiting:
        await peer.slot()
    assert waiting.cancelled_caught
    assert line.ids == [1]


async def test_the_wait_for_a_slot_is_part_of_the_deadline(autojump_clock: MockClock) -> None:
    line, found = PeerLine(), list[object]()
    peer = JsonRpcPeer[str](line.write, in_flight=1)
    await peer.slot()
    peer.send("look", None, "of run 1")
    with trio.fail_after(6):
        await asked(peer, found, deadline=5)
    assert found == [RpcErrorResponse(None, None, "no answer within 5 seconds")]
    assert line.ids == [1]
    peer.resolve(RpcResponse(1, b"1"))
    assert peer.slot_nowait()


async def test_what_was_asked_of_a_peer_that_is_gone_is_over_at_once(
    autojump_clock: MockClock,
) -> None:
    line, found = PeerLine(), list[object]()
    peer = JsonRpcPeer[str](line.write, in_flight=1)
    with trio.fail_after(1):
        async with trio.open_nursery() as nursery:
            for _ in range(2):
                nursery.start_soon(asked, peer, found)
            await wait_all_tasks_blocked()
            peer.end()
        await asked(peer, found)
    assert line.ids == [1]
    assert [each.message for each in found if isinstance(each, RpcErrorResponse)] == [PEER_GONE] * 3


async def test_a_peer_that_does_not_read_is_busy(autojump_clock: MockClock) -> None:
    line, found = PeerLine(), list[object]()
    line.is_full = True
    peer = JsonRpcPeer[str](line.write)
    await asked(peer, found)
    assert isinstance(found[0], RpcErrorResponse)
    assert found[0].code == BUSY
    async with trio.open_nursery() as nursery:
        nursery.start_soon(peer.notify_later, RpcResponse(9, b"1"))
        await trio.sleep(1)
        line.is_full = False
    assert line.ids == [9]


async def test_what_is_insisted_on_is_asked_again_while_the_peer_is_busy(
    autojump_clock: MockClock,
) -> None:
    line = PeerLine()
    peer = JsonRpcPeer[str](line.write)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(peer.request_with_retries, "stop", None)
        for number in (1, 2):
            await wait_all_tasks_blocked()
            peer.resolve(RpcErrorResponse(number, BUSY, "later"))
            await trio.sleep(1)
        peer.resolve(RpcErrorResponse(3, -32600, "never"))
    assert line.ids == [1, 2, 3]


def test_a_version_is_left_out_where_it_is_not_wanted() -> None:
    line = PeerLine()
    assert JsonRpcPeer[str](line.write, version=False).notify(RpcNotification("initialized", b"{}"))
    assert line.written == [{"method": "initialized", "params": {}}]


@pytest.mark.parametrize("id_", [0, -1, 3, "1", "2", "", None])
async def test_an_answer_to_no_request_is_ignored(id_: RpcId | None) -> None:
    peer = JsonRpcPeer[str](PeerLine().write)
    for ticket in ("one", "two"):
        await peer.slot()
        peer.send("look", None, ticket)
    assert peer.resolve(RpcResponse(id_, b"1")) is None
    assert peer.sent == {1: "one", 2: "two"}


@given(st.lists(st.tuples(st.sampled_from(["send", "settle", "withdraw"]), st.integers(-1, 12))))
def test_tickets_come_back_once_and_so_do_their_places(steps: list[tuple[str, int]]) -> None:
    async def follow() -> None:
        peer, sent = JsonRpcPeer[int](PeerLine().write, in_flight=4), dict[RpcId, int]()
        count = 0
        for step, n in steps:
            if step == "send" and len(sent) < 4:
                with trio.fail_after(1):  # there is a slot
                    await peer.slot()
                count += 1
                assert peer.send("look", None, n) == count
                sent[count] = n
            elif step == "settle":
                assert peer.resolve(RpcResponse(n, b"1")) == sent.pop(n, None)
            elif step == "withdraw":
                peer.withdraw(n)
                sent.pop(n, None)
            assert peer.sent == sent

    trio.run(follow, clock=MockClock(autojump_threshold=0))


def test_a_response_is_the_answer_to_a_call() -> None:
    call = RpcCall(3, "work", {})
    assert RpcAnswer.to(call, RpcResponse(70, b"1")) == RpcAnswer(3, "work", b"1")
    refused = RpcErrorResponse(70, None, "no")
    assert RpcAnswer.to(call, refused) == RpcAnswer(3, "work", refusal=RpcRefusal(0, "no"))


def test_a_reply_is_a_response() -> None:
    assert PeerReply("a", {"b": 1}).response == RpcResponse("a", b'{"b":1}')
    assert PeerReply("a", error="no").response == RpcErrorResponse("a", NO_SUCH_METHOD, "no")
