"""The server as its clients see it, in Anthropic's API."""

from contextlib import AsyncExitStack

import pytest
import trio

from sessionmgr.testing.model_server import (
    ModelCall,
    ModelCut,
    ModelFault,
    ModelHang,
    ModelHeaders,
    ModelLimits,
    ModelMalformed,
    ModelRefuse,
    ModelReply,
    ModelRequest,
    ModelSay,
    ModelStop,
    ModelThink,
    ModelUsageLimit,
    ModelUse,
    ModelWait,
    open_model_server,
    prompt_with,
)
from sessionmgr.testing.model_server.connection import ServerConnection
from sessionmgr.testing.model_server.http import HttpRequest
from sessionmgr.testing.model_server.request_log import KEPT, KEPT_BYTES, Exchange, RequestLog
from sessionmgr.testing.model_server.responder import Send
from tests.testing.model_server.client import connect_client, message, messages

MESSAGES = "/v1/messages?beta=true"


def prompt(*moves: ModelReply) -> str:
    return prompt_with(moves)


async def test_a_reply_is_streamed() -> None:
    reply: ModelReply = [
        ModelThink(text="hm", deltas=2),
        ModelSay(text="hello", deltas=5),
        ModelCall(tool="shell", input={"command": "ls"}),
        ModelUse(input=1, cached_input=2, cache_write=3, output=4),
    ]
    async with open_model_server() as server, connect_client(server) as client:
        answer = await client.ask("POST", MESSAGES, messages(prompt(reply)))
    assert (answer.status, answer.whole) == (200, True)
    assert answer.headers["content-type"] == "text/event-stream"
    events = answer.events()
    deltas = [each["delta"] for each in events if each["type"] == "content_block_delta"]
    assert "".join(each.get("text", "") for each in deltas) == "hello"
    assert [each["text"] for each in deltas if "text" in each] == list("hello")
    assert "".join(each.get("thinking", "") for each in deltas) == "hm"
    written = "".join(each.get("partial_json", "") for each in deltas)
    assert written == '{"limit":0,"command":"ls"}'
    assert events[-2]["delta"]["stop_reason"] == "tool_use"
    assert events[-2]["usage"] == {
        "input_tokens": 1,
        "cache_creation_input_tokens": 3,
        "cache_read_input_tokens": 2,
        "output_tokens": 4,
    }
    assert [events[0]["type"], events[-1]["type"]] == ["message_start", "message_stop"]
    [exchange] = server.log
    assert (exchange.reply, exchange.status, exchange.ending) == (0, 200, "whole")


async def test_a_reply_comes_as_a_whole_to_who_does_not_stream() -> None:
    reply: ModelReply = [
        ModelSay(text="hello"),
        ModelCall(tool="Bash", input={"a": 1}),
        ModelStop(reason="max_tokens"),
    ]
    async with open_model_server() as server, connect_client(server) as client:
        answer = await client.ask("POST", MESSAGES, messages(prompt(reply), stream=False))
    message = answer.json()
    assert [each["type"] for each in message["content"]] == ["text", "tool_use"]
    assert message["content"][1]["input"] == {"a": 1}
    assert message["stop_reason"] == "max_tokens"
    assert message["usage"]["output_tokens"] > 0


async def test_a_connection_is_used_again_and_again() -> None:
    async with open_model_server() as server, connect_client(server) as client:
        for number in range(3):
            answer = await client.ask("POST", MESSAGES, messages(str(number)))
            assert f"You said: {number}" in answer.body.decode()
        await client.send("POST", MESSAGES, messages("a"))
        await client.send("POST", MESSAGES, messages("b"))
        assert b"You said: a" in (await client.receive()).body
        assert b"You said: b" in (await client.receive()).body
        answer = await client.ask("HEAD", "/", headers={"connection": "close"})
        assert answer.status == 200
        assert await client.stream.receive_some() == b""


async def test_tokens_are_counted() -> None:
    async with open_model_server() as server, connect_client(server) as client:
        counted = await client.ask("POST", "/v1/messages/count_tokens?beta=true", messages("hi"))
    assert counted.json()["input_tokens"] > 0
    assert server.log.asked == []


