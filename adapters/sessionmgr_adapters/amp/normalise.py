"""Conversion of Amp's frames to events. Pure: no I/O, no clock, no waits, no exceptions.

Amp sends whole messages. Messages of sub-agents name the tool call that has started them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec import UNSET, UnsetType

from sessionmgr.adapter.kit import undecoded_event
from sessionmgr.model import (
    MessageReceived,
    RawReceived,
    ReasoningReceived,
    RunStarted,
    SessionStatsUpdated,
    TokenUsageUpdated,
    ToolCallCompleted,
    ToolCallFailed,
    ToolCallStarted,
    TurnCompleted,
    Usage,
)
from sessionmgr_adapters.amp import frames as amp
from sessionmgr_adapters.amp.failures import result_failure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sessionmgr.model import Event, Failure, Json

Parent: TypeAlias = str | UnsetType

LARGEST_COUNT: Final = 2**53


class AmpState:
    """State of a run between frames."""

    def __init__(self) -> None:
        self.started = False
        self.tools: Final[dict[str, amp.AmpToolUse]] = {}
        """The open tool calls."""
        self.closed: Final[set[str]] = set()
        """The ids of the tool calls that have ended."""
        self.unheard: Final[dict[str, str]] = {}
        """The texts that were sent and that Amp has not repeated yet, by their ids."""
        self.heard: Final[list[str]] = []
        """The ids of the texts that Amp has repeated."""
        self.text = ""
        """The last text of the agent."""
        self.model: str | None = None
        self.stop_reason: str | None = None
        self.failure: Failure | None = None


def normalise(frame: amp.AnyAmpFrame, state: AmpState) -> list[Event]:
    """Return the events of a frame; none for our own messages, which Amp repeats."""
    match frame:
        case amp.AmpInit():
            return _start(frame, state)
        case amp.AmpAssistant():
            return [*_start(frame, state), *_assistant(frame, state)]
        case amp.AmpUser():
            return [*_start(frame, state), *_user(frame, state)]
        case amp.AmpResult():
            return [*_start(frame, state), *_result(frame, state)]
        case _:
            return [undecoded_event(frame)]


def _start(
    frame: amp.AmpInit | amp.AmpAssistant | amp.AmpUser | amp.AmpResult, state: AmpState
) -> list[Event]:
    """Return the start of the run, with its first frame."""
    if state.started:
        return []
    state.started = True
    cwd = _text(frame.cwd) if isinstance(frame, amp.AmpInit) else None
    thread = _text(frame.session_id)
    return [RunStarted(provider_session_id=thread, cwd=cwd, credential="api_key")]


def _assistant(frame: amp.AmpAssistant, state: AmpState) -> Iterator[Event]:
    message, caller = frame.message, _text(frame.parent_tool_use_id)
    parent = caller or UNSET
    texts: list[str] = []
    for value in _blocks(message.content):
        match amp.decode_block(value):
            case amp.AmpText(text=text):
                texts.append(text)
            case amp.AmpThinking(thinking=thinking):
                if thinking:
                    yield ReasoningReceived(content=thinking, parent_tool_call_id=parent)
            case amp.AmpToolUse(id=id_) as call:
                yield from _message(texts, caller, state)
                if id_ not in state.tools and id_ not in state.closed:
                    state.tools[id_] = call
                    yield ToolCallStarted(
                        tool_call_id=id_,
                        tool_name=call.name,
                        tool_input=call.input,
                        parent_tool_call_id=parent,
                    )
            case _:
                yield RawReceived(frame=value)
    yield from _message(texts, caller, state)
    if caller is None:
        state.stop_reason = _text(message.stop_reason) or state.stop_reason
        state.model = _text(message.model) or state.model
    used = _usage(message.usage)
    if used != Usage():
        yield TokenUsageUpdated(usage=used)


def _message(texts: list[str], caller: str | None, state: AmpState) -> Iterator[Event]:
    """Yield the message of the texts before a tool call, or at the end; and forget them."""
    text = "\n\n".join(texts)
    texts.clear()
    if text:
        yield MessageReceived(content=text, parent_tool_call_id=caller or UNSET)
        if caller is None:
            state.text = text


def _user(frame: amp.AmpUser, state: AmpState) -> Iterator[Event]:
    parent = _text(frame.parent_tool_use_id) or UNSET
    texts: list[str] = []
    for value in _blocks(frame.message.content):
        match amp.decode_block(value):
            case amp.AmpText(text=text):
                texts.append(text)
            case amp.AmpToolResult() as result:
                yield from _tool_ended(result, parent, state)
            case _:
                yield RawReceived(frame=value)
    text = "\n\n".join(texts)
    ours = next((id_ for id_, sent in state.unheard.items() if sent.strip() == text.strip()), None)
    if ours is not None and parent is UNSET:
        del state.unheard[ours]
        state.heard.append(ours)
    elif text:
        yield MessageReceived(content=text, role="user", parent_tool_call_id=parent)


def _tool_ended(result: amp.AmpToolResult, parent: Parent, state: AmpState) -> Iterator[Event]:
    id_ = result.tool_use_id
    if id_ in state.closed:
        return
    state.closed.add(id_)
    call = state.tools.pop(id_, None)
    ended = ToolCallFailed if result.is_error else ToolCallCompleted
    yield ended(
        tool_call_id=id_,
        tool_name=call.name if call else "",
        tool_input=call.input if call else None,
        tool_output=result.content,
        parent_tool_call_id=parent,
    )


def _result(frame: amp.AmpResult, state: AmpState) -> Iterator[Event]:
    state.failure = failure = result_failure(frame)
    text = _text(frame.result)
    if failure is None and text and text != state.text:
        yield MessageReceived(content=text)
    yield SessionStatsUpdated(model=state.model, terminal_reason=_text(frame.subtype))
    yield TurnCompleted(stop_reason=state.stop_reason)


def _blocks(content: Json) -> list[Json]:
    match content:
        case list():
            return content
        case str():
            return [{"type": "text", "text": content}]
        case None:
            return []
        case _:
            return [content]


def _usage(counts: Json) -> Usage:
    counts = counts if isinstance(counts, dict) else {}
    return Usage(
        input=_count(counts.get("input_tokens")),
        cached_input=_count(counts.get("cache_read_input_tokens")),
        cache_write=_count(counts.get("cache_creation_input_tokens")),
        output=_count(counts.get("output_tokens")),
    )


def _count(value: Json) -> int:
    return int(value) if isinstance(value, int | float) and 0 < value < LARGEST_COUNT else 0


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) and value else None
