"""A JSON-RPC connection to a real child: the routing of messages, and when requests are sent."""

import json
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import TypeAlias

import msgspec
import pytest
import trio
import trio.testing
from hypothesis import given, strategies as st

from sessionmgr.adapter.connections import Driver
from sessionmgr.adapter.kit.json_rpc_connection import (
    MAX_HELD_FRAMES,
    MAX_WAITING_MESSAGES,
    JsonRpcConnection,
    JsonRpcConversation,
    decode_by_method,
)
from sessionmgr.adapter.kit.json_rpc_peer import BUSY
from sessionmgr.model import Json
from sessionmgr.process import Command, open_launcher
from sessionmgr.process.escalation import Escalation
from sessionmgr.wire import (
    NoFrame,
    NoiseLine,
    RpcErrorResponse,
    RpcNotification,
    RpcRequest,
    RpcResponse,
    UntypedFrame,
)

# The agent answers the handshake when it is ordered to, answers `open`, prints the lines of `print`
# at once, and reports the answers that it gets.
AGENT = """
import json, sys
def write(*lines):
    sys.stdout.write("".join(each + "\\n" for each in lines))
    sys.stdout.flush()
def answer(id, **result):
    return json.dumps({"id": id, "result": result})
for line in sys.stdin:
    message = json.loads(line)
    params, id = message.get("params", {}), message.get("id")
    match message.get("method"):
        case "hello":
            greeting = id
            write(json.dumps({"method": "news", "params": {"text": "wait"}}))
        case "go":
            write(answer(greeting, version="7"))
        case "open":
            write(*params.get("before", []), answer(id, session=params["session"]))
        case "print":
            write(*params["lines"], answer(id))
        case "exit":
            sys.exit(3)
        case None:
            write(json.dumps({"method": "news", "params": {"text": line.strip()}}))
"""
LADDER = Escalation(polite=2.0, term=1.0)


class NewsFrame(msgspec.Struct, frozen=True):
    text: str
    session: str | None = None
    name: str = ""


Frame: TypeAlias = NewsFrame | str
Driven: TypeAlias = Driver[Frame | NoFrame]


class RpcNotes:
    """Driver that records the frames pushed into it."""

    def __init__(self) -> None:
        self.reads: list[list[Frame | NoFrame]] = []
        self.crashes: list[Exception] = []
        self.ends = 0
        self.news = trio.Event()

    def feed(self, frames: Sequence[Frame | NoFrame], size: int) -> None:
        self.reads.append(list(frames))
        self._tell()

    def crash(self, error: Exception) -> None:
        self.crashes.append(error)
        self._tell()

    def end(self) -> None:
        self.ends += 1
        self._tell()

    async def room(self) -> None:
        await trio.lowlevel.checkpoint()

    def _tell(self) -> None:
        self.news.set()
        self.news = trio.Event()

    @property
    def frames(self) -> list[Frame | NoFrame]:
        return [frame for read in self.reads for frame in read]

    async def until(self, frame: Frame) -> None:
        while frame not in self.frames:
            await self.news.wait()

    async def until_it_ends(self) -> None:
        while not self.ends:
            await self.news.wait()