async def test_whoever_wants_somebody_else_is_refused_and_noted() -> None:
    async with open_model_server() as server, connect_client(server) as client:
        for method, target, status in [
            ("GET", "/v1/files", 404),
            ("POST", "/v1/messages/batches", 404),
            ("CONNECT", "example.invalid:443", 403),
            ("GET", "http://example.invalid/", 403),
        ]:
            assert (await client.ask(method, target, messages("hi"))).status == status
        assert (await client.ask("POST", MESSAGES, {"no": "messages"})).status == 400
    assert server.log.strangers == [
        "GET /v1/files",
        "POST /v1/messages/batches",
        "CONNECT example.invalid:443",
        "GET http://example.invalid/",
    ]


async def test_what_is_no_http_is_told_so() -> None:
    async with open_model_server() as server, connect_client(server) as client:
        await client.stream.send_all(b"nonsense\r\n\r\n")
        answer = await client.receive()
        assert (answer.status, answer.headers["connection"]) == (400, "close")
        assert await client.stream.receive_some() == b""


async def test_a_client_that_waits_for_a_word_gets_it() -> None:
    async with open_model_server() as server, connect_client(server) as client:
        head = b"HEAD / HTTP/1.1\r\ncontent-length: 1\r\nexpect: 100-continue\r\n\r\n"
        await client.stream.send_all(head)
        assert (await client.receive(has_body=False)).status == 100
        await client.stream.send_all(b"x")
        assert (await client.receive(has_body=False)).status == 200


@pytest.mark.parametrize(
    ("refusal", "status", "kind", "headers"),
    [
        (ModelRefuse(status=429), 429, "rate_limit_error", {}),
        (ModelRefuse(status=429, retry_after=1.5), 429, "rate_limit_error", {"retry-after": "1.5"}),
        (ModelRefuse(status=529), 529, "overloaded_error", {}),
        (ModelRefuse(status=500), 500, "api_error", {}),
        (ModelRefuse(status=400, kind="other", headers={"a": "b"}), 400, "other", {"a": "b"}),
        (
            ModelUsageLimit(resets_at=12),
            429,
            "rate_limit_error",
            {
                "anthropic-ratelimit-unified-status": "rejected",
                "anthropic-ratelimit-unified-reset": "12",
            },
        ),
    ],
)
@pytest.mark.parametrize("stream", [True, False])
async def test_a_refusal_has_a_status_a_kind_and_headers(
    refusal: ModelRefuse, status: int, kind: str, headers: dict[str, str], stream: bool
) -> None:
    async with open_model_server() as server, connect_client(server) as client:
        body = messages(prompt([ModelHeaders(headers={"x": "y"}), refusal]), stream=stream)
        answer = await client.ask("POST", MESSAGES, body)
    assert (answer.status, answer.json()["error"]["type"]) == (status, kind)
    assert answer.headers.items() >= {**headers, "x": "y"}.items()
    assert ("retry-after" in answer.headers) == ("retry-after" in headers)


async def test_a_failure_passes_after_so_many_attempts() -> None:
    body = messages(prompt([ModelRefuse(status=529, times=2), ModelSay(text="at last")]))
    async with open_model_server() as server, connect_client(server) as client:
        answers = [await client.ask("POST", MESSAGES, body) for _ in range(3)]
        assert [answer.status for answer in answers] == [529, 529, 200]
        # Another session starts from the beginning.
        other = {"x-claude-code-session-id": "other"}
        assert (await client.ask("POST", MESSAGES, body, other)).status == 529


async def test_limits_are_told_in_headers() -> None:
    limits = ModelLimits(used=0.9, resets_at=12, status="allowed_warning")
    async with open_model_server() as server, connect_client(server) as client:
        answer = await client.ask("POST", MESSAGES, messages(prompt([limits, ModelSay(text="a")])))
    assert answer.headers["anthropic-ratelimit-unified-5h-utilization"] == "0.9"
    assert answer.headers["anthropic-ratelimit-unified-status"] == "allowed_warning"


