"""A session's inbox: the events and commands for the session's recorder, in order.

It is a trio memory channel that counts the waiting bytes. Sending never blocks; an adapter that
emits more than the store can take waits between two reads, in `room`. Only a sender that does not
wait for room can fill the inbox: that is an error of its own, and ends that run alone.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final, cast

import msgspec
import trio
from msgspec import UNSET

from sessionmgr.adapter import RunControl
from sessionmgr.manager.errors import InboxFull
from sessionmgr.manager.validate_events import validate_blobs, validate_events
from sessionmgr.model import Event, MessageStreamed, ReasoningStreamed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


ROOM: Final = 8 * 1024 * 1024
"""Bytes of events that may wait to be stored before `room` blocks."""
ROOM_ITEMS: Final = 2048
"""Batches of events that may wait to be stored before `room` blocks."""
MOST_BYTES: Final = 16 * ROOM
"""Bytes of events that an inbox can hold, unless one batch alone has more."""
MOST_EVENTS: Final = 4 * ROOM_ITEMS
"""Maximum number of event batches in an inbox."""
MOST_REQUESTS: Final = 2 * MOST_EVENTS
"""Maximum number of event batches and caller requests together."""
MOST_ITEMS: Final = 4 * MOST_EVENTS
"""Maximum number of all items; the next two limits leave space for the commands that end runs."""
MOST_RUNS: Final = MOST_EVENTS // 2
"""Maximum number of active and queued runs of a session."""
MOST_QUESTIONS: Final = MOST_EVENTS // 8
"""Maximum number of open approval requests of a run."""
ENVELOPE: Final = 100
"""Approximate number of bytes of an event beside its text."""
IN_ONE_GO: Final = 8
"""Number of consecutive calls of `room` after which other tasks get a turn."""


class CommitUrgency(IntEnum):
    """The urgency of an item: how soon it must be stored."""

    NONE = 0
    """Nothing waits to be stored."""
    WITH_END = 1
    """An event of a stopping run: together with the run's end, if that comes soon."""
    LATER = 2
    """A piece of streamed text: together with others."""
    SOON = 3
    """Another event: without a noticeable delay."""
    NOW = 4
    """A command, or the end of a run."""


class EventBatch(msgspec.Struct, frozen=True, gc=False):
    """Events that an adapter has emitted, in their order.

    The garbage collector does not track it, because a closing inbox drops its items.
    """

    run: RunControl
    events: tuple[Event, ...]
    size: int
    blobs: tuple[bytes, ...] = ()
    """The images that these events refer to, stored with them."""
    is_text: bool = False
    """Whether they are pieces of text and nothing else."""


