"""The record of a run is a fold of its events: total, first terminal wins, nothing regresses."""

from collections.abc import Sequence
from functools import reduce as fold

import msgspec
import pytest
from hypothesis import given, strategies as st

from sessionmgr.model import (
    EVENT_TYPES,
    TERMINAL,
    TERMINAL_TYPES,
    TRANSITIONS,
    AnyEvent,
    Cost,
    EndReason,
    Event,
    IllegalTransition,
    ImageReceived,
    MessageReceived,
    MessageSent,
    MessageStreamed,
    ProcessExited,
    Provenance,
    ProviderSessionUpdated,
    RetryScheduled,
    Run,
    RunCancelled,
    RunCompleted,
    RunStarted,
    RunStatus,
    TokenUsageUpdated,
    ToolApprovalDenied,
    ToolApprovalGranted,
    ToolApprovalRequested,
    ToolCallCompleted,
    ToolCallFailed,
    ToolCallStarted,
    TurnCompleted,
    Usage,
    decode_event,
    decode_result,
    decode_run,
    encode_event,
    encode_json,
    next_status,
    reduce,
    reduce_all,
)
from sessionmgr.model.run_reducer import CHANGING
from sessionmgr.model.status import STATUS_EVENTS
from sessionmgr.testing.strategies import histories
from sessionmgr.testing.strategies.event import RUN
from tests.model.minimal_events import minimal

NEW = Run(id=RUN, session_id="ses_1", provider="echo")
HISTORY = histories(longest=25)

# What neither ends a run nor is needed to tell what became of it.
INERT = frozenset(
    "session_created session_closed session_reopened reasoning_streamed reasoning_received "
    "tool_call_updated "
    "plan_updated compaction_started compaction_completed compaction_failed rate_limit_updated "
    "stall_suspected policy_violation session_stats_updated error_occurred output_received "
    "raw_received events_pruned".split()
)


def told(*events: Event) -> Run:
    """Return the record after these events, each stamped as this run's."""
    return reduce_all(
        NEW,
        [
            each.stamped(
                seq=number,
                at=each.at or f"2026-01-01T00:00:{number:02}.000Z",
                session_id="ses_1",
                run_id=RUN,
                provider="echo",
            )
            for number, each in enumerate(events, 1)
        ],
    )


def test_each_type_of_event_either_changes_a_record_or_is_known_not_to() -> None:
    changing = {name for name, cls in EVENT_TYPES.items() if cls in CHANGING}
    assert changing | INERT == set(EVENT_TYPES)
    assert not changing & INERT


def whole(run: Run) -> Run:
    """Leave out in which pieces a text came."""
    return msgspec.structs.replace(run, partial=("".join(run.partial),))


@given(HISTORY)
def test_reducing_at_once_is_reducing_one_by_one(events: list[AnyEvent]) -> None:
    assert whole(reduce_all(NEW, events)) == whole(fold(reduce, events, NEW))


@given(HISTORY, st.integers(0, 25))
def test_where_a_history_is_cut_does_not_matter(events: list[AnyEvent], cut: int) -> None:
    halves = reduce_all(reduce_all(NEW, events[:cut]), events[cut:])
    assert whole(halves) == whole(reduce_all(NEW, events))


def test_a_text_in_very_many_deltas_is_held_in_few_pieces() -> None:
    run = reduce(NEW, RunStarted(run_id=RUN))
    for number in range(10_000):
        run = reduce(run, MessageStreamed(run_id=RUN, delta=f"{number},"))
    assert len(run.partial) < 20
    ended = reduce(run, RunCancelled(run_id=RUN))
    assert ended.text == "".join(f"{number}," for number in range(10_000))


@given(HISTORY)
def test_the_status_only_ever_follows_the_table(events: list[AnyEvent]) -> None:
    run = NEW
    for event in events:
        after = reduce(run, event)
        if after.status is not run.status:
            assert after.status in TRANSITIONS[run.status].values()
        run = after


