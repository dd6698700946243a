"""Conversion of the toy agent's frames to events. Pure: no I/O, clock, awaits or exceptions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sessionmgr.adapter.kit import undecoded_event
from sessionmgr.model import (
    MessageReceived,
    MessageStreamed,
    RunStarted,
    TokenUsageUpdated,
    ToolCallCompleted,
    ToolCallFailed,
    ToolCallStarted,
    Usage,
)
from sessionmgr.testing.toy import frames as toy

if TYPE_CHECKING:
    from sessionmgr.model import Event


class ToyState:
    """State between frames: the agent names the tool and its input only once."""

    def __init__(self) -> None:
        self.tools: dict[str, toy.ToyToolBegan] = {}


def normalise(frame: toy.AnyFrame, state: ToyState) -> list[Event]:
    """Return the events of a frame; none for frames about the conversation itself."""
    match frame:
        case toy.ToyHello(session=session, version=version, model=model):
            return [RunStarted(provider_session_id=session, cli_version=version, model=model)]
        case toy.ToyTextDelta(text=text, message=message):
            return [MessageStreamed(delta=text, message_id=message)]
        case toy.ToyText(text=text, message=message):
            return [MessageReceived(content=text, message_id=message)]
        case toy.ToyToolBegan(id=id_, name=name, input=tool_input):
            state.tools[id_] = frame
            return [ToolCallStarted(tool_call_id=id_, tool_name=name, tool_input=tool_input)]
        case toy.ToyToolEnded():
            return [_tool_ended(frame, state)]
        case toy.ToyTokens(input=read, output=written):
            return [TokenUsageUpdated(usage=Usage(input=read, output=written))]
        case toy.ToyQuestion() | toy.ToyWithdrawn() | toy.ToyTook() | toy.ToyTurnEnded():
            return []  # the driver handles these
        case _:
            return [undecoded_event(frame)]


def _tool_ended(frame: toy.ToyToolEnded, state: ToyState) -> Event:
    began = state.tools.pop(frame.id, None)
    ended = ToolCallCompleted if frame.ok else ToolCallFailed
    return ended(
        tool_call_id=frame.id,
        tool_name=began.name if began else "",
        tool_input=began.input if began else None,
        tool_output=frame.output,
    )