async def test_a_stream_may_break_in_every_way() -> None:
    async with open_model_server() as server:
        async with connect_client(server) as client:
            reply: ModelReply = [
                ModelSay(text="half", whole=False),
                ModelFault(kind="overloaded_error"),
            ]
            answer = await client.ask("POST", MESSAGES, messages(prompt(reply)))
            assert (answer.types()[-1], answer.whole) == ("error", True)
            assert "content_block_stop" not in answer.types()
            late: ModelReply = [ModelSay(text="half"), ModelRefuse(status=500)]
            answer = await client.ask("POST", MESSAGES, messages(prompt(late)))
            assert (answer.status, answer.types()[-1]) == (200, "error")
            nonsense: ModelReply = [ModelMalformed(text="data: {no\n\n"), ModelSay(text="a")]
            answer = await client.ask("POST", MESSAGES, messages(prompt(nonsense)))
            assert b"data: {no\n\n" in answer.body
            answer = await client.ask("POST", MESSAGES, messages(prompt([ModelMalformed()])))
            assert b"event: content_block_delta\ndata: {not json\n\n" in answer.body
            answer = await client.ask(
                "POST", MESSAGES, messages(prompt([ModelSay(text="a"), ModelCut()]))
            )
            assert (answer.status, answer.whole) == (200, False)
        async with connect_client(server) as client:
            answer = await client.ask("POST", MESSAGES, messages(prompt([ModelCut()])))
            assert (answer.status, answer.whole) == (0, False)
    assert [each.ending for each in server.log] == ["whole"] * 4 + ["cut", "cut"]


async def test_a_whole_message_may_break_as_well() -> None:
    async with open_model_server() as server, connect_client(server) as client:
        fault = messages(prompt([ModelSay(text="a"), ModelFault(kind="k")]), stream=False)
        answer = await client.ask("POST", MESSAGES, fault)
        assert (answer.status, answer.json()["error"]["type"]) == (500, "k")
        nonsense = messages(prompt([ModelMalformed(text="{no")]), stream=False)
        assert (await client.ask("POST", MESSAGES, nonsense)).body == b"{no"


async def test_arguments_may_be_no_json() -> None:
    broken: ModelReply = [ModelCall(tool="Bash", broken='{"command": ')]
    async with open_model_server() as server, connect_client(server) as client:
        answer = await client.ask("POST", MESSAGES, messages(prompt(broken)))
    deltas = [each["delta"] for each in answer.events() if "delta" in each]
    assert "".join(each.get("partial_json", "") for each in deltas) == '{"command": '


@pytest.mark.parametrize("reply", [[ModelHang()], [ModelSay(text="a"), ModelHang()]])
async def test_a_model_that_hangs_is_left_by_its_client(reply: ModelReply) -> None:
    async with open_model_server() as server:
        async with connect_client(server) as client:
            await client.send("POST", MESSAGES, messages(prompt(reply)))
            await server.log.wait_for_total(1)
        await server.log.wait_until_idle()
    assert [each.ending for each in server.log] == ["left"]


async def test_a_client_has_left_as_well_where_that_is_heard_first_by_writing_to_him() -> None:
    async def answer(http: HttpRequest, exchange: Exchange, send: Send) -> bool:
        await trio.lowlevel.checkpoint()
        raise trio.BrokenResourceError

    log = RequestLog()
    ours, theirs = map(trio.SocketStream, trio.socket.socketpair())
    async with ours, theirs:
        await theirs.send_all(b"HEAD / HTTP/1.1\r\n\r\n")
        with pytest.RaisesGroup(trio.BrokenResourceError):
            await ServerConnection(ours, log, answer).run()
    assert [each.ending for each in log] == ["left"]


async def test_who_goes_at_the_end_that_the_events_tell_has_heard_all() -> None:
    async with open_model_server() as server:
        for _ in range(30):
            async with connect_client(server) as client:
                await client.send("POST", MESSAGES, messages(prompt([ModelSay(text="a")])))
                await client.heard(b"message_stop")
        await server.log.wait_until_idle()
    assert {each.ending for each in server.log} == {"whole"}


