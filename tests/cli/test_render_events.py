"""Each event is rendered on one line without control characters, and so is a run's end."""

import pytest

from sessionmgr.cli.terminal.render_events import (
    RunNoteLine,
    RunRenderer,
    RunText,
    describe_result,
    end_reason,
)
from sessionmgr.model import (
    AnyEvent,
    Capabilities,
    CompactionStarted,
    Cost,
    EndReason,
    ErrorOccurred,
    Failure,
    FailureKind,
    ImageReceived,
    MessageReceived,
    MessageSent,
    MessageStreamed,
    OutputReceived,
    Permission,
    PermissionMode,
    PlanEntry,
    PlanUpdated,
    PolicyViolation,
    ProcessExited,
    Provenance,
    RateLimitUpdated,
    ReasoningReceived,
    RetryScheduled,
    RunResult,
    RunStarted,
    RunStatus,
    StallSuspected,
    TokenUsageUpdated,
    ToolApprovalDenied,
    ToolApprovalGranted,
    ToolCallCompleted,
    ToolCallFailed,
    ToolCallStarted,
    UnknownEvent,
    Usage,
    negotiate,
)
from sessionmgr.model.permission import Fidelity
from sessionmgr.model.run import ToolCalls

BROKEN = Failure(kind=FailureKind.OVERLOADED, message="try\nlater", stderr_tail="529")
ALLOWED = Permission(
    asked=PermissionMode.PLAN, effective="plan mode", fidelity=Fidelity.EXACT, confined=None
)
UNVERIFIED = Permission(
    asked=PermissionMode.DEFAULT, effective="its default", fidelity=Fidelity.UNVERIFIED
)


def tell(*events: AnyEvent) -> list[RunText | RunNoteLine]:
    teller = RunRenderer()
    return [piece for event in events for piece in teller.render(event)]


def lines(*events: AnyEvent) -> list[str]:
    return [piece.text for piece in tell(*events) if isinstance(piece, RunNoteLine)]


def text(*events: AnyEvent) -> str:
    said = ""
    for piece in tell(*events):
        if isinstance(piece, RunText):
            said += piece.text + ("|" if piece.ends else "")
    return said


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (
            RunStarted(
                run_id="run_1", provider="claude", model="opus", permission=ALLOWED, cwd="/w"
            ),
            "run_1: claude, opus, plan mode, in /w",
        ),
        (RunStarted(run_id="run_1", provider="claude"), "run_1: claude"),
        (
            RunStarted(run_id="run_1", provider="acp:x", permission=UNVERIFIED),
            "run_1: acp:x, its default (unverified)",
        ),
        (
            ToolCallStarted(tool_call_id="1", tool_name="Bash", tool_input={"command": "a\nb"}),
            "· Bash: a b",
        ),
        (ToolCallFailed(tool_call_id="1", tool_name="Bash"), "✗ Bash failed"),
        (
            ToolCallFailed(tool_call_id="1", tool_name="Bash", tool_output="no such file"),
            "✗ Bash failed: no such file",
        ),
        (
            ToolCallFailed(
                tool_call_id="1",
                tool_name="Bash",
                tool_output={"exit_code": None, "signal": 9, "stderr": "dead\n"},
            ),
            "✗ Bash failed: signal 9, dead",
        ),
        (
            ToolCallFailed(tool_call_id="1", tool_name="Bash", tool_output={"rows": [1]}),
            '✗ Bash failed: {"rows":[1]}',
        ),
        (ToolApprovalDenied(approval_id="1"), "✗ denied: a tool"),
        (
            ToolApprovalDenied(approval_id="1", tool_name="Bash", tool_input="x", reason="no"),
            "✗ denied: Bash: x (no)",
        ),
        (
            ToolApprovalGranted(approval_id="1", tool_name="Bash", by="request"),
            "✓ allowed: Bash (by request)",
        ),
        (MessageSent(message_id="1", content="and then?", follow_up=True), "> and then?"),
        (
            MessageSent(message_id="1", content="hm", state="dropped"),
            "a message was not sent: hm",
        ),
        (
            MessageSent(message_id="1", content="hm", state="unknown"),
            "a message may not have arrived: hm",
        ),
        (ReasoningReceived(content="hm\nhm"), "thinks: hm hm"),
        (
            PlanUpdated(
                entries=(
                    PlanEntry(content="Look", status="completed"),
                    PlanEntry(content="Write", status="in_progress"),
                    PlanEntry(content="Test"),
                )
            ),
            "plan: 1 of 3 done; now: Write",
        ),
        (PlanUpdated(entries=()), "plan: 0 of 0 done"),
        (
            ImageReceived(media_type="image/png", blob="ab", bytes=12_300),
            "an image: image/png, 12.3 kB",
        ),
        (OutputReceived(stream="stderr", text="  warn\x1b[1m\n\n"), "  warn"),
        (ErrorOccurred(failure=BROKEN), "error: overloaded: try later [529]"),
        (
            ErrorOccurred(failure=BROKEN, severity="warning"),
            "warning: overloaded: try later [529]",
        ),
        (RetryScheduled(by="us", attempt=2), "retry 2"),
        (
            RetryScheduled(by="provider", attempt=2, delay=3.0, failure=BROKEN),
            "retry 2 in 3.0 s: overloaded: try later [529]",
        ),
        (RateLimitUpdated(bucket="week", state="allowed"), "rate limit week: allowed"),
        (
            RateLimitUpdated(bucket="week", state="rejected", resets_at="2030-01-01"),
            "rate limit week: rejected, resets at 2030-01-01",
        ),
        (StallSuspected(state="model", silent_for=900.0), "no output for 15 min 00 s (model)"),
        (
            StallSuspected(state="approval", silent_for=60.0),
            "an approval request has waited for 1 min 00 s (approval)",
        ),
        (
            StallSuspected(
                state="deadline", silent_for=0.2, evidence={"running_for": 45.0, "limit": 90.0}
            ),
            "running for 45 s of 1 min 30 s (deadline)",
        ),
        (PolicyViolation(rule="plan"), "rule broken: plan"),
        (PolicyViolation(rule="plan", detail="it wrote"), "rule broken: plan: it wrote"),
        (CompactionStarted(), "the context is full and is being compacted"),
        (ProcessExited(killed_by_os=True), "the system killed the agent (out of memory?)"),
        (
            ProcessExited(left_running=("sshd", "make")),
            "still running and out of reach: sshd, make",
        ),
    ],
)
def test_an_event_is_reported_in_one_line(event: AnyEvent, said: str) -> None:
    assert lines(event) == [said]