class RpcAgent(JsonRpcConnection[Frame]):
    def __init__(self, *, greeting: bool = False, in_flight: int = 48) -> None:
        hello: tuple[str, Json] | None = ("hello", {}) if greeting else None
        super().__init__(greeting=hello, in_flight=in_flight, ladder=LADDER)
        self.methods: list[Json] = []
        self.is_full = False

    def write(self, line: bytes) -> bool:
        if self.is_full:
            return False
        self.methods.append(msgspec.json.decode(line).get("method"))
        return super().write(line)

    def session_key(self, message: RpcRequest | RpcNotification) -> str | None:
        session: str | None = json.loads(message.params or b"{}").get("session")
        return session

    def make_frame(
        self, message: RpcRequest | RpcNotification, name: str
    ) -> Frame | NoFrame | None:
        if message.method == "crash":
            raise ValueError("what is that?")
        frame = decode_by_method(message, {"news": NewsFrame, "may_i": NewsFrame})
        return msgspec.structs.replace(frame, name=name) if isinstance(frame, NewsFrame) else frame

    def on_answer(
        self,
        conversation: JsonRpcConversation[Frame],
        method: str,
        answer: RpcResponse | RpcErrorResponse,
    ) -> Frame | None:
        if isinstance(answer, RpcErrorResponse):
            return f"{method} was refused: {answer.code}"
        if method == "open":
            self.bind(conversation, json.loads(answer.result)["session"])
        return f"{method} was answered"

    def on_handshake(self, answer: RpcResponse | RpcErrorResponse) -> Frame | None:
        self.notify("greeted")
        return "hello"

    def open(self, driver: Driven, session: str | None = None) -> JsonRpcConversation[Frame]:
        conversation = JsonRpcConversation(self, driver)
        self.attach(conversation, session)
        return conversation


@asynccontextmanager
async def connected(agent: RpcAgent | None = None) -> AsyncGenerator[RpcAgent, None]:
    command = Command(argv=(sys.executable, "-I", "-S", "-c", AGENT), cwd="/", env={})
    with trio.fail_after(30):
        async with open_launcher() as launcher:
            agent = agent or RpcAgent()
            async with agent.running(launcher, command):
                yield agent


def news(text: str, session: str | None = None) -> str:
    return json.dumps({"method": "news", "params": {"text": text, "session": session}})


def asks(id_: Json, session: str | None, method: str = "may_i") -> str:
    params = {"text": "may I?", "session": session}
    return json.dumps({"id": id_, "method": method, "params": params})


def print_by(conversation: JsonRpcConversation[Frame], *lines: str) -> None:
    conversation.request("print", {"lines": list(lines)})


async def test_each_driver_gets_the_frames_of_its_session_once_a_read() -> None:
    async with connected() as agent:
        one, two = RpcNotes(), RpcNotes()
        first = agent.open(one, "a")
        agent.open(two, "b")
        print_by(first, news("1", "a"), news("2", "b"), news("3", "a"), news("unknown", "c"))
        await one.until("print was answered")
        await two.until(NewsFrame("2", "b"))
        assert one.reads == [[NewsFrame("1", "a"), NewsFrame("3", "a"), "print was answered"]]
        assert two.reads == [[NewsFrame("2", "b")]]


LINES = st.sampled_from(
    [
        news("1", "a"),
        news("2", "b"),
        news("unknown", "z"),
        news("for all"),
        "noise",
        '{"method": "unheard of", "params": {"session": "a"}}',
        '{"id": 1, "result": {}}',
    ]
)


@given(lines=st.lists(LINES), cuts=st.lists(st.integers(0, 20)))
def test_how_many_lines_a_read_has_does_not_matter(lines: list[str], cuts: list[int]) -> None:
    def pushed(reads: list[list[str]]) -> list[list[Frame | NoFrame]]:
        agent, one, two = RpcAgent(), RpcNotes(), RpcNotes()
        agent.open(one, "a").request("print", {})
        agent.open(two, "b")
        for number, read in enumerate(reads, 1):
            agent._handle_lines([line.encode() for line in read])  # pyright: ignore[reportPrivateUsage]
            assert max(len(one.reads), len(two.reads)) <= number
        return [one.frames, two.frames]

    places = [0, *sorted(cut for cut in cuts if cut <= len(lines)), len(lines)]
    assert pushed([lines[a:b] for a, b in pairwise(places)]) == pushed([lines])


