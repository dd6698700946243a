"""JSON of any agent can be read, and what we write is valid JSON for every parser."""

import json
import math

import msgspec
import pytest
from hypothesis import given, strategies as st

from sessionmgr.model import UnreadableJson, UntypedJson, encode_json, parse_json, parse_typed
from sessionmgr.testing.strategies import json_values


class Point(msgspec.Struct):
    x: int


DECODER = msgspec.json.Decoder(Point)


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b'{"a":1,"a":2}', {"a": 2}),
        (b'"\\ud83d\\ude00"', "\N{GRINNING FACE}"),
        (b'"\\ud800!"', "\N{REPLACEMENT CHARACTER}!"),
        (b'{"\\udfff":1}', {"\N{REPLACEMENT CHARACTER}": 1}),
        (b'"\xff"', "\N{REPLACEMENT CHARACTER}"),
        (b"[NaN,Infinity,-Infinity,1e400]", [None, None, None, None]),
        (b"\xef\xbb\xbf[1]", [1]),
        (b'"tab\there"', "tab\there"),
        (bytearray(b" [true, null]\r"), [True, None]),
        ('"text"', "text"),
    ],
)
def test_strange_but_readable(data: bytes | str, value: object) -> None:
    assert parse_json(data) == value


@pytest.mark.parametrize(
    "data", [b"", b"nope", b'{"a":', b"[" * 100_000, b'{"a":' * 100_000, b"\xff\xfe", b"9" * 5000]
)
def test_what_is_no_json_comes_back_as_text_with_a_reason(data: bytes) -> None:
    found = parse_json(data)
    assert isinstance(found, UnreadableJson)
    assert found.text == data.decode(errors="replace")
    assert found.why


@given(st.binary() | st.text().map(str.encode))
def test_reading_never_raises(data: bytes) -> None:
    found = parse_json(data)
    assert isinstance(found, UnreadableJson) or json.loads(encode_json(found)) == found


@given(json_values())
def test_what_is_written_is_read_as_it_was(value: object) -> None:
    assert parse_json(json.dumps(value)) == value


def test_the_ladder_goes_from_typed_to_plain_to_text() -> None:
    assert parse_typed(b'{"x":1}', DECODER) == Point(1)
    other = parse_typed(b'{"x":"one"}', DECODER)
    assert isinstance(other, UntypedJson)
    assert other.value == {"x": "one"}
    assert "x" in other.why
    halved = parse_typed(b'{"x":"\\ud800"}', DECODER)
    assert isinstance(halved, UntypedJson)
    assert halved.value == {"x": "\N{REPLACEMENT CHARACTER}"}
    torn = parse_typed(b"{", DECODER)
    assert isinstance(torn, UnreadableJson)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("\ud800", b'"\xef\xbf\xbd"'),
        ([math.nan, "\udc00"], b'[null,"\xef\xbf\xbd"]'),
        ({"\ud800": 2**70}, b'{"\xef\xbf\xbd":"1180591620717411303424"}'),
    ],
)
def test_what_json_cannot_hold_is_replaced(value: list[float | str] | str, written: bytes) -> None:
    assert encode_json(list(value) if isinstance(value, list) else value) == written