@given(HISTORY)
def test_the_status_is_that_of_the_first_terminal_event(events: list[AnyEvent]) -> None:
    run = reduce_all(NEW, events)
    own = [event.type for event in events if event.run_id == RUN]
    status = RunStatus.PENDING
    for name in own:
        if name == "run_started" and status is RunStatus.PENDING:
            status = RunStatus.RUNNING
        may_follow = status is RunStatus.RUNNING or name not in {"run_completed", "run_paused"}
        if name in TERMINAL_TYPES and status not in TERMINAL and may_follow:
            status = RunStatus(name.removeprefix("run_"))
    assert run.status is status


@given(HISTORY, HISTORY)
def test_after_the_end_only_the_exit_and_the_last_number_change(
    before: list[AnyEvent], after: list[AnyEvent]
) -> None:
    ended = reduce_all(NEW, [*before, RunCancelled(run_id=RUN, seq=50, reason=EndReason.USER)])
    later = reduce_all(ended, after)
    may_change = {"exit_code", "signal", "forced", "killed_by_os", "left_running"}
    may_change |= {"first_seq", "last_seq"}
    for name in Run.__struct_fields__:
        if name not in may_change:
            assert getattr(later, name) == getattr(ended, name), name


@given(HISTORY)
def test_the_result_points_at_exactly_the_numbers_of_its_events(events: list[AnyEvent]) -> None:
    numbers = [event.seq for event in events if event.run_id == RUN and event.seq]
    run = reduce_all(NEW, events)
    assert (run.first_seq, run.last_seq) == ((min(numbers), max(numbers)) if numbers else (0, 0))


@given(HISTORY)
def test_a_record_and_its_result_survive_being_written(events: list[AnyEvent]) -> None:
    run = reduce_all(NEW, events)
    assert decode_run(encode_json(run)) == run
    assert decode_result(encode_json(run.result())) == run.result()


@given(HISTORY)
def test_what_was_stored_folds_to_the_same_result(events: list[AnyEvent]) -> None:
    stored = [decode_event(encode_event(event)) for event in events if isinstance(event, Event)]
    seen = [event for event in events if isinstance(event, Event)]
    assert reduce_all(NEW, stored) == reduce_all(NEW, seen)


@pytest.mark.parametrize("status", RunStatus)
@pytest.mark.parametrize("name", EVENT_TYPES)
def test_no_event_is_too_early_or_too_late_for_any_state(status: RunStatus, name: str) -> None:
    run = msgspec.structs.replace(NEW, status=status)
    event = msgspec.structs.replace(minimal(name), run_id=RUN)
    after = reduce(run, event)
    if name in STATUS_EVENTS and STATUS_EVENTS[name] not in TRANSITIONS[status]:
        assert after.status is status
        with pytest.raises(IllegalTransition):
            next_status(status, name)
    else:
        assert after.status is next_status(status, name)


def test_who_writes_what_may_not_follow_is_told_so() -> None:
    with pytest.raises(
        IllegalTransition, match="run_failed may not follow in a run that is completed"
    ):
        next_status(RunStatus.COMPLETED, "run_failed")
    with pytest.raises(
        IllegalTransition, match="run_completed may not follow in a run that is pending"
    ):
        next_status(RunStatus.PENDING, "run_completed")


