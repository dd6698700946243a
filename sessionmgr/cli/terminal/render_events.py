"""Rendering of a run's events for a user: the agent's text, and notes beside it.

The functions are pure: events in, text and notes out. Everything but the agent's text is a note.
"""

from __future__ import annotations

from functools import singledispatch
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from msgspec import UNSET

from sessionmgr.batch import tool_label
from sessionmgr.cli.terminal.format import format_cost, format_count, format_duration, pluralize
from sessionmgr.cli.terminal.safe_text import one_line, strip_controls, truncate
from sessionmgr.model import (
    CompactionStarted,
    EndReason,
    ErrorOccurred,
    Event,
    Failure,
    Fidelity,
    ImageReceived,
    MessageReceived,
    MessageSent,
    MessageStreamed,
    OutputReceived,
    PlanUpdated,
    PolicyViolation,
    ProcessExited,
    RateLimitUpdated,
    ReasoningReceived,
    RetryScheduled,
    RunStarted,
    RunStatus,
    StallSuspected,
    ToolApprovalDenied,
    ToolApprovalGranted,
    ToolCallFailed,
    ToolCallStarted,
    encode_json,
)

if TYPE_CHECKING:
    from sessionmgr.model import AnyEvent, Json, RunResult

SHORT: Final = 200
"""Maximum length of a tool's input or output in a note."""
_AT_EASE: Final = frozenset({"allowed", "ok", "normal"})


class RunText(NamedTuple):
    """A piece of the agent's text; `ends` says that a message ends with it."""

    text: str
    ends: bool = False


class RunNoteLine(NamedTuple):
    """A line beside the text. Details are shown with `-v` only."""

    text: str
    tone: Literal["plain", "faint", "good", "warning", "bad"] = "faint"
    detail: bool = False


class RunRenderer:
    """Renders one run. A message that was streamed is not repeated when it is complete."""

    def __init__(self) -> None:
        self._streamed: dict[str | None, list[str]] = {}
        self._denied: set[str | None] = set()

    def render(self, event: AnyEvent) -> list[RunText | RunNoteLine]:
        """Return the text and notes of an event, if any."""
        if not isinstance(event, Event):
            return []
        of_another = event.parent_tool_call_id is not UNSET
        match event:
            case MessageStreamed(delta=delta):
                if of_another:
                    return []
                self._streamed.setdefault(event.message_id, []).append(delta)
                return [RunText(delta)]
            case MessageReceived(role="assistant", content=content):
                if of_another:
                    return [RunNoteLine(f"  {one_line(content)}", detail=True)]
                return self._unstreamed_text(event.message_id, content)
            case ToolCallFailed(tool_call_id=denied) if denied in self._denied:
                return []  # the denial was shown already
            case _:
                if isinstance(event, ToolApprovalDenied):
                    self._denied.add(event.tool_call_id)
                indent = "  " if of_another else ""
                return [each._replace(text=indent + each.text) for each in event_notes(event)]

    def _unstreamed_text(self, message_id: str | None, content: str) -> list[RunText | RunNoteLine]:
        """Return the part of a complete message that was not streamed, under any message id."""
        for name in dict.fromkeys((message_id, None, *self._streamed)):
            said = "".join(self._streamed.get(name, ()))
            if said and content.startswith(said):
                del self._streamed[name]
                return [RunText(content[len(said) :], ends=True)]
        begun = self._streamed.pop(message_id, None)
        whole = RunText(content, ends=True)
        return [RunText("", ends=True), whole] if begun else [whole]


@singledispatch
def event_notes(event: Event) -> list[RunNoteLine]:
    """Return the notes of an event; none for the types that are not listed below."""
    del event
    return []


@event_notes.register
def _(event: RunStarted) -> list[RunNoteLine]:
    permission = event.permission
    mode = permission.effective if permission else None
    if permission and permission.fidelity is Fidelity.UNVERIFIED:
        mode = f"{mode} ({permission.fidelity})"
    words = [event.provider, event.model, mode, f"in {event.cwd}" if event.cwd else None]
    said = ", ".join(one_line(word) for word in words if word)
    less = event.negotiation.degraded if event.negotiation else ()
    return [
        RunNoteLine(f"{event.run_id}: {said}"),
        *(RunNoteLine(f"warning: {each.name}: {one_line(each.why)}", "warning") for each in less),
    ]


