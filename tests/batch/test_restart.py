"""The policy for a job's next attempt, as a table."""

import pytest
from hypothesis import given, strategies as st
from msgspec import structs

from sessionmgr.batch.host import AttemptResult
from sessionmgr.batch.restart import (
    Basis,
    PastAttempt,
    RetryFrom,
    StartMode,
    decide_attempt,
    fails_at_each_resume,
    unpack_basis,
    with_required_decision,
)
from sessionmgr.model import (
    Failure,
    FailureKind,
    PermissionDenial,
    RunResult,
    RunStatus,
    ToolCalls,
)

K = FailureKind

STARTS = [
    # Columns: resumable, side effects; session, fresh, ask.
    (False, False, StartMode.OVER, StartMode.OVER, StartMode.OVER),
    (True, False, StartMode.RESUME, StartMode.OVER, StartMode.RESUME),
    (False, True, StartMode.UNDECIDED, StartMode.OVER, StartMode.UNDECIDED),
    (True, True, StartMode.RESUME, StartMode.OVER, StartMode.UNDECIDED),
]


@pytest.mark.parametrize(("resumable", "effects", "session", "fresh", "ask"), STARTS)
def test_only_an_explicit_decision_starts_over_a_job_with_tool_calls(
    resumable: bool, effects: bool, session: StartMode, fresh: StartMode, ask: StartMode
) -> None:
    basis = Basis(resumable, effects)
    assert [basis.start(policy) for policy in RetryFrom] == [session, fresh, ask]


@given(resumable=st.booleans(), effects=st.booleans())
def test_the_ledger_gives_back_the_standing_that_it_was_given(
    resumable: bool, effects: bool
) -> None:
    assert unpack_basis(Basis(resumable, effects).packed) == Basis(resumable, effects)


def test_an_older_ledger_has_only_whether_a_job_can_be_resumed() -> None:
    assert (unpack_basis(0), unpack_basis(1)) == (Basis(), Basis(resumable=True))


def ended(
    kind: FailureKind = K.PROVIDER_ERROR,
    *,
    session: str | None = "theirs",
    resumable: bool = False,
    calls: ToolCalls = ToolCalls(),  # noqa: B008
    status: RunStatus = RunStatus.FAILED,
    exit_code: int | None = None,
) -> AttemptResult:
    failure = Failure(kind=kind, message="it went wrong", exit_code=exit_code)
    result = RunResult(
        id="run_1",
        session_id="ses_1",
        provider="actor",
        status=status,
        failure=failure,
        tool_calls=calls,
        provider_session_id=session,
    )
    return AttemptResult(job="a", attempt=1, result=result, resumable=resumable)


MADE = ToolCalls(count={"Bash": 1})
DENIED = PermissionDenial(tool_name="Bash", tool_call_id="1")
OTHERS = [
    PermissionDenial(tool_name="request_permissions"),
    PermissionDenial(tool_name="mcp__server", tool_call_id="2"),
    PermissionDenial(tool_name="Bash"),
    PermissionDenial(
        tool_name="Bash", tool_call_id="1", by="provider"
    ),  # the provider has withdrawn the question
]
RESUMED = Basis(resumable=True, side_effects=True)


def basis_after(end: AttemptResult, before: Basis = Basis()) -> Basis:  # noqa: B008
    return decide_attempt(end, before, [], resumes=True, is_command=False).basis


def after_denials(calls: int, *denials: PermissionDenial) -> Basis:
    counted = ToolCalls(count={"Bash": calls}, denied=len(denials))
    end = ended(calls=counted)
    return basis_after(
        structs.replace(end, result=structs.replace(end.result, permission_denials=denials))
    )


def test_a_tool_call_is_a_side_effect_unless_it_was_denied() -> None:
    assert after_denials(1).side_effects
    assert not after_denials(1, DENIED).side_effects
    assert after_denials(2, DENIED).side_effects


def test_one_call_that_is_denied_twice_hides_no_other() -> None:
    assert after_denials(2, DENIED, DENIED).side_effects


@pytest.mark.parametrize("other", OTHERS)
def test_the_denial_of_something_else_hides_no_call(other: PermissionDenial) -> None:
    assert after_denials(1, other).side_effects


def test_side_effects_of_earlier_attempts_are_not_forgotten() -> None:
    assert basis_after(ended(resumable=True), RESUMED) == RESUMED
    assert basis_after(ended(K.SESSION_NOT_FOUND), RESUMED) == Basis(side_effects=True)


def test_an_attempt_that_never_reached_the_session_leaves_it_resumable() -> None:
    assert basis_after(ended(K.KILLED_BY_OS, session=None), RESUMED) == RESUMED
    lost = basis_after(ended(K.SESSION_NOT_FOUND, session=None), RESUMED)
    assert lost == Basis(side_effects=True)


def test_an_attempt_that_failed_at_its_start_leaves_the_session_resumable() -> None:
    end = ended(K.START_FAILED)
    assert end.result.failure is not None
    at_start = structs.replace(end.result.failure, phase="start")
    end = structs.replace(end, result=structs.replace(end.result, failure=at_start))
    assert basis_after(end, RESUMED) == RESUMED


def past(*kinds: FailureKind | None, session: str = "s") -> list[PastAttempt]:
    return [PastAttempt(session, None if kind is None else kind.value) for kind in kinds]


