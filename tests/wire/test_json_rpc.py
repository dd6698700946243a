from __future__ import annotations

import sys

import msgspec
from hypothesis import given, strategies as st

from sessionmgr.model.json_codec import encode_json
from sessionmgr.wire.json_rpc import (
    RpcErrorResponse,
    RpcMessage,
    RpcNotification,
    RpcRequest,
    RpcResponse,
    decode_rpc,
    encode_rpc,
)
from sessionmgr.wire.lines import LineDecoder
from sessionmgr.wire.noise import MalformedFrame, NoiseLine
from sessionmgr.wire.oversized import OversizedFrame
from tests.wire.chunks import cut

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
IDS = st.integers(-(2**53), 2**53) | TEXT
PARAMS = st.just(b"") | JSON.map(encode_json)
MESSAGES: st.SearchStrategy[RpcMessage] = st.one_of(
    st.builds(RpcRequest, id=IDS, method=TEXT, params=PARAMS),
    st.builds(RpcNotification, method=TEXT, params=PARAMS),
    st.builds(RpcResponse, id=IDS, result=JSON.map(encode_json)),
    st.builds(
        RpcErrorResponse,
        id=IDS | st.none(),
        code=st.integers(-(2**31), 2**31),
        message=TEXT,
        data=PARAMS,
    ),
)


def line(message: RpcMessage, *, version: bool = True) -> bytes:
    encoded = encode_rpc(message, version=version)
    assert encoded.endswith(b"\n")
    return encoded[:-1]


@given(message=MESSAGES, version=st.booleans())
def test_what_is_written_is_read_again(message: RpcMessage, version: bool) -> None:
    assert decode_rpc(line(message, version=version)) == [message]


@given(messages=st.lists(MESSAGES, max_size=5), cuts=st.lists(st.integers(0, 400)))
def test_messages_survive_any_cut_of_their_stream(
    messages: list[RpcMessage], cuts: list[int]
) -> None:
    decoder = LineDecoder()
    parts = cut(b"".join(map(encode_rpc, messages)), cuts)
    lines = [each for part in parts for each in decoder.feed(part)]
    assert [found for each in lines for found in decode_rpc(each)] == messages


@given(messages=st.lists(MESSAGES, min_size=1, max_size=5))
def test_a_batch_is_its_messages_in_their_order(messages: list[RpcMessage]) -> None:
    assert decode_rpc(b"[" + b",".join(map(line, messages)) + b"]") == messages


@given(st.binary())
def test_any_bytes_are_something(data: bytes) -> None:
    assert len(decode_rpc(data)) == 1


@given(
    message=MESSAGES, place=st.integers(0, 200), junk=st.binary(max_size=3), gone=st.integers(0, 9)
)
def test_a_damaged_message_is_something(
    message: RpcMessage, place: int, junk: bytes, gone: int
) -> None:
    whole = line(message)
    place %= len(whole)
    assert decode_rpc(whole[:place] + junk + whole[place + gone :])


def test_ids_keep_their_type_and_what_is_no_id_is_refused() -> None:
    assert decode_rpc(b'{"id":1,"method":"m"}') == [RpcRequest(1, "m")]
    assert decode_rpc(b'{"id":"1","method":"m"}') == [RpcRequest("1", "m")]
    assert decode_rpc(b'{"id":null,"method":"m"}') == [RpcRequest(None, "m")]
    for bad in (b"1.5", b"1.0", b"true", b"[1]", b"{}"):
        (found,) = decode_rpc(b'{"id":' + bad + b',"result":1}')
        assert isinstance(found, MalformedFrame)


def test_what_has_a_method_is_never_an_answer() -> None:
    assert decode_rpc(b'{"id":1,"method":"m","result":{},"error":{"code":1}}') == [
        RpcRequest(1, "m")
    ]
    assert decode_rpc(b'{"method":"m","result":{}}') == [RpcNotification("m")]


def test_an_answer_is_a_result_or_an_error_and_an_error_that_is_null_is_none() -> None:
    assert decode_rpc(b'{"id":1,"result":null}') == [RpcResponse(1, b"null")]
    assert decode_rpc(b'{"id":1,"result":{},"error":null}') == [RpcResponse(1, b"{}")]
    error = b'{"code":-32000,"message":"no","data":[1]}'
    refused = RpcErrorResponse(1, -32000, "no", b"[1]")
    assert decode_rpc(b'{"id":1,"error":' + error + b"}") == [refused]
    assert decode_rpc(b'{"id":1,"result":null,"error":' + error + b"}") == [refused]
    (neither,) = decode_rpc(b'{"id":1}')
    assert isinstance(neither, MalformedFrame)
    assert "no method" in neither.why


def test_an_error_about_an_unreadable_line_has_no_id() -> None:
    error = b'"error":{"code":-32700,"message":"parse error"}'
    unreadable = RpcErrorResponse(None, -32700, "parse error")
    assert decode_rpc(b'{"id":null,' + error + b"}") == [unreadable]
    assert decode_rpc(b"{" + error + b"}") == [unreadable]


