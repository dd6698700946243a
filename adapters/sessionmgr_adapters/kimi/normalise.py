"""Conversion of Kimi's events to ours. Pure: no I/O, no clock, no waits, no exceptions.

Kimi streams text, reasoning and the arguments of tool calls in pieces without marking their end, so
the next event of another kind ends them; the answer to the prompt ends the last message. If Kimi
repeats a step, the step's output and tool calls so far are void.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec import UNSET, UnsetType

from sessionmgr.adapter.kit import ImageCollector, PeerRequest, RpcAnswer, undecoded_event
from sessionmgr.model import (
    CompactionCompleted,
    CompactionStarted,
    Json,
    MessageReceived,
    MessageStreamed,
    PlanEntry,
    PlanUpdated,
    RawReceived,
    ReasoningReceived,
    ReasoningStreamed,
    RetryScheduled,
    RunStarted,
    SessionStatsUpdated,
    TokenUsageUpdated,
    ToolCallCompleted,
    ToolCallFailed,
    ToolCallStarted,
    UnreadableJson,
    Usage,
    parse_json,
)
from sessionmgr_adapters.kimi.failures import retry_failure
from sessionmgr_adapters.kimi.frames import KimiEvent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sessionmgr.model import Event
    from sessionmgr_adapters.kimi.frames import KimiFrame

Parent: TypeAlias = str | UnsetType
ASKING_TOOLS: Final = frozenset({"Shell", "WriteFile", "StrReplaceFile"})
"""Tools that always ask before they act, except in yolo mode and about the plan itself."""
_SILENT: Final = frozenset({
    *("TurnEnd", "StepInterrupted", "ApprovalResponse", "HookTriggered", "HookResolved"),
    *("MCPLoadingBegin", "MCPLoadingEnd", "TurnBegin"),
})  # fmt: skip


class KimiState:
    """State of one agent between events: of the run's own, its `root`, or of a sub-agent."""

    def __init__(self, parent: Parent = UNSET, root: KimiState | None = None) -> None:
        self.parent: Final = parent
        self.root: Final = root or self
        self.start: RunStarted | None = None
        """The event that begins the run, until the turn begins."""
        self.text: list[str] = []
        self.thoughts: list[str] = []
        self.tools: Final[dict[str, tuple[str, Json]]] = {}
        """Names and inputs of the calls without a result, by their ids."""
        self.asked: Final[set[str]] = set()
        """Ids of the calls about which Kimi has asked."""
        self.unasked: str | None = None
        """The tool that acted although Kimi had not asked about it."""
        self.images: Final = ImageCollector()
        self.has_output = self.used_tools = self.has_tasks = False
        self.usage = Usage()
        self.call: tuple[str, str] = ("", "")
        """Id and name of the call whose arguments are incomplete."""
        self.arguments: list[str] = []
        self.messages = 0
        self.agents: Final[dict[str, KimiState]] = {}

    @property
    def message_id(self) -> str:
        """The id of the current message."""
        return f"message-{self.messages}"

    def drop_message(self) -> None:
        """Forget the pieces of the current message."""
        self.text, self.thoughts, self.messages = [], [], self.messages + 1


def normalise(frame: KimiFrame, state: KimiState) -> list[Event]:
    """Return the events of a frame; none if it does not concern the run."""
    match frame:
        case KimiEvent():
            return list(_events(frame, state))
        case PeerRequest(method="ApprovalRequest", params={"tool_call_id": str(name)}):
            state.asked.add(name)
            return list(_end_arguments(state, only_whole=True))
        case PeerRequest() | RpcAnswer():
            return []  # the driver handles these
        case _:
            return [undecoded_event(frame)]


def end_turn(state: KimiState, status: Json, whole: str | None = None) -> list[Event]:
    """Return the last events of a turn that was answered with `status`.

    `whole` is the last message in the session's file. It differs from the pieces if Kimi has called
    the model again unannounced; it is reported as another message then.
    """
    text = "".join(state.text)
    if whole and text != whole and text.endswith(whole):
        state.messages += 1
        state.text = [whole]
    return [*_end_message(state), *(_void_calls(state) if status == "finished" else ())]