async def test_what_names_no_session_goes_to_all_conversations() -> None:
    async with connected() as agent:
        one, two = RpcNotes(), RpcNotes()
        first = agent.open(one, "a")
        agent.open(two)
        print_by(first, "some noise", news("for all"), '{"method": "unheard of"}')
        unknown = UntypedFrame({"method": "unheard of", "params": None}, "unknown method")
        await two.until(NewsFrame("for all"))
        assert two.frames == [NoiseLine(b"some noise"), NewsFrame("for all"), unknown]
        await one.until("print was answered")
        assert one.frames == [*two.frames, "print was answered"]


async def test_frames_that_come_before_the_name_of_their_session_are_held() -> None:
    async with connected() as agent:
        driver = RpcNotes()
        conversation = agent.open(driver)
        before: list[Json] = [
            news("old", "z"),
            *[news(str(n), "a") for n in range(MAX_HELD_FRAMES)],
        ]
        conversation.request("open", {"session": "a", "before": before})
        await driver.until("open was answered")
        print_by(conversation, news("after", "a"))
        await driver.until("print was answered")
        held = [NewsFrame(str(n), "a") for n in range(MAX_HELD_FRAMES)]
        assert driver.frames == [
            "open was answered",
            *held,
            NewsFrame("after", "a"),
            "print was answered",
        ]
        assert conversation.session == "a"


async def test_requests_wait_for_the_handshake_and_go_out_in_their_order() -> None:
    async with connected(RpcAgent(greeting=True, in_flight=1)) as agent:
        one, late = RpcNotes(), RpcNotes()
        conversation = agent.open(one, "a")
        for method in ("open", "print"):
            conversation.request(method, {"session": "a", "lines": []})
        await one.until(NewsFrame("wait"))
        assert agent.methods == ["hello"]
        agent.notify("go")
        await one.until("print was answered")
        assert agent.methods == ["hello", "go", "greeted", "open", "print"]
        assert one.frames[1:] == ["hello", "open was answered", "print was answered"]
        agent.open(late)
        assert late.frames == ["hello"]


@pytest.mark.parametrize("id_", [1, "1"])
async def test_a_request_of_the_agents_is_answered_once_and_by_its_own_id(id_: Json) -> None:
    async with connected() as agent:
        driver = RpcNotes()
        conversation = agent.open(driver, "a")
        print_by(conversation, asks(id_, "a"))
        await driver.until("print was answered")
        asked = driver.frames[0]
        assert isinstance(asked, NewsFrame)
        for _ in range(2):
            await conversation.reply(asked.name, {"allow": True})
        told = {"jsonrpc": "2.0", "id": id_, "result": {"allow": True}}
        await driver.until(NewsFrame(json.dumps(told, separators=(",", ":"))))
        assert agent.methods == ["print", None]


async def test_a_request_of_the_agents_can_be_refused_once() -> None:
    async with connected() as agent:
        driver = RpcNotes()
        conversation = agent.open(driver, "a")
        print_by(conversation, asks(1, "a"))
        await driver.until("print was answered")
        asked = driver.frames[0]
        assert isinstance(asked, NewsFrame)
        for _ in range(2):
            await conversation.refuse(asked.name, -32000, "not allowed")
        told = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32000, "message": "not allowed"}}
        await driver.until(NewsFrame(json.dumps(told, separators=(",", ":"))))
        assert agent.methods == ["print", None]


async def test_the_answer_to_a_request_without_a_conversation_is_dropped() -> None:
    async with connected() as agent:
        driver = RpcNotes()
        conversation = agent.open(driver, "a")
        agent.request_unanswered("open", {"session": "b"})
        print_by(conversation)
        await driver.until("print was answered")
        assert driver.frames == ["print was answered"]
        assert agent.methods == ["open", "print"]


async def test_a_request_whose_answer_is_dropped_can_be_waited_for() -> None:
    async with connected() as agent:
        driver = RpcNotes()
        conversation = agent.open(driver, "a")
        with trio.fail_after(10):
            await agent.unanswered_done(60)
            agent.request_unanswered("open", {"session": "b"})
            await agent.unanswered_done(60)
        agent.request_unanswered("silence", {"session": "b"})
        before = trio.current_time()
        await agent.unanswered_done(0.05)
        assert trio.current_time() - before >= 0.05
        await agent.unanswered_done(60)  # it is waited for once
        conversation.close()