POISONED = [
    (past(K.PROVIDER_ERROR, K.PROVIDER_ERROR, K.MANAGER_CRASHED), True),
    (past(K.PROVIDER_ERROR, K.PROVIDER_ERROR, None), True),
    (past(K.STALLED, K.STALLED, K.STALLED), True),
    (past(K.PROVIDER_ERROR, K.PROVIDER_ERROR), False),  # resumed once
    (past(K.PROVIDER_ERROR, K.STALLED, K.PROVIDER_ERROR), False),
    (past(None, None, None), False),
    (past(K.OVERLOADED, K.OVERLOADED, K.OVERLOADED), False),
    (past(K.MANAGER_CRASHED, K.MANAGER_CRASHED, K.MANAGER_CRASHED), False),
    ([*past(K.STALLED, K.STALLED), *past(K.STALLED, session="earlier")], False),
]


@pytest.mark.parametrize(("attempts", "poisoned"), POISONED)
def test_a_session_is_unusable_that_fails_in_the_same_way_twice_after_it_was_resumed(
    attempts: list[PastAttempt], poisoned: bool
) -> None:
    assert fails_at_each_resume(attempts) == poisoned
    end = ended(K.PROVIDER_ERROR, resumable=True, calls=MADE)
    conclusion = decide_attempt(end, RESUMED, attempts, resumes=True, is_command=False)
    assert conclusion.basis.resumable == (not poisoned)
    assert conclusion.result.failure is not None
    assert ("its session seems unusable" in conclusion.result.failure.message) == poisoned


def test_a_command_that_ended_by_itself_is_run_again_by_the_user_but_not_by_a_retry() -> None:
    end = ended(K.PROCESS_EXITED, session=None, calls=MADE, exit_code=1)
    conclusion = decide_attempt(end, Basis(), [], resumes=False, is_command=True)
    assert conclusion.basis.start(RetryFrom.SESSION) is StartMode.UNDECIDED
    assert conclusion.rerun_basis.start(RetryFrom.SESSION) is StartMode.OVER


def test_a_command_that_could_not_be_started_has_had_no_side_effects() -> None:
    failure = Failure(kind=K.CLI_NOT_FOUND, message="it is not there", phase="start")
    end = ended(session=None, calls=MADE)
    end = structs.replace(end, result=structs.replace(end.result, failure=failure))
    conclusion = decide_attempt(end, Basis(), [], resumes=False, is_command=True)
    assert (conclusion.basis, conclusion.rerun_basis) == (Basis(), Basis())


CUT = [
    ended(K.MANAGER_CRASHED, session=None, calls=MADE),
    ended(K.TIMED_OUT, session=None, calls=MADE, status=RunStatus.TIMED_OUT),
    ended(K.KILLED_BY_OS, session=None, calls=MADE),
    ended(K.PROCESS_EXITED, session=None, calls=MADE),  # by a signal: it has no exit code
]


@pytest.mark.parametrize("end", CUT, ids=lambda end: end.result.failure.kind)
def test_a_command_that_was_cut_is_not_run_again_without_a_decision(end: AttemptResult) -> None:
    kept = decide_attempt(end, Basis(), [], resumes=False, is_command=True).rerun_basis
    assert kept.start(RetryFrom.SESSION) is StartMode.UNDECIDED


def test_an_agent_that_exits_is_not_taken_for_a_command() -> None:
    end = ended(K.PROCESS_EXITED, calls=MADE, exit_code=1)
    kept = decide_attempt(end, Basis(), [], resumes=False, is_command=False).rerun_basis
    assert kept.start(RetryFrom.SESSION) is StartMode.UNDECIDED


WHY = [
    (ended(calls=MADE), False, "actor cannot resume a session; "),
    (ended(K.SESSION_NOT_FOUND, calls=MADE), True, "its provider session is gone; "),
    (ended(session=None, calls=MADE), True, "its provider session is unknown; "),
    (ended(K.CONTEXT_EXCEEDED, calls=MADE), True, "its provider session cannot be resumed; "),
]


@pytest.mark.parametrize(("end", "resumes", "why"), WHY, ids=lambda each: str(each)[:20])
def test_a_result_names_the_obstacle_and_the_deciding_flag(
    end: AttemptResult, resumes: bool, why: str
) -> None:
    reported = decide_attempt(end, Basis(), [], resumes=resumes, is_command=False).result
    assert reported.failure is not None
    assert reported.failure.message == (
        f"it went wrong; the job has made tool calls, and {why}"
        "--retry-from fresh starts it over and may repeat them"
    )


def test_a_decision_is_asked_for_once_however_often_it_is_shown() -> None:
    result = ended(calls=MADE).result
    once = with_required_decision(result, RESUMED, why_not="")
    assert once.failure is not None
    assert once.failure.message.endswith(
        "--retry-from session resumes its session, --retry-from fresh starts it over"
    )
    assert with_required_decision(once, RESUMED, why_not="") == once
    cancelled = RunResult(id="r", session_id="s", provider="shell", status=RunStatus.CANCELLED)
    reported = with_required_decision(cancelled, Basis(side_effects=True), why_not="it is gone")
    assert reported.detail is not None
    assert reported.detail.startswith(
        "the job has made tool calls, and it is gone; --retry-from fresh"
    )
    assert (
        with_required_decision(reported, Basis(side_effects=True), why_not="it is gone") == reported
    )