def _events(frame: KimiEvent, state: KimiState) -> Iterator[Event]:
    payload, parent = frame.payload, state.parent
    if frame.type != "ToolCallPart":
        yield from _end_arguments(state)
    match frame.type, payload:
        case "ContentPart", {"type": "text", "text": str(text)}:
            yield from _end_thoughts(state)
            state.text.append(text)
            state.root.has_output = state.root.has_output or bool(text)
            name = state.message_id
            yield MessageStreamed(delta=text, message_id=name, parent_tool_call_id=parent)
        case "ContentPart", {"type": "think", "think": str(text)}:
            if state.text:  # reasoning comes first, so this begins another message
                yield from _end_message(state)
            state.thoughts.append(text)
            yield ReasoningStreamed(delta=text, parent_tool_call_id=parent)
        case "ToolCall", {"id": str(id_), "function": {"name": str(name), "arguments": text}}:
            yield from _end_message(state)
            state.call, state.arguments = (id_, name), [str(text or "")]
            state.root.has_output = state.root.used_tools = True
        case "ToolCallPart", {"arguments_part": text}:
            state.arguments.append(str(text or ""))
        case "ToolResult", {"tool_call_id": str(name), "return_value": dict() as value} if (
            name in state.tools
        ):
            yield from _end_call(state, name, value)
        case "StatusUpdate", _:
            yield from _status(payload, state)
        case "StepRetry", _:
            state.drop_message()
            yield from _void_calls(state)
            attempt, delay = payload.get("next_attempt"), payload.get("wait_s")
            yield RetryScheduled(
                by="provider",
                attempt=attempt if isinstance(attempt, int) else 1,
                delay=delay if isinstance(delay, int | float) else None,
                failure=retry_failure(payload),
            )
        case "SubagentEvent", {"event": {"type": str(kind), "payload": dict() as inner}}:
            name = str(payload.get("parent_tool_call_id") or payload.get("agent_id"))
            agent = state.agents.setdefault(name, KimiState(name, state.root))
            yield from _events(KimiEvent(kind, inner), agent)
        case "SteerInput", _:
            yield from _end_message(state)
        case "StepBegin", _:
            yield from _end_message(state)
            yield from _void_calls(state)
        case "CompactionBegin", _:
            yield CompactionStarted(trigger="auto")
        case "CompactionEnd", _:
            yield CompactionCompleted(trigger="auto")
        case "PlanDisplay", {"content": str(text)}:
            yield PlanUpdated(entries=(PlanEntry(content=text),))
        case "TurnBegin", _ if state.start is not None:
            yield state.start
            state.start = None
        case kind, _ if kind not in _SILENT:
            yield RawReceived(frame={"type": kind, "payload": payload})
        case _:
            pass


def _end_arguments(state: KimiState, *, only_whole: bool = False) -> Iterator[Event]:
    """Yield the start of the call whose arguments are complete."""
    (name, tool), text = state.call, "".join(state.arguments)
    found = parse_json(text.encode(errors="replace")) if text else {}
    if not name or (only_whole and isinstance(found, UnreadableJson)):
        return  # a request about the call may overtake its arguments
    tool_input = text if isinstance(found, UnreadableJson) else found
    state.call, state.tools[name] = ("", ""), (tool, tool_input)
    yield ToolCallStarted(
        tool_call_id=name,
        tool_name=tool,
        tool_input=tool_input,
        parent_tool_call_id=state.parent,
    )


def _end_message(state: KimiState) -> Iterator[Event]:
    yield from _end_thoughts(state)
    if state.text:
        name, text = state.message_id, "".join(state.text)
        yield MessageReceived(content=text, message_id=name, parent_tool_call_id=state.parent)
        state.drop_message()


def _end_thoughts(state: KimiState) -> Iterator[Event]:
    if state.thoughts:
        thoughts, state.thoughts = "".join(state.thoughts), []
        yield ReasoningReceived(content=thoughts, parent_tool_call_id=state.parent)


def _void_calls(state: KimiState) -> Iterator[Event]:
    """Yield the ends of the calls that get no result, because their step was repeated."""
    for name in list(state.tools):
        yield from _end_call(state, name, {"is_error": True, "message": "the step was repeated"})


def _end_call(state: KimiState, name: str, value: dict[str, Json]) -> Iterator[Event]:
    tool, _ = state.tools.pop(name)
    if name in state.agents:
        yield from _end_message(state.agents[name])
    failed, message, shown = value.get("is_error"), value.get("message"), value.get("display")
    if tool in ASKING_TOOLS and not failed and name not in state.asked | state.root.asked:
        state.root.unasked = tool
    for each in shown if isinstance(shown, list) else ():
        if isinstance(each, dict) and each.get("type") == "background_task":
            state.root.has_tasks = True
    output, images = state.images.extract(value.get("output"))
    if message and (failed or not output) and not isinstance(output, list):
        output = "\n".join(str(each) for each in (message, output) if each)
    state.root.images.blobs.extend(state.images.collect() if state.root is not state else ())
    yield (ToolCallFailed if failed else ToolCallCompleted)(
        tool_call_id=name, tool_name=tool, tool_output=output, parent_tool_call_id=state.parent
    )
    yield from images


def _status(payload: dict[str, Json], state: KimiState) -> Iterator[Event]:
    spent, root = payload.get("token_usage"), state.root
    if isinstance(spent, dict):
        names = ("input_other", "input_cache_read", "input_cache_creation", "output")
        counts = [each if isinstance(each := spent.get(name), int) else 0 for name in names]
        fields = ("input", "cached_input", "cache_write", "output")
        usage = Usage(**dict(zip(fields, counts, strict=True)))
        root.usage += usage
        yield TokenUsageUpdated(usage=usage, total=root.usage)
    used, size = payload.get("context_tokens"), payload.get("max_context_tokens")
    if isinstance(used, int) and root is state:
        window = size if isinstance(size, int) else None
        yield SessionStatsUpdated(context_window=window, context_used=used)