class Inbox:
    """A bounded queue that counts bytes; the recorder takes from it without waiting."""

    __slots__ = (
        *("_all_stored", "_count", "_in_one_go", "_is_closed", "_receiving", "_sending"),
        "_stored",
        *("notify", "pending", "urgency"),
    )

    def __init__(self) -> None:
        self._sending, self._receiving = trio.open_memory_channel[object](MOST_ITEMS)
        self._count = 0
        self._stored: trio.Event | None = None
        self._all_stored: trio.Event | None = None
        self._in_one_go = 0
        self._is_closed = False
        self.pending = 0
        """Bytes of events that are not stored yet."""
        self.urgency = CommitUrgency.NONE
        """The highest urgency of the waiting items."""
        self.notify: Callable[[CommitUrgency], None] | None = None
        """Called when an item is more urgent than all that wait."""

    def __len__(self) -> int:
        return self._count

    def put(self, command: object, urgency: CommitUrgency = CommitUrgency.NOW) -> None:
        """Add a command."""
        self._enqueue(command, urgency)

    def put_request(self, request: object) -> None:
        """Add a caller's request.

        Raises:
            InboxFull: Too many items wait already.
        """
        self.require_space()
        self._enqueue(request, CommitUrgency.NOW)

    def require_space(self) -> None:
        """Check that there is space for a caller's request.

        Raises:
            InboxFull: Too many items wait already.
        """
        if self._count >= MOST_REQUESTS:
            raise InboxFull(self._count, self.pending)

    def put_events(
        self,
        run: RunControl,
        events: tuple[Event, ...],
        size: int | None = None,
        blobs: Sequence[bytes] = (),
    ) -> None:
        """Add a run's events, the number of bytes that the adapter read for them, and their images.

        Pieces of text, which nearly all events are, are checked here; that is cheaper than encoding
        them.

        Raises:
            InboxFull: The adapter has not waited for room.
            TypeError: An adapter may not emit this event.
        """
        events, is_text, written = _storable_events(events, is_sized=size is not None)
        if blobs:
            if not events:
                raise TypeError("blobs without an event that names them")
            blobs, is_text = validate_blobs(blobs), False
        if size is None:
            size = written + sum(map(len, blobs))
        if self._is_closed:
            return
        if self._count >= MOST_EVENTS or (self.pending and self.pending + size > MOST_BYTES):
            raise InboxFull(self._count, self.pending)
        if run.stop is not None:
            urgency = CommitUrgency.WITH_END
        else:
            urgency = CommitUrgency.LATER if is_text and events else CommitUrgency.SOON
        self._enqueue(
            EventBatch(run, events, size, tuple(blobs), is_text and bool(events)), urgency
        )
        self.pending += size

    def _enqueue(self, item: object, urgency: CommitUrgency) -> None:
        if self._is_closed:
            return
        try:
            self._sending.send_nowait(item)
        except trio.WouldBlock:
            raise InboxFull(self._count, self.pending) from None
        self._count += 1
        if urgency > self.urgency:
            self.urgency = urgency
            if self.notify is not None:
                self.notify(urgency)

    def pop(self) -> object | None:
        """Remove and return the first item; None if the inbox is empty."""
        if not self._count:
            return None
        self._count -= 1
        return self._receiving.receive_nowait()

    def close(self) -> None:
        """Drop all items, present and future, because the recorder has stopped.

        A reader that serves other sessions as well may wait for room here, so it is woken.
        """
        self._is_closed = True
        self.notify = None
        while self.pop() is not None:
            pass
        self.release_bytes(self.pending)

    def release_bytes(self, size: int) -> None:
        """Note that these bytes are stored, or never will be."""
        self.pending -= size
        self._in_one_go = 0  # the caller is another task
        if self._stored is not None and self._has_room():
            self._stored.set()
            self._stored = None
        if self._all_stored is not None and not self.pending:
            self._all_stored.set()
            self._all_stored = None

    async def recorded(self) -> None:
        """Wait until all events are stored."""
        await trio.lowlevel.checkpoint()
        while self.pending:
            if self._all_stored is None:
                self._all_stored = trio.Event()
            await self._all_stored.wait()

    def _has_room(self) -> bool:
        return self.pending <= ROOM and self._count < ROOM_ITEMS

    async def room(self) -> None:
        """Wait until there is room for more.

        With room, other tasks get a turn only now and then: events that are emitted together are
        then also drained and stored together.
        """
        self._in_one_go += 1
        if self._in_one_go < IN_ONE_GO and self._has_room():
            await trio.lowlevel.checkpoint_if_cancelled()
            return
        self._in_one_go = 0
        await trio.lowlevel.checkpoint()
        while not self._has_room():
            if self._stored is None:
                self._stored = trio.Event()
            await self._stored.wait()

    def statistics(self) -> trio.MemoryChannelStatistics:
        """Return the channel's statistics."""
        return self._receiving.statistics()


def _storable_events(
    events: tuple[Event, ...], *, is_sized: bool
) -> tuple[tuple[Event, ...], bool, int]:
    """Return the events in storable form, whether all are plain text pieces, and their size.

    Raises:
        TypeError: An adapter may not emit one of these events.
    """
    others = _other_positions(events)
    if not others:
        return events, True, 0 if is_sized else size_of_text(events)
    if len(others) == len(events):
        found, written = validate_events(events)
        return found, False, written
    checked, written = validate_events(tuple([events[place] for place in others]))
    if len(checked) > len(others):  # one event has become several
        found, written = validate_events(events)
        return found, False, written
    made = list(events)
    for place, event in zip(others, checked, strict=True):
        made[place] = event
    if not is_sized:
        left = set(others)
        written += size_of_text([each for at, each in enumerate(events) if at not in left])
    return tuple(made), False, written


def _other_positions(events: tuple[Event, ...]) -> list[int]:
    """Return the positions of events that are not plain text pieces, by the cheapest test."""
    unset, text = UNSET, str
    found: list[int] = []
    for place, event in enumerate(events):
        if type(event) is MessageStreamed:
            if type(event.message_id) is not text and event.message_id is not None:
                found.append(place)
                continue
        elif type(event) is not ReasoningStreamed:
            found.append(place)
            continue
        if (
            type(event.delta) is not text
            or event.raw is not unset
            or event.parent_tool_call_id is not unset
            or event.synthetic is not unset
            or event.source is not unset
        ):
            found.append(place)
    return found


def size_of_text(events: Sequence[Event]) -> int:
    """Return the approximate number of bytes of text pieces."""
    pieces = cast("Sequence[MessageStreamed | ReasoningStreamed]", events)
    return sum([ENVELOPE + len(event.delta) for event in pieces])