def test_what_a_run_goes_without_is_reported_at_its_start() -> None:
    less = negotiate(Capabilities(), prefer=["cost"])
    said = lines(RunStarted(run_id="run_1", provider="codex", negotiation=less))
    assert said == ["run_1: codex", "warning: cost: the provider does not support cost"]


@pytest.mark.parametrize(
    "event",
    [
        ToolCallCompleted(tool_call_id="1", tool_name="Bash"),
        ToolApprovalGranted(approval_id="1", tool_name="Bash", by="mode"),
        MessageSent(message_id="1", content="the prompt"),
        MessageSent(message_id="1", content="and then?", follow_up=True, state="queued"),
        TokenUsageUpdated(usage=Usage(input=3)),
        ProcessExited(exit_code=0),
        UnknownEvent(tag="of_tomorrow", body=b"{}"),
    ],
)
def test_of_some_events_nothing_is_said(event: AnyEvent) -> None:
    assert tell(event) == []


def test_the_failure_of_a_denied_call_is_not_reported() -> None:
    denied = ToolApprovalDenied(approval_id="1", tool_call_id="7", tool_name="Bash")
    failed = ToolCallFailed(tool_call_id="7", tool_name="Bash", tool_output="denied")
    assert lines(denied, failed) == ["✗ denied: Bash"]


def test_of_a_streamed_message_the_rest_is_reported_when_it_is_whole() -> None:
    streamed = [MessageStreamed(delta=delta, message_id="m") for delta in ("Hel", "lo")]
    assert text(*streamed, MessageReceived(content="Hello, you", message_id="m")) == "Hello, you|"
    assert text(*streamed, MessageReceived(content="Hello")) == "Hello|"
    assert text(MessageReceived(content="one"), MessageReceived(content="two")) == "one|two|"


def test_a_message_that_is_not_what_was_streamed_is_reported_whole() -> None:
    streamed = MessageStreamed(delta="Hel", message_id="m")
    assert text(streamed, MessageReceived(content="Good bye", message_id="m")) == "Hel|Good bye|"


def test_what_a_sub_agent_does_is_a_note_set_in() -> None:
    tool = ToolCallStarted(tool_call_id="1", tool_name="Read", parent_tool_call_id="0")
    assert lines(tool) == ["  · Read"]
    said: list[AnyEvent] = [
        MessageStreamed(delta="Hi", parent_tool_call_id="0"),
        MessageReceived(content="Hi", parent_tool_call_id="0"),
    ]
    assert tell(*said) == [RunNoteLine("  Hi", detail=True)]


def result(status: RunStatus, **more: object) -> RunResult:
    said = {"id": "run_1", "session_id": "ses_1", "provider": "claude", "status": status}
    return RunResult(**{**said, **more})  # type: ignore[arg-type]


def test_the_end_is_reported_with_what_it_took() -> None:
    ended = result(
        RunStatus.COMPLETED,
        duration=83.0,
        tool_calls=ToolCalls(count={"Bash": 2, "Read": 1}, denied=1),
        usage=Usage(input=1000, output=500),
        cost=Cost(usd=0.25, provenance=Provenance.PRICED),
    )
    assert describe_result(ended) == RunNoteLine(
        "completed (in 1 min 23 s, 3 tool calls, 1 denied, 1.5 k tokens, ~$0.2500)", "good"
    )
    assert describe_result(result(RunStatus.PAUSED, reason=EndReason.PAUSE)) == RunNoteLine(
        "paused", "plain"
    )


@pytest.mark.parametrize(
    ("ended", "why"),
    [
        (result(RunStatus.FAILED, failure=BROKEN), "overloaded: try later [529]"),
        (
            result(
                RunStatus.TIMED_OUT,
                reason=EndReason.DEADLINE,
                failure=Failure(kind=FailureKind.TIMED_OUT, message="too long"),
            ),
            "too long",
        ),
        (result(RunStatus.CANCELLED, reason=EndReason.USER, detail="Ctrl-C"), "user, Ctrl-C"),
        (result(RunStatus.CANCELLED, reason=EndReason.SHUTDOWN), "shutdown"),
        (result(RunStatus.COMPLETED), ""),
    ],
)
def test_why_a_run_ended_so_is_reported_once(ended: RunResult, why: str) -> None:
    assert end_reason(ended) == why