def test_a_whole_story_makes_this_result() -> None:
    result = told(
        RunStarted(provider_session_id="p1", resumed_from="run_0", metadata={"team": "red"}),
        MessageSent(message_id="m", content="Fix it"),
        MessageStreamed(delta="I w"),
        MessageReceived(content="I will."),
        ToolCallStarted(tool_call_id="1", tool_name="bash"),
        ToolCallCompleted(tool_call_id="1", tool_name="bash"),
        ToolCallStarted(tool_call_id="2", tool_name="bash"),
        ToolCallFailed(tool_call_id="2", tool_name="bash"),
        ToolApprovalRequested(approval_id="q", tool_call_id="3", tool_name="edit"),
        ToolApprovalDenied(approval_id="q", tool_call_id="3", tool_name="edit", reason="no"),
        ToolCallFailed(tool_call_id="3", tool_name="edit"),
        TokenUsageUpdated(
            usage=Usage(input=10, output=2), cost=0.25, provenance=Provenance.REPORTED
        ),
        TokenUsageUpdated(usage=Usage(input=5, output=1), cost=0.5, provenance=Provenance.REPORTED),
        ProviderSessionUpdated(provider_session_id="p2"),
        ImageReceived(media_type="image/png", blob="ab", bytes=3),
        MessageReceived(content="Done."),
        TurnCompleted(stop_reason="end_turn"),
        RunCompleted(at="2026-01-01T00:01:01.500Z"),
        ProcessExited(exit_code=0),
    ).result()
    assert result.status is RunStatus.COMPLETED
    assert (result.text, result.stop_reason, result.turns) == ("Done.", "end_turn", 1)
    assert result.tool_calls.count == {"bash": 2, "edit": 1}
    assert (result.tool_calls.failed, result.tool_calls.denied) == (1, 1)
    assert [each.tool_name for each in result.permission_denials] == ["edit"]
    assert result.usage == Usage(input=15, output=3)
    assert result.cost == Cost(usd=0.75, provenance=Provenance.REPORTED)
    assert (result.provider_session_id, result.resumed_from) == ("p2", "run_0")
    assert [image.blob for image in result.images] == ["ab"]
    assert (result.first_seq, result.last_seq, result.exit_code) == (1, 19, 0)
    assert (result.started_at, result.duration) == ("2026-01-01T00:00:01.000Z", 60.5)
    assert result.metadata == {"team": "red"}


@pytest.mark.parametrize(
    ("events", "text"),
    [
        ([MessageReceived(content="first"), MessageStreamed(delta="sec")], "sec"),
        ([MessageStreamed(delta="a"), MessageStreamed(delta="b")], "ab"),
        ([MessageStreamed(delta="a"), MessageReceived(content="ab")], "ab"),
        ([MessageStreamed(delta="a", message_id="1"), MessageStreamed(delta="b")], "b"),
        ([MessageStreamed(delta="lost"), RetryScheduled(by="provider", attempt=1)], ""),
        ([MessageReceived(content="of a helper", parent_tool_call_id="t")], ""),
        ([MessageStreamed(delta="of a helper", parent_tool_call_id="t")], ""),
        ([MessageReceived(content="mine", role="user")], ""),
    ],
)
def test_the_text_of_a_run_that_was_cut_is_what_the_agent_had_said(
    events: Sequence[Event], text: str
) -> None:
    assert told(RunStarted(), *events, RunCancelled(reason=EndReason.USER)).text == text


def test_what_is_open_is_known_until_it_is_closed() -> None:
    run = told(
        RunStarted(),
        ToolCallStarted(tool_call_id="1", tool_name="bash"),
        ToolCallStarted(tool_call_id="1", tool_name="bash"),
        ToolCallStarted(tool_call_id="2", tool_name="edit"),
        ToolApprovalRequested(approval_id="q", tool_call_id="2"),
        ToolApprovalRequested(approval_id="q", tool_call_id="2"),
        ToolApprovalRequested(approval_id="r", tool_call_id="3"),
        ToolApprovalGranted(approval_id="q", tool_call_id="2"),
        ToolCallCompleted(tool_call_id="1", tool_name="bash"),
        MessageSent(message_id="m", content="and then", state="queued", follow_up=True),
        MessageSent(message_id="n", content="at last", state="queued", follow_up=True),
        MessageSent(message_id="m", content="and then", state="sent", follow_up=True),
        TurnCompleted(open_tasks=2),
        TurnCompleted(open_tasks=9, parent_tool_call_id="2"),
    )
    assert run.open_tools == {"2": "edit"}
    assert run.open_approvals == ("r",)
    assert run.open_messages == {"n": "queued"}
    assert (run.open_tasks, run.turns) == (2, 1)
    assert run.tool_calls.count == {"bash": 1, "edit": 1}


def test_a_second_start_does_not_overwrite_the_first() -> None:
    run = told(RunStarted(provider_session_id="p1"), RunStarted(provider_session_id="p2"))
    assert run.provider_session_id == "p1"


def test_a_moment_that_cannot_be_read_costs_the_duration_and_nothing_else() -> None:
    run = told(RunStarted(), RunCompleted(at="yesterday"))
    assert (run.status, run.ended_at, run.duration) == (RunStatus.COMPLETED, "yesterday", None)