async def test_a_server_that_ends_says_so_of_what_it_was_at() -> None:
    async with AsyncExitStack() as stack:
        async with open_model_server() as server:
            client = await stack.enter_async_context(connect_client(server))
            await client.send("POST", MESSAGES, messages(prompt([ModelHang()])))
            await server.log.wait_for_total(1)
        [exchange] = server.log
        assert exchange.ending == "shutdown"


async def test_pauses_take_their_time() -> None:
    reply: ModelReply = [
        ModelWait(seconds=0.02),
        ModelSay(text="abc", deltas=3, pause=0.01),
        ModelWait(seconds=0.01),
    ]
    async with open_model_server() as server, connect_client(server) as client:
        began = trio.current_time()
        await client.ask("POST", MESSAGES, messages(prompt(reply)))
        assert trio.current_time() - began >= 0.06


async def test_a_script_goes_on_in_another_server() -> None:
    said = messages(
        prompt([ModelCall(tool="Bash")], [ModelSay(text="on we go")]),
        message("assistant", {"type": "tool_use", "id": "x", "name": "Bash", "input": {}}),
        message("user", {"type": "tool_result", "tool_use_id": "x", "content": "it ran"}),
    )
    for _ in range(2):
        async with open_model_server() as server, connect_client(server) as client:
            assert b"on we go" in (await client.ask("POST", MESSAGES, said)).body
            assert [each.text for each in server.log.asked[0].results] == ["it ran"]


async def test_what_the_body_raises_leaves_the_block_bare() -> None:
    with pytest.raises(KeyError):
        async with open_model_server():
            raise KeyError
    with trio.CancelScope() as scope:
        async with open_model_server():
            scope.cancel()
            await trio.sleep_forever()
    assert scope.cancelled_caught


def fails(request: ModelRequest) -> ModelReply:
    raise LookupError(request.prompt)


async def test_what_a_function_raises_that_was_to_reply_leaves_the_block_bare() -> None:
    async def wait() -> None:
        async with open_model_server(fails) as server, connect_client(server) as client:
            await client.send("POST", MESSAGES, messages("hi"))
            await trio.sleep_forever()

    with pytest.raises(LookupError, match="hi"):
        await wait()


async def test_a_body_that_fails_for_such_a_function_says_so() -> None:
    async def fail() -> None:
        async with open_model_server(fails) as server:
            with trio.CancelScope(shield=True):
                async with connect_client(server) as client:
                    await client.ask("POST", MESSAGES, messages("hi"))
            raise AssertionError

    with pytest.raises(AssertionError) as raised:
        await fail()
    assert "LookupError" in raised.value.__notes__[0]


async def test_an_interrupt_leaves_the_block_bare_whoever_it_strikes() -> None:
    def interrupted(request: ModelRequest) -> ModelReply:
        raise KeyboardInterrupt

    async def ask() -> None:
        async with open_model_server(interrupted) as server, connect_client(server) as client:
            await client.send("POST", MESSAGES, messages("hi"))
            await trio.sleep_forever()

    with pytest.raises(KeyboardInterrupt):
        await ask()


def test_the_log_keeps_the_last() -> None:
    log = RequestLog()
    for number in range(KEPT + 5):
        log.begin(HttpRequest("GET", f"/{number}", {}))
    assert (log.total, len(log)) == (KEPT + 5, KEPT)
    assert next(iter(log)).http.target == "/5"


def test_the_log_forgets_what_was_asked_long_ago() -> None:
    log = RequestLog()
    body = bytes(KEPT_BYTES // 3)
    for _ in range(5):
        log.begin(HttpRequest("POST", "/", {}, body)).asked = ModelRequest(
            face="f", model="m", items=()
        )
    assert [len(each.http.body) > 0 for each in log] == [False, False, True, True, True]
    assert len(log.asked) == 3
    log.begin(HttpRequest("POST", "/", {}, bytes(2 * KEPT_BYTES)))
    assert [len(each.http.body) > 0 for each in log] == [False] * 5 + [True]