@event_notes.register
def _(event: ToolCallStarted) -> list[RunNoteLine]:
    return [RunNoteLine(f"· {describe_tool(event.tool_name, event.tool_input)}", "plain")]


@event_notes.register
def _(event: ToolCallFailed) -> list[RunNoteLine]:
    why = _describe_output(event.tool_output)
    return [
        RunNoteLine(f"✗ {one_line(event.tool_name)} failed{f': {why}' if why else ''}", "warning")
    ]


@event_notes.register
def _(event: ToolApprovalDenied) -> list[RunNoteLine]:
    tool = describe_tool(event.tool_name or "a tool", event.tool_input)
    why = one_line(event.reason or "")
    return [RunNoteLine(f"✗ denied: {tool}{f' ({why})' if why else ''}", "warning")]


@event_notes.register
def _(event: ToolApprovalGranted) -> list[RunNoteLine]:
    if event.by in {"mode", "caller"}:  # the user's settings or answer are the reason
        return []
    return [
        RunNoteLine(
            f"✓ allowed: {describe_tool(event.tool_name, event.tool_input)} (by {event.by})"
        )
    ]


@event_notes.register
def _(event: MessageSent) -> list[RunNoteLine]:
    if event.state in {"dropped", "unknown"}:
        what = "was not sent" if event.state == "dropped" else "may not have arrived"
        return [
            RunNoteLine(f"a message {what}: {truncate(one_line(event.content), SHORT)}", "warning")
        ]
    is_shown = (
        event.follow_up and event.state == "sent"
    )  # the terminal that sent it shows that it is queued
    return [RunNoteLine(f"> {truncate(one_line(event.content), SHORT)}")] if is_shown else []


@event_notes.register
def _(event: ReasoningReceived) -> list[RunNoteLine]:
    return [RunNoteLine(f"thinks: {one_line(event.content)}", detail=True)]


@event_notes.register
def _(event: PlanUpdated) -> list[RunNoteLine]:
    done = sum(entry.status == "completed" for entry in event.entries)
    now = [entry.content for entry in event.entries if entry.status == "in_progress"]
    said = f"plan: {done} of {len(event.entries)} done"
    return [RunNoteLine(said + (f"; now: {one_line(now[0])}" if now else ""))]


@event_notes.register
def _(event: ImageReceived) -> list[RunNoteLine]:
    return [
        RunNoteLine(
            f"an image: {one_line(event.media_type)}, {format_count(event.bytes)}B", "plain"
        )
    ]


@event_notes.register
def _(event: OutputReceived) -> list[RunNoteLine]:
    return [
        RunNoteLine(line, "plain")
        for line in strip_controls(event.text).split("\n")
        if line.strip()
    ]


@event_notes.register
def _(event: ErrorOccurred) -> list[RunNoteLine]:
    tone: Literal["bad", "warning"] = "bad" if event.severity == "error" else "warning"
    return [RunNoteLine(f"{event.severity}: {describe_failure(event.failure)}", tone)]


@event_notes.register
def _(event: RetryScheduled) -> list[RunNoteLine]:
    after = f" in {format_duration(event.delay)}" if event.delay is not None else ""
    why = f": {describe_failure(event.failure)}" if event.failure else ""
    return [RunNoteLine(f"retry {event.attempt}{after}{why}", "warning")]


@event_notes.register
def _(event: RateLimitUpdated) -> list[RunNoteLine]:
    until = f", resets at {one_line(event.resets_at)}" if event.resets_at else ""
    said = f"rate limit {one_line(event.bucket)}: {one_line(event.state)}{until}"
    at_ease = event.state in _AT_EASE
    return [RunNoteLine(said, "faint" if at_ease else "warning", detail=at_ease)]


