"""The final report of a batch."""

from sessionmgr.batch import JobDenial, JobResult, Summary
from sessionmgr.cli.terminal.batch_report import CONTINUE_HINT, FailureTable, report_lines
from sessionmgr.cli.terminal.safe_text import display_width
from sessionmgr.model import Cost, Failure, FailureKind, Provenance, RunStatus, Usage

ALLOW = "--approve FILE --on-denied fail"


def summary(**more: object) -> Summary:
    said = {
        "batch": "bat_1",
        "jobs": 1,
        "statuses": {"completed": 1},
        "failures": {},
        "attempts": 1,
        "tokens": Usage(output=7),
        "cost": Cost(),
        "started_at": "",
        "ended_at": "",
        "duration": 2.0,
    }
    return Summary(**{**said, **more})  # type: ignore[arg-type]


def told(found: Summary, failures: FailureTable | None = None) -> list[tuple[str, str]]:
    return report_lines(found, failures or FailureTable(), width=120, hints={})


def test_what_was_denied_is_reported_in_yellow_with_the_command() -> None:
    denial = JobDenial(
        job="q1", tool_name="Bash", summary="touch q1.txt", reason="no rule allows it"
    )
    assert told(summary(attempts_now=1, denied_jobs=1, denials=(denial,))) == [
        ("", "plain"),
        ("1 of 1 job completed, 1 with denials (in 2.0 s, 7 tokens, cost unknown)", "warning"),
        (
            f"1 job had denials; {ALLOW} runs it again with your rules",
            "warning",
        ),
        ("  job  denied              why", "warning"),
        ("  q1   Bash: touch q1.txt  no rule allows it", "warning"),
    ]


def test_at_eighty_columns_no_line_wraps() -> None:
    reason = "no rule of the file allows it, and nobody is there to ask"
    denial = JobDenial(job="job-" * 9, tool_name="Bash", summary="touch " * 20, reason=reason)
    found = summary(denied_jobs=12, denials=(denial,), statuses={"completed": 1, "failed": 1})
    failures = FailureTable()
    failures.add(failed("name-" * 12), stopped=False)
    lines = report_lines(found, failures, width=80, hints={})
    assert max(display_width(text) for text, _ in lines) <= 80


def test_of_many_denials_some_are_reported_and_the_rest_counted() -> None:
    denials = tuple(JobDenial(job=f"j{n}", tool_name="Bash") for n in range(30))
    lines = [text for text, _ in told(summary(denied_jobs=30, denials=denials))]
    assert "  … and 10 more: see summary.json" in lines
    assert f"30 jobs had denials; {ALLOW} runs them again with your rules" in lines


def test_what_starts_jobs_again_that_wait_for_a_decision_is_reported_as_it_is_typed() -> None:
    undecided = {"a": "session", "e": "fresh", "d": "fresh", "c": "fresh", "b [1]": "fresh"}
    hints = {CONTINUE_HINT: "sessionmgr batch jobs.jsonl --only '*' --retry-from=ask -n 4"}
    found = summary(statuses={"failed": 5}, undecided=undecided)
    lines = report_lines(found, FailureTable(), width=120, hints=hints)
    assert [text for text, _ in lines[2:]] == [
        "resume (a):  sessionmgr batch jobs.jsonl -n 4 --only a --retry-from session",
        (
            "start over (b [1], c, d, …):  sessionmgr batch jobs.jsonl -n 4 --only 'b [[]1]'"
            " --only c --only d --retry-from fresh"
        ),
    ]


def test_a_cost_that_is_partial_is_reported_as_that() -> None:
    cost = Cost(usd=0.0047, provenance=Provenance.PARTIAL)
    assert "$0.0047+ (partial)" in told(summary(cost=cost))[1][0]


def failed(job: str, **more: object) -> JobResult:
    said = {
        "id": "run_7wre894rgqgkrsb7hk36",
        "session_id": "ses_1",
        "provider": "claude",
        "status": RunStatus.FAILED,
        "failure": Failure(kind=FailureKind.OVERLOADED, message="try later"),
        "cost": Cost(usd=0.25, provenance=Provenance.REPORTED),
        "duration": 9.0,
        "job": job,
        "attempt": 3,
    }
    return JobResult(**{**said, **more})  # type: ignore[arg-type]


def test_a_failure_is_reported_with_its_run_its_cost_and_its_time() -> None:
    failures = FailureTable()
    failures.add(failed("a"), stopped=False)
    failures.add(failed("refused", id="", duration=None, cost=Cost(), attempt=1), stopped=False)
    found = summary(jobs=2, statuses={"failed": 2}, attempts=4, attempts_now=4)
    assert [text for text, _ in told(found, failures)[2:]] == [
        "  job      status  attempts   took     cost  run           why",
        "  a        failed         3  9.0 s  $0.2500  run_7wre894r  overloaded: try later",
        "  refused  failed         1               -                overloaded: try later",
    ]
    assert failures.last_run == ("run_7wre894rgqgkrsb7hk36", "a")


def test_attempts_of_this_run_and_of_all_are_distinguished() -> None:
    lines = told(summary(jobs=9, attempts=38, attempts_now=8, duration=24.0))
    assert lines[1][0] == (
        "1 of 9 jobs completed (in 24 s, 8 attempts, 38 in total, 7 tokens, cost unknown)"
    )


def test_how_to_go_on_is_reported_only_where_something_is_left() -> None:
    hints = {CONTINUE_HINT: "sessionmgr batch jobs.jsonl"}
    for left, said in ((0, False), (1, True)):
        lines = report_lines(summary(left=left), FailureTable(), width=None, hints=hints)
        assert any("sessionmgr batch jobs.jsonl" in text for text, _ in lines) == said
