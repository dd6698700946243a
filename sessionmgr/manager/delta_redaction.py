"""The redaction of text deltas: no secret is stored, however the provider cuts its text.

If the end of a delta may be the beginning of a secret, that end is held back. It follows with the
next delta of its stream, or when the stream ends: with the whole message, the tool's result, the
end of the turn, or the end of the run.
"""

from __future__ import annotations

from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Final, TypeAlias, cast

from msgspec import UNSET
from msgspec.structs import replace

from sessionmgr.model import (
    Event,
    MessageReceived,
    MessageStreamed,
    OutputReceived,
    ReasoningReceived,
    ReasoningStreamed,
    RetryScheduled,
    RunEnded,
    ToolCallEnded,
    ToolCallUpdated,
    TurnCompleted,
)
from sessionmgr.store import StreamRedaction

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from sessionmgr.store import Redactor, TextPatterns

StreamDelta: TypeAlias = MessageStreamed | ReasoningStreamed | ToolCallUpdated | OutputReceived
StreamKey: TypeAlias = tuple[type[Event], str | None, str | None]
"""A stream's key: the kind of its deltas, their sub-agent, and their message or call."""

_ONLY_MESSAGES: Final = {MessageStreamed}
_PARENT: Final = attrgetter("parent_tool_call_id")
_MESSAGE: Final = attrgetter("message_id")
_SAID: Final = {MessageStreamed, ReasoningStreamed}
DELTAS: Final = frozenset({MessageStreamed, ReasoningStreamed, ToolCallUpdated, OutputReceived})


class DeltaStream:
    """One stream: its redactor, and the last delta whose end may be held back."""

    __slots__ = ("_named_plainly", "last", "pieces")

    def __init__(self, last: StreamDelta) -> None:
        self.last = last
        self._named_plainly: Redactor | None = None
        """The redactor whose secrets the id of the message does not contain."""
        self.pieces: Final = StreamRedaction()

    def has_public_id(self, redactor: Redactor) -> bool:
        """Return whether the id of the stream's message contains no secret."""
        if self._named_plainly is not redactor:
            named = self.last.message_id if isinstance(self.last, MessageStreamed) else None
            if named is not None and not redactor.text.is_clean(named):
                return False
            self._named_plainly = redactor
        return True

    def redact_deltas(
        self, deltas: Sequence[StreamDelta], patterns: TextPatterns
    ) -> Sequence[StreamDelta]:
        """Return the deltas in storable form."""
        self.last = deltas[-1]
        texts = list(map(_TEXT_OF[type(self.last)], deltas))
        if self.pieces.accept_unchanged("".join(texts) if len(texts) > 1 else texts[0], patterns):
            return deltas
        return self._redact_separately(deltas, texts, patterns)

    def _redact_separately(
        self, deltas: Sequence[StreamDelta], texts: Sequence[str], patterns: TextPatterns
    ) -> list[StreamDelta]:
        """Redact each delta separately, except those in the middle without a possible secret."""
        found: list[StreamDelta] = []
        place = looked = 0
        while place < len(deltas):
            if self.pieces.is_plain and place >= looked:
                end = self._clean_length(texts, place, patterns)
                found += deltas[place:end]
                place, looked = end, len(deltas)
                continue
            text = texts[place]
            passed = self.pieces.add(text, patterns)
            if passed == text:
                found.append(deltas[place])
            elif passed:
                found.append(_with_text(deltas[place], passed))
            place += 1
        return found

    def _clean_length(self, texts: Sequence[str], begin: int, patterns: TextPatterns) -> int:
        """Return the index up to which no delta contains a secret, and record them as passed on."""
        left = self.pieces.clean_part("".join(texts[begin:]), patterns)
        end = begin
        while end < len(texts) and len(texts[end]) <= left:
            left -= len(texts[end])
            end += 1
        self.pieces.record_unchanged("".join(texts[begin:end]))
        return end

    def flush(self, patterns: TextPatterns) -> Iterator[StreamDelta]:
        """Return the held text as a last delta."""
        rest = self.pieces.close(patterns)
        if rest:
            yield _with_text(self.last, rest)


