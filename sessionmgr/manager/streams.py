"""The streams of one run: deltas are stored without secrets, wherever the provider cuts them.

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
from sessionmgr.store.redaction import StreamRedaction

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from sessionmgr.store.redaction import Redactor, TextPatterns

Delta: TypeAlias = MessageStreamed | ReasoningStreamed | ToolCallUpdated | OutputReceived
Key: TypeAlias = tuple[type[Event], str | None, str | None]
"""A stream's key: the kind of its deltas, their sub-agent, and their message or call."""

_ONLY_MESSAGES: Final = {MessageStreamed}
_PARENT: Final = attrgetter("parent_tool_call_id")
_MESSAGE: Final = attrgetter("message_id")
_SAID: Final = {MessageStreamed, ReasoningStreamed}
DELTAS: Final = frozenset({MessageStreamed, ReasoningStreamed, ToolCallUpdated, OutputReceived})


class Stream:
    """One stream: its redactor, and the last delta of which it may hold something back."""

    __slots__ = ("_named_plainly", "last", "pieces")

    def __init__(self, last: Delta) -> None:
        self.last = last
        self._named_plainly: Redactor | None = None
        """By whose secrets the id of its message is plain."""
        self.pieces: Final = StreamRedaction()

    def is_named_plainly(self, redactor: Redactor) -> bool:
        """Return whether the id of the stream's message contains no secret."""
        if self._named_plainly is not redactor:
            named = self.last.message_id if isinstance(self.last, MessageStreamed) else None
            if named is not None and not redactor.text.is_clean(named):
                return False
            self._named_plainly = redactor
        return True

    def take(self, deltas: Sequence[Delta], patterns: TextPatterns) -> Sequence[Delta]:
        """Return the deltas in storable form."""
        self.last = deltas[-1]
        texts = list(map(_TEXT_OF[type(self.last)], deltas))
        if self.pieces.accept_unchanged("".join(texts) if len(texts) > 1 else texts[0], patterns):
            return deltas
        return self._piece_by_piece(deltas, texts, patterns)

    def _piece_by_piece(
        self, deltas: Sequence[Delta], texts: Sequence[str], patterns: TextPatterns
    ) -> list[Delta]:
        """Redact each delta separately, except those in the middle without a possible secret."""
        found: list[Delta] = []
        place = looked = 0
        while place < len(deltas):
            if self.pieces.is_plain and place >= looked:
                end = self._end_of_clean(texts, place, patterns)
                found += deltas[place:end]
                place, looked = end, len(deltas)
                continue
            text = texts[place]
            passed = self.pieces.add(text, patterns)
            if passed == text:
                found.append(deltas[place])
            elif passed:
                found.append(_saying(deltas[place], passed))
            place += 1
        return found

    def _end_of_clean(self, texts: Sequence[str], begin: int, patterns: TextPatterns) -> int:
        """Return the index up to which no delta contains a secret, and record them as passed on."""
        left = self.pieces.clean_part("".join(texts[begin:]), patterns)
        end = begin
        while end < len(texts) and len(texts[end]) <= left:
            left -= len(texts[end])
            end += 1
        self.pieces.record_unchanged("".join(texts[begin:end]))
        return end

    def close(self, patterns: TextPatterns) -> Iterator[Delta]:
        """Return the held text as a last delta."""
        rest = self.pieces.close(patterns)
        if rest:
            yield _saying(self.last, rest)


class Streams:
    """The active streams of a run."""

    __slots__ = ("_open",)

    def __init__(self) -> None:
        self._open: Final[dict[Key, Stream]] = {}

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
        if len(events) == 1 and self._passes(events[0], redactor):
            return events
        if kinds == _ONLY_MESSAGES and not any(map(_PARENT, events)):  # true of nearly all reads
            messages = cast("Sequence[MessageStreamed]", events)
            if len(set(map(_MESSAGE, messages))) == 1:
                whole = (MessageStreamed, None, messages[0].message_id)
                return self._take(whole, messages, redactor)
        found: list[Event] = []
        for key, group in groupby(events, key_of):
            if key is None:
                for event in group:
                    for ended in self._ended_by(event):
                        found += self._open.pop(ended).close(redactor.text)
                    found.append(event)
            else:
                found += self._take(key, cast("list[Delta]", list(group)), redactor)
        return found

    def pass_text(
        self, events: Sequence[Event], redactor: Redactor
    ) -> Sequence[MessageStreamed] | None:
        """Return pieces of one message if they may be stored as they are; else do nothing."""
        first = events[0]
        if type(first) is not MessageStreamed:
            return None
        stream = self._open.get((MessageStreamed, None, first.message_id))
        if stream is None or not stream.is_named_plainly(redactor):
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

    def _passes(self, event: Event, redactor: Redactor) -> bool:
        """Return whether an event is a message delta that may be stored as it is."""
        if type(event) is not MessageStreamed or event.parent_tool_call_id:
            return False
        stream = self._open.get((MessageStreamed, None, event.message_id))
        return stream is not None and stream.pieces.accept_unchanged(event.delta, redactor.text)

    def _take(self, key: Key, deltas: Sequence[Delta], redactor: Redactor) -> Sequence[Delta]:
        stream = self._open.get(key)
        if stream is None:
            stream = self._open[key] = Stream(deltas[0])
        return stream.take(deltas, redactor.text)

    def _ended_by(self, event: Event) -> list[Key]:
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
                return [key] if key in self._open else self._of(MessageStreamed, parent)
            case ReasoningReceived():
                return self._of(ReasoningStreamed, parent)
            case ToolCallEnded(tool_call_id=call):
                return [key for key in self._open if key[0] is ToolCallUpdated and key[2] == call]
            case RetryScheduled():
                return [key for key in self._open if key[0] in _SAID]
            case _:
                return []

    def _of(self, kind: type[Event], parent: str | None) -> list[Key]:
        return [key for key in self._open if key[0] is kind and key[1] == parent]


def key_of(event: Event) -> Key | None:
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


def _saying(delta: Delta, text: str) -> Delta:
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
