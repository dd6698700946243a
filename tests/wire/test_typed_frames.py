from __future__ import annotations

import msgspec
from hypothesis import given, strategies as st

from sessionmgr.model.json_codec import Json
from sessionmgr.wire.lines import Line, NoFrame, UntypedFrame, decode_frames
from sessionmgr.wire.noise import MalformedFrame, NoiseLine
from sessionmgr.wire.oversized import OversizedFrame


class TextSample(msgspec.Struct, tag_field="type", tag="text", frozen=True):
    text: str
    score: float | None = None


class EndSample(msgspec.Struct, tag_field="type", tag="end", frozen=True):
    code: int


DECODER = msgspec.json.Decoder(TextSample | EndSample)


def read(line: Line) -> TextSample | EndSample | NoFrame:
    (found,) = decode_frames([line], DECODER)
    return found


def test_a_frame_of_a_known_type_is_read_whatever_else_is_in_it() -> None:
    line = b'{"session":[1,{}],"text":"hi","type":"text"}'
    assert read(line) == TextSample("hi")


def test_what_is_wrong_with_the_text_alone_is_mended() -> None:
    for text, mended in ((b"\\ud83d!", "\ufffd!"), (b"\xff!", "\ufffd!"), (b"\xf0\x9f", "\ufffd")):
        assert read(b'{"type":"text","text":"' + text + b'"}') == TextSample(mended)
    assert read(b'{"type":"text","text":"a","score":NaN}') == TextSample("a")
    assert read(b'\xef\xbb\xbf{"type":"end","code":1}\x1b[0m') == EndSample(1)
    assert read(b'{"type":"end","code":1,"code":2}') == EndSample(2)


def test_a_new_frame_and_a_changed_one_are_kept_whole() -> None:
    kept: list[tuple[bytes, Json]] = [
        (b'{"type":"new","a":[1]}', {"type": "new", "a": [1]}),
        (b'{"type":"end","code":"x"}', {"type": "end", "code": "x"}),
        (b'{"a":1}', {"a": 1}),
        (b"[{}]", [{}]),
        (b'{"type":"new","a":NaN}', {"type": "new", "a": None}),
    ]
    for line, value in kept:
        found = read(line)
        assert isinstance(found, UntypedFrame)
        assert found.value == value
        assert found.why


def test_what_begins_like_a_frame_and_is_none_is_malformed() -> None:
    deep = b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    for line in (b'{"type":"te', b"{not json}", b'{"a":1} trailing', deep):
        found = read(line)
        assert isinstance(found, MalformedFrame)
        assert found.line == line
        assert found.why


def test_noise_and_what_was_too_long_pass_through() -> None:
    assert read(b"Loading\xe2\x80\xa6") == NoiseLine(b"Loading\xe2\x80\xa6")
    assert read(b"null") == NoiseLine(b"null")
    assert read(OversizedFrame(5, b"x")) == OversizedFrame(5, b"x")


def test_the_lines_of_a_read_keep_their_order() -> None:
    lines: list[Line] = [b'{"type":"end","code":1}', b"hm", OversizedFrame(5, b""), b'{"type":"x"}']
    first, second, third, fourth = decode_frames(lines, DECODER)
    assert [first, second, third] == [EndSample(1), NoiseLine(b"hm"), OversizedFrame(5, b"")]
    assert isinstance(fourth, UntypedFrame)
    assert decode_frames([], DECODER) == []


HEADS = st.sampled_from([b"", b"{", b"[", b'{"type":"text","text":"', b'{"type":"end","code":'])


@given(head=HEADS, middle=st.binary(), tail=st.sampled_from([b"", b"}", b'"}', b"]"]))
def test_no_bytes_make_it_raise(head: bytes, middle: bytes, tail: bytes) -> None:
    found = read(head + middle + tail)
    assert isinstance(found, TextSample | EndSample | UntypedFrame | MalformedFrame | NoiseLine)