class RunStreams:
    """The active streams of a run."""

    __slots__ = ("_open",)

    def __init__(self) -> None:
        self._open: Final[dict[StreamKey, DeltaStream]] = {}

    def __len__(self) -> int:
        return len(self._open)

    def redact(
        self, events: Sequence[Event], kinds: Collection[type[Event]], redactor: Redactor
    ) -> Sequence[Event]:
        """Return events in storable form, except for secrets within single events.

        `kinds` are their types. If nothing changes, the same object is returned.
        """
        if DELTAS.isdisjoint(kinds) and not self._open:
            return events
        if len(events) == 1 and self._is_storable(events[0], redactor):
            return events
        if kinds == _ONLY_MESSAGES and not any(map(_PARENT, events)):  # true of nearly all reads
            messages = cast("Sequence[MessageStreamed]", events)
            if len(set(map(_MESSAGE, messages))) == 1:
                whole = (MessageStreamed, None, messages[0].message_id)
                return self._redact_stream(whole, messages, redactor)
        found: list[Event] = []
        for key, group in groupby(events, stream_key):
            if key is None:
                for event in group:
                    for ended in self._streams_ended_by(event):
                        found += self._open.pop(ended).flush(redactor.text)
                    found.append(event)
            else:
                found += self._redact_stream(key, cast("list[StreamDelta]", list(group)), redactor)
        return found

    def pass_text(
        self, events: Sequence[Event], redactor: Redactor
    ) -> Sequence[MessageStreamed] | None:
        """Return pieces of one message if they may be stored as they are; else do nothing."""
        first = events[0]
        if type(first) is not MessageStreamed:
            return None
        stream = self._open.get((MessageStreamed, None, first.message_id))
        if stream is None or not stream.has_public_id(redactor):
            return None
        if len(events) == 1:
            text = first.delta
        else:
            message_id, texts = first.message_id, list[str]()
            for event in events:
                if type(event) is not MessageStreamed or event.message_id != message_id:
                    return None
                texts.append(event.delta)
            text = "".join(texts)
        if not stream.pieces.accept_unchanged(text, redactor.text):
            return None
        return cast("Sequence[MessageStreamed]", events)

    def _is_storable(self, event: Event, redactor: Redactor) -> bool:
        """Return whether an event is a message delta that may be stored as it is."""
        if type(event) is not MessageStreamed or event.parent_tool_call_id:
            return False
        stream = self._open.get((MessageStreamed, None, event.message_id))
        return stream is not None and stream.pieces.accept_unchanged(event.delta, redactor.text)

    def _redact_stream(
        self, key: StreamKey, deltas: Sequence[StreamDelta], redactor: Redactor
    ) -> Sequence[StreamDelta]:
        stream = self._open.get(key)
        if stream is None:
            stream = self._open[key] = DeltaStream(deltas[0])
        return stream.redact_deltas(deltas, redactor.text)

    def _streams_ended_by(self, event: Event) -> list[StreamKey]:
        """Return the streams that end with an event."""
        if not self._open:
            return []
        parent = event.parent_tool_call_id or None
        match event:
            case RunEnded():
                return list(self._open)
            case TurnCompleted():
                return [key for key in self._open if parent is None or key[1] == parent]
            case MessageReceived(message_id=message_id):
                key = (MessageStreamed, parent, message_id)
                return [key] if key in self._open else self._keys_of(MessageStreamed, parent)
            case ReasoningReceived():
                return self._keys_of(ReasoningStreamed, parent)
            case ToolCallEnded(tool_call_id=call):
                return [key for key in self._open if key[0] is ToolCallUpdated and key[2] == call]
            case RetryScheduled():
                return [key for key in self._open if key[0] in _SAID]
            case _:
                return []

    def _keys_of(self, kind: type[Event], parent: str | None) -> list[StreamKey]:
        return [key for key in self._open if key[0] is kind and key[1] == parent]


def stream_key(event: Event) -> StreamKey | None:
    """Return the stream of a delta; None for other events."""
    if type(event) is MessageStreamed:  # as most events are
        return MessageStreamed, event.parent_tool_call_id or None, event.message_id
    match event:
        case ToolCallUpdated(tool_call_id=part):
            return ToolCallUpdated, event.parent_tool_call_id or None, part
        case ReasoningStreamed():
            return ReasoningStreamed, event.parent_tool_call_id or None, None
        case OutputReceived(stream=stream):
            return OutputReceived, None, stream
        case _:
            return None


def _with_text(delta: StreamDelta, text: str) -> StreamDelta:
    """Return a delta with another text and without the provider's raw frame."""
    if isinstance(delta, ToolCallUpdated):
        return replace(delta, output_delta=text, raw=UNSET, source=UNSET)
    if isinstance(delta, OutputReceived):
        return replace(delta, text=text, raw=UNSET, source=UNSET)
    return replace(delta, delta=text, raw=UNSET, source=UNSET)


_TEXT_OF: Final = {
    MessageStreamed: attrgetter("delta"),
    ReasoningStreamed: attrgetter("delta"),
    ToolCallUpdated: attrgetter("output_delta"),
    OutputReceived: attrgetter("text"),
}