async def test_an_unknown_request_is_refused() -> None:
    async with connected() as agent:
        driver = RpcNotes()
        conversation = agent.open(driver, "a")
        print_by(conversation, asks(1, "z"), asks(2, None), asks(3, "a", method="new"))
        for id_ in (1, 2, 3):
            error = {"code": -32601, "message": "unknown request"}
            told = {"jsonrpc": "2.0", "id": id_, "error": error}
            await driver.until(NewsFrame(json.dumps(told, separators=(",", ":"))))
        assert isinstance(driver.frames[0], UntypedFrame)  # the line is in the record
        assert conversation.open_requests == {}


async def test_all_conversations_end_with_the_child() -> None:
    async with connected() as agent:
        one, two, late = RpcNotes(), RpcNotes(), RpcNotes()
        agent.open(one, "a").request("exit", {})
        agent.open(two)
        await one.until_it_ends()
        assert (one.ends, two.ends) == (1, 1)
        agent.open(late).request("print", {"lines": []})
        assert late.ends == 1
    assert agent.facts is not None
    assert agent.facts.exit_code == 3


async def test_a_crash_at_the_frames_of_one_conversation_is_no_others() -> None:
    async with connected() as agent:
        one, two = RpcNotes(), RpcNotes()
        agent.open(one, "a")
        other = agent.open(two, "b")
        print_by(other, '{"method": "crash", "params": {"session": "a"}}', news("on", "b"))
        await two.until("print was answered")
        assert two.frames == [NewsFrame("on", "b"), "print was answered"]
        assert [str(each) for each in one.crashes] == ["what is that?"]


async def test_a_session_has_one_conversation_at_a_time() -> None:
    async with connected() as agent:
        one, two = RpcNotes(), RpcNotes()
        first = agent.open(one, "a")
        with pytest.raises(RuntimeError, match="another conversation"):
            agent.open(two, "a")
        second = agent.open(two)
        second.request("open", {"session": "a"})
        await two.news.wait()
        assert [type(each) for each in two.crashes] == [RuntimeError]
        first.close()
        agent.open(RpcNotes(), "a")


async def test_what_is_closed_gets_nothing_more_and_its_requests_are_not_sent() -> None:
    async with connected(RpcAgent(in_flight=1)) as agent:
        one, two = RpcNotes(), RpcNotes()
        first, second = agent.open(one, "a"), agent.open(two, "b")
        first.request("never answered", {})
        first.request("print", {"lines": []})
        print_by(second, news("1", "a"), news("2", "b"))
        first.close()
        first.close()
        first.request("print", {"lines": []})
        await first.discard()
        await two.until("print was answered")
        assert one.frames == []
        assert agent.methods == ["never answered", "print"]


async def test_a_request_too_many_is_refused() -> None:
    async with connected(RpcAgent(in_flight=1)) as agent:
        driver = RpcNotes()
        conversation = agent.open(driver, "a")
        for _ in range(MAX_WAITING_MESSAGES + 2):
            conversation.request("never answered", {})
        assert driver.frames == [f"never answered was refused: {BUSY}"]


async def test_what_finds_no_room_is_refused_or_sent_later() -> None:
    async with connected() as agent:
        driver = RpcNotes()
        conversation = agent.open(driver, "a")
        print_by(conversation, asks(1, "a"))
        await driver.until("print was answered")
        agent.is_full = True
        print_by(conversation)
        assert driver.frames[-1] == f"print was refused: {BUSY}"
        async with trio.open_nursery() as nursery:
            nursery.start_soon(conversation.reply, "1", "yes")
            await trio.testing.wait_all_tasks_blocked()
            agent.is_full = False
        await driver.until(NewsFrame('{"jsonrpc":"2.0","id":1,"result":"yes"}'))