def test_an_error_of_unknown_shape_is_an_error_all_the_same() -> None:
    for odd in (b'"no"', b'{"code":"429"}', b"[]", b'{"message":"no"}'):
        (found,) = decode_rpc(b'{"id":7,"error":' + odd + b"}")
        assert found == RpcErrorResponse(7, None, "an error of unknown form", odd)


def test_unknown_members_change_nothing() -> None:
    said = b'{"jsonrpc":"1.9","emittedAtMs":5,"method":"m","params":[1],"meta":{"a":[]}}'
    assert decode_rpc(said) == [RpcNotification("m", b"[1]")]


def test_parameters_do_not_keep_their_line_alive() -> None:
    big = b'{"method":"m","params":[1],"rest":"' + b"x" * 100_000 + b'"}'
    before = sys.getrefcount(big)
    (found,) = decode_rpc(big)
    assert found == RpcNotification("m", b"[1]")
    assert sys.getrefcount(big) == before


def test_json_that_only_a_lenient_reader_takes_is_mended() -> None:
    lenient = (
        (b'{"method":"m","params":[NaN,1]}', b"[null,1]"),
        (b'{"method":"m","params":["\\ud83d"]}', '["\N{REPLACEMENT CHARACTER}"]'.encode()),
        (b'{"method":"\xff","params":["\xff"]}', '["\N{REPLACEMENT CHARACTER}"]'.encode()),
        (b'{"method":"m","params":[1e999,-Infinity]}', b"[null,null]"),
    )
    for said, params in lenient:
        (found,) = decode_rpc(said)
        assert isinstance(found, RpcNotification)
        assert msgspec.json.decode(found.params.replace(b" ", b"")) == msgspec.json.decode(params)
        (batched,) = decode_rpc(b"[" + said + b"]")
        assert batched == found


def test_what_nobody_can_read_is_kept_with_the_reason() -> None:
    deep = b'{"params":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    for said in (b'{"method":"m"', b"{not json}", b'{"method":1}', b"[[]", b"[{]", deep):
        (found,) = decode_rpc(said)
        assert isinstance(found, MalformedFrame)
        assert found.line == said
        assert found.why


def test_a_bad_member_of_a_batch_leaves_the_others_alone() -> None:
    good, bad, empty = decode_rpc(b'[{"method":"a"},{"method":1},[]]')
    assert good == RpcNotification("a")
    assert isinstance(bad, MalformedFrame)
    assert isinstance(empty, MalformedFrame)
    (nothing,) = decode_rpc(b"[ ]")
    assert isinstance(nothing, MalformedFrame)


def test_noise_and_what_was_too_long_pass_through() -> None:
    assert decode_rpc(b"npm warn deprecated") == [NoiseLine(b"npm warn deprecated")]
    assert decode_rpc(OversizedFrame(9, b"x")) == [OversizedFrame(9, b"x")]


def test_a_message_is_found_behind_what_a_terminal_would_not_show() -> None:
    assert decode_rpc(b'\xef\xbb\xbf\x1b[0m{"method":"m"}\x1b[K') == [RpcNotification("m")]


def test_the_version_is_written_unless_the_peer_wants_none() -> None:
    said = RpcRequest(1, "m", b"{}")
    assert encode_rpc(said) == b'{"jsonrpc":"2.0","id":1,"method":"m","params":{}}\n'
    assert encode_rpc(said, version=False) == b'{"id":1,"method":"m","params":{}}\n'


def test_a_message_is_one_line_however_its_parameters_were_written() -> None:
    pretty = msgspec.json.format(b'{"a":[1,2],"b":"c\\n"}', indent=2)
    said = encode_rpc(RpcNotification("m", pretty + b"\r\n"))
    assert said.count(b"\n") == 1
    assert b"\r" not in said
    (found,) = decode_rpc(said[:-1])
    assert isinstance(found, RpcNotification)
    assert msgspec.json.decode(found.params) == {"a": [1, 2], "b": "c\n"}


def test_an_error_of_unknown_shape_can_be_passed_on() -> None:
    said = encode_rpc(RpcErrorResponse(1, None, "odd", b'"no"'))
    assert decode_rpc(said[:-1]) == [RpcErrorResponse(1, -32603, "odd", b'"no"')]


def test_half_a_surrogate_pair_is_replaced_in_what_is_sent() -> None:
    assert decode_rpc(encode_rpc(RpcNotification("\ud800"))[:-1]) == [RpcNotification("\ufffd")]
    assert decode_rpc(encode_rpc(RpcRequest("\ud800", "m"))[:-1]) == [RpcRequest("\ufffd", "m")]


def test_a_long_result_is_no_matter() -> None:
    result = encode_json("x" * 40_000_000)
    assert decode_rpc(encode_rpc(RpcResponse(1, result))[:-1]) == [RpcResponse(1, result)]