@event_notes.register
def _(event: StallSuspected) -> list[RunNoteLine]:
    said = f"no output for {format_duration(event.silent_for)}"
    match event:
        case StallSuspected(state="deadline", evidence={"running_for": gone, "limit": limit}):
            said = f"running for {_format_seconds(gone)} of {_format_seconds(limit)}"
        case StallSuspected(state="approval"):
            said = f"an approval request has waited for {format_duration(event.silent_for)}"
        case _:
            pass
    return [RunNoteLine(f"{said} ({one_line(event.state)})", "warning")]


@event_notes.register
def _(event: PolicyViolation) -> list[RunNoteLine]:
    detail = f": {one_line(event.detail)}" if event.detail else ""
    return [RunNoteLine(f"rule broken: {one_line(event.rule)}{detail}", "bad")]


@event_notes.register
def _(event: CompactionStarted) -> list[RunNoteLine]:
    del event
    return [RunNoteLine("the context is full and is being compacted")]


@event_notes.register
def _(event: ProcessExited) -> list[RunNoteLine]:
    said: list[RunNoteLine] = []
    if event.killed_by_os:
        said.append(RunNoteLine("the system killed the agent (out of memory?)", "bad"))
    if event.left_running:
        names = ", ".join(map(one_line, event.left_running))
        said.append(RunNoteLine(f"still running and out of reach: {names}", "bad"))
    return said


def describe_result(result: RunResult) -> RunNoteLine:
    """Describe on one line how a run ended."""
    took = format_duration(result.duration) if result.duration is not None else None
    tokens = result.usage.input + result.usage.cached_input + result.usage.output
    facts = [
        f"in {took}" if took else "",
        pluralize(sum(result.tool_calls.count.values()), "tool call"),
        f"{result.tool_calls.denied} denied" if result.tool_calls.denied else "",
        f"{format_count(tokens)} tokens" if tokens else "",
        format_cost(result.cost.usd, result.cost.provenance),
    ]
    facts = [fact for fact in facts if fact and fact != "0 tool calls"]
    tone: Literal["good", "plain", "bad"] = "bad"
    if result.status is RunStatus.COMPLETED:
        tone = "good"
    elif result.status in {RunStatus.CANCELLED, RunStatus.PAUSED}:
        tone = "plain"
    why = end_reason(result)
    said = f"{result.status.value.replace('_', ' ')}{f': {why}' if why else ''}"
    return RunNoteLine(f"{said} ({', '.join(facts)})" if facts else said, tone)


def end_reason(result: RunResult) -> str:
    """Describe why a run did not complete: the failure, or who ended it; empty if it did."""
    if result.failure is not None:
        # The status is shown already, and is often the kind of failure too.
        return describe_failure(result.failure).removeprefix(f"{result.status}: ")
    if result.reason is EndReason.PAUSE:
        return ""
    said = [str(result.reason)] if result.reason else []
    return ", ".join([*said, *([one_line(result.detail)] if result.detail else [])])


def _format_seconds(seconds: Json) -> str:
    return format_duration(seconds) if isinstance(seconds, int | float) else one_line(str(seconds))


def describe_failure(failure: Failure) -> str:
    """Describe a failure on one line."""
    message = truncate(one_line(failure.message), SHORT)
    tail = truncate(one_line(failure.stderr_tail or ""), SHORT)
    return f"{failure.kind}: {message}" + (f" [{tail}]" if tail and tail not in message else "")


def describe_tool(name: str, tool_input: Json) -> str:
    """Describe a tool call on one line: `Bash: npm test`."""
    return one_line(tool_label(name, tool_input))


def _describe_output(output: Json) -> str:
    """Describe the output of a tool that failed."""
    if isinstance(output, dict):
        code, sign, stderr = output.get("exit_code"), output.get("signal"), output.get("stderr")
        said = [f"exit code {code}"] if code is not None else []
        said += [f"signal {sign}"] if sign is not None else []
        said += [one_line(stderr)] if isinstance(stderr, str) and stderr.strip() else []
        if said:
            return truncate(", ".join(said), SHORT)
    if output is None:
        return ""
    return truncate(
        one_line(output if isinstance(output, str) else encode_json(output).decode()), SHORT
    )
