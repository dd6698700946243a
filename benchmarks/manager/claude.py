"""The measured adapter, which turns Claude's frames into events.

The frames are those of `benchmarks.wire.measured_frame`, and the prompt is the file that a child
sends. Only the shape of a streamed piece of text is Claude's, which is most of its output.
"""

import subprocess
from collections.abc import Sequence
from typing import ClassVar, Final, cast

import trio

from benchmarks.wire.measured_frame import (
    Frame,
    MeasuredBlockDelta,
    MeasuredStreamEvent,
    MeasuredTextDelta,
    MeasuredThinkingDelta,
)
from benchmarks.wire.sessionmgr_pipe import DECODER
from sessionmgr.adapter import NATIVE, Capabilities, ProviderAdapter, RunContext
from sessionmgr.model import Event, MessageStreamed, ReasoningStreamed, RunStarted, TurnCompleted
from sessionmgr.process.pump import PipePump
from sessionmgr.wire.lines import Line, NoFrame, decode_frames

CAT: Final = ("cat",)


def normalise(frame: Frame | NoFrame) -> Event | None:
    """Return the event of a frame, or None if the frame has no event."""
    if isinstance(frame, MeasuredStreamEvent):
        event = frame.event
        if isinstance(event, MeasuredBlockDelta):
            delta = event.delta
            if isinstance(delta, MeasuredTextDelta):
                return MessageStreamed(delta=delta.text)
            assert isinstance(delta, MeasuredThinkingDelta)
            return ReasoningStreamed(delta=delta.thinking)
        return None
    return TurnCompleted() if not isinstance(frame, NoFrame) else None


def events_of(lines: Sequence[Line]) -> list[Event]:
    """Decode the lines of one read."""
    frames = decode_frames(lines, DECODER)
    return [event for frame in frames if (event := normalise(frame)) is not None]


def weight(lines: Sequence[Line]) -> int:
    """Return the approximate stored size in bytes of the events of these lines."""
    try:
        return sum(map(len, cast("Sequence[bytes]", lines)))
    except TypeError:  # an oversized line
        return sum(len(line) if isinstance(line, bytes) else line.bytes_seen for line in lines)


async def send_events(run: RunContext, command: Sequence[str]) -> None:
    """Send the events of a child's output until it ends."""

    def take(lines: Sequence[Line]) -> None:
        if events := events_of(lines):
            run.emit_nowait(*events, size=weight(lines))

    child = await trio.lowlevel.open_process(
        list(command), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert child.stdout is not None
    assert child.stderr is not None
    await PipePump(take, room=run.room).run(
        stdin=None, stdout=child.stdout, stderr=child.stderr, exited=child.wait
    )
    await child.wait()


class MeasuredAdapter(ProviderAdapter):
    """An adapter whose child sends the file that the prompt names."""

    name: ClassVar[str] = "claude-like"
    capabilities: ClassVar[Capabilities] = Capabilities(streaming=NATIVE)
    command: ClassVar[Sequence[str]] = CAT

    async def run(self, run: RunContext) -> None:
        await run.emit(RunStarted(provider_session_id=run.session_id))
        await send_events(run, (*self.command, run.prompt))
        await run.finish(stop_reason="end_turn")
