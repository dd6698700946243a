"""A job interrupted after a tool call is resumed or left for a decision."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Unpack

import pytest
import trio

from sessionmgr import run_batch
from sessionmgr.batch import Batch, BatchOptions, JobResult, dry_run
from sessionmgr.model import NATIVE, Capabilities, FailureKind, RunStatus
from sessionmgr.testing.scripted_provider import (
    Crash,
    Fail,
    Hang,
    RateLimited,
    Say,
    Script,
    ScriptedProvider,
    Step,
    Tool,
    scripted,
)
from tests.batch.open_batch import BatchSetup, collect, job, open_batch_setup

CUT = (Tool(name="Bash", takes=9999),)
NOTICE = "a tool call was running (Bash). Its outcome is unknown"
FRESH = "--retry-from fresh starts it over and may repeat them"
GONE = Fail(kind=FailureKind.SESSION_NOT_FOUND)


def then(first: tuple[Step, ...], *later: tuple[Step, ...]) -> Callable[[str, int], Any]:
    """Play `first` for the job's own prompt, and the others one by one at its resumes.

    After the last of them it writes "well".
    """
    left = list(later)

    def scripts(prompt: str, attempt: int) -> tuple[Step, ...]:
        if prompt == "a":
            return first
        return left.pop(0) if left else (Say(text="well"),)

    return scripts


def line(out: Path) -> dict[str, Any]:
    """Return the one result in the file."""
    (found,) = (out / "results.jsonl").read_text().splitlines()
    result: dict[str, Any] = json.loads(found)
    return result


def batch(setup: BatchSetup, out: Path, **how: Unpack[BatchOptions]) -> Batch:
    return run_batch(setup.manager, [job("a", deadline=50)], out=out, **how)


async def cut(setup: BatchSetup, out: Path, **how: Unpack[BatchOptions]) -> None:
    """Leave a batch while its job is in a tool."""
    async with batch(setup, out, **how):
        await trio.sleep(3)
    assert line(out)["status"] == "cancelled"
    assert line(out)["side_effects"]


async def again(setup: BatchSetup, out: Path, **how: Unpack[BatchOptions]) -> JobResult:
    (result,) = await collect(batch(setup, out, **how))
    return result


async def test_a_job_interrupted_in_a_tool_call_is_resumed_with_a_message(
    autojump_clock: object, tmp_path: Path
) -> None:
    async with open_batch_setup(scripts=then(CUT)) as setup:
        await cut(setup, tmp_path)
        result = await again(setup, tmp_path)
        assert (result.status, result.text, result.attempt) == (RunStatus.COMPLETED, "well", 2)
        assert result.resumed_from is not None
        assert result.side_effects
        first, second = setup.prompts()
        assert first == "a"
        assert NOTICE in second


async def test_a_job_interrupted_in_a_tool_call_starts_over_by_decision(
    autojump_clock: object, tmp_path: Path
) -> None:
    async with open_batch_setup(scripts=then(CUT)) as setup:
        await cut(setup, tmp_path)
        result = await again(setup, tmp_path, retry_from="fresh")
        assert (result.status, result.resumed_from) == (RunStatus.TIMED_OUT, None)
        assert setup.prompts() == ["a", "a"]


async def test_with_ask_it_waits_for_a_decision_however_often_the_batch_is_run(
    autojump_clock: object, tmp_path: Path
) -> None:
    async with open_batch_setup(scripts=then(CUT)) as setup:
        await cut(setup, tmp_path)
        for _ in range(3):
            result = await again(setup, tmp_path, retry_from="ask")
            assert (result.status, result.side_effects) == (RunStatus.CANCELLED, True)
            assert result.detail is not None
            assert result.detail.count("--retry-from session resumes its session") == 1
            assert line(tmp_path)["detail"] == result.detail
        assert setup.prompts() == ["a"]
        result = await again(setup, tmp_path, retry_from="session")
        assert result.text == "well"


async def test_a_deadline_within_a_tool_ends_the_attempt_and_not_the_session(
    autojump_clock: object, tmp_path: Path
) -> None:
    async with open_batch_setup(scripts=then(CUT)) as setup:
        result = await again(setup, tmp_path)
        assert (result.status, result.side_effects) == (RunStatus.TIMED_OUT, True)
        result = await again(setup, tmp_path)
        assert result.text == "well"
        assert NOTICE in setup.prompts()[1]


ENDS: dict[str, tuple[Step, ...]] = {
    "crash": (Tool(name="Bash"), Crash()),
    "failure": (Tool(name="Bash"), Fail(resumable=True)),
    "limit": (Tool(name="Bash"), RateLimited()),
    "retry": (
        Tool(name="Bash"),
        Fail(kind=FailureKind.OVERLOADED, retryable=True, resumable=True),
    ),
}


@pytest.mark.parametrize("name", ENDS)
async def test_after_a_tool_call_the_next_attempt_resumes_whatever_the_end(
    autojump_clock: object, tmp_path: Path, name: str
) -> None:
    async with open_batch_setup(scripts=then(ENDS[name])) as setup:
        result = await again(setup, tmp_path)
        if result.status is not RunStatus.COMPLETED:
            result = await again(setup, tmp_path)
        assert result.text == "well"
        assert setup.prompts() == ["a", "continue"]


async def test_a_job_that_waits_for_a_limit_to_pass_is_not_started_over_for_that(
    autojump_clock: object, tmp_path: Path
) -> None:
    async with open_batch_setup(scripts=then((Tool(name="Bash"), RateLimited()))) as setup:
        assert (await again(setup, tmp_path, retry_from="fresh")).text == "well"
        assert setup.prompts() == ["a", "continue"]


async def test_a_notice_that_never_reached_the_agent_is_given_again(
    autojump_clock: object, tmp_path: Path
) -> None:
    async with open_batch_setup(scripts=then(CUT, (Crash(),))) as setup:
        await cut(setup, tmp_path)
        assert (await again(setup, tmp_path)).status is RunStatus.FAILED
        assert (await again(setup, tmp_path)).text == "well"
        assert [NOTICE in prompt for prompt in setup.prompts()] == [False, True, True]


async def test_a_session_that_is_gone_leaves_the_job_for_a_decision(
    autojump_clock: object, tmp_path: Path
) -> None:
    async with open_batch_setup(scripts=then(CUT, (GONE,))) as setup:
        await cut(setup, tmp_path)
        for _ in range(2):
            result = await again(setup, tmp_path)
            assert (result.status, result.side_effects) == (RunStatus.FAILED, True)
            assert result.failure is not None
            assert result.failure.kind is FailureKind.SESSION_NOT_FOUND
            assert f"its provider session is gone; {FRESH}" in result.failure.message
            assert line(tmp_path)["failure"]["message"] == result.failure.message
        assert len(setup.prompts()) == 2  # the second run started nothing
        assert (await again(setup, tmp_path, retry_from="fresh")).resumed_from is None
        assert setup.prompts()[2] == "a"


async def test_a_session_that_is_gone_costs_nothing_where_nothing_was_done(
    autojump_clock: object, tmp_path: Path
) -> None:
    prompts = iter([(Say(text="some"), Hang()), (GONE,), (Say(text="well"),)])
    async with open_batch_setup(scripts=lambda prompt, attempt: next(prompts)) as setup:
        async with batch(setup, tmp_path):
            await trio.sleep(3)
        result = await again(setup, tmp_path)
        assert (result.text, result.attempt) == ("well", 3)
        assert setup.prompts() == ["a", "continue", "a"]


async def test_a_session_that_fails_twice_alike_after_a_resume_is_not_resumed(
    autojump_clock: object, tmp_path: Path
) -> None:
    bad = (Fail(retryable=True, resumable=True),)
    async with open_batch_setup(scripts=then(CUT, bad, bad)) as setup:
        await cut(setup, tmp_path)
        result = await again(setup, tmp_path, retries=5)
        assert (result.status, result.attempt, result.side_effects) == (RunStatus.FAILED, 3, True)
        assert result.failure is not None
        assert (
            "its session seems unusable (provider_error twice in a row after it was resumed); "
            + FRESH
        ) in result.failure.message
        assert (await again(setup, tmp_path)).attempt == 3  # the result is only shown again


def unresumable(*steps: Step) -> type[ScriptedProvider]:
    made = scripted(
        "actor",
        scripts=lambda prompt, attempt: steps,
        capabilities=Capabilities(streaming=NATIVE, tool_use=NATIVE, interrupt=NATIVE),
    )
    made.runs_commands = True
    return made


async def test_a_command_that_was_cut_waits_for_a_decision(
    autojump_clock: object, tmp_path: Path
) -> None:
    actor = unresumable(*CUT)
    async with open_batch_setup(others={"actor": actor}) as setup:
        result = await again(setup, tmp_path)
        assert (result.status, result.side_effects) == (RunStatus.TIMED_OUT, True)
        assert result.failure is not None
        assert f"actor cannot resume a session; {FRESH}" in result.failure.message
        planned = dry_run(setup.manager, [job("a", deadline=50)], out=tmp_path)
        async with planned:
            assert [each.action async for each in planned] == ["undecided"]
        left = batch(setup, tmp_path)
        assert [each.status for each in await collect(left)] == [RunStatus.TIMED_OUT]
        assert left.summary().statuses == {"timed_out": 1}
        assert (left.summary().left, left.summary().undecided) == (0, {"a": "fresh"})
        await collect(batch(setup, tmp_path, retry_from="fresh"))
        assert [entry.text for entry in actor.log if entry.what == "prompt"] == ["a", "a"]


FAILED = (Tool(name="Bash"), Fail())


@pytest.mark.parametrize(
    ("steps", "asked"), [(CUT, 2), (FAILED, 1)], ids=["by its deadline", "otherwise"]
)
async def test_a_longer_deadline_decides_for_a_command_that_was_ended_by_one(
    autojump_clock: object, tmp_path: Path, steps: tuple[Step, ...], asked: int
) -> None:
    actor = unresumable(*steps)
    async with open_batch_setup(others={"actor": actor}) as setup:
        await again(setup, tmp_path)
        await collect(run_batch(setup.manager, [job("a", deadline=60)], out=tmp_path))
    assert [entry.text for entry in actor.log if entry.what == "prompt"] == asked * ["a"]


async def test_jobs_that_are_not_selected_are_not_shown_again(
    autojump_clock: object, tmp_path: Path
) -> None:
    async with open_batch_setup(others={"actor": unresumable(*CUT)}) as setup:
        jobs = [job("a", deadline=50), job("b", deadline=50)]
        await collect(run_batch(setup.manager, jobs, out=tmp_path))
        shown = await collect(run_batch(setup.manager, jobs, out=tmp_path, only=["b"]))
        assert [each.job for each in shown] == ["b"]


async def test_an_attempt_that_crashes_before_it_has_its_session_leaves_the_session_as_it_is(
    autojump_clock: object, tmp_path: Path
) -> None:
    def scripts(prompt: str, attempt: int) -> Script:
        if prompt == "a":
            return Script(steps=CUT)
        return Script(steps=(Say(text="well"),) if attempt else (Crash(),), starts=bool(attempt))

    async with open_batch_setup(scripts=scripts) as setup:
        await cut(setup, tmp_path)
        result = await again(setup, tmp_path)
        assert result.failure is not None
        assert (result.failure.kind, result.side_effects) == (FailureKind.ADAPTER_CRASHED, True)
        assert "--retry-from" not in result.failure.message
        assert (await again(setup, tmp_path)).text == "well"


async def killed(setup: BatchSetup, out: Path) -> Path:
    """Leave a batch while its job is in a tool; return a directory without a record of the end.

    It is the directory of a killed batch.
    """
    of_the_dead = out / "of the dead"
    async with batch(setup, out / "left"):
        await trio.sleep(3)
        shutil.copytree(out / "left", of_the_dead, ignore=shutil.ignore_patterns("lock"))
    return of_the_dead


async def test_a_killed_job_in_whose_session_another_run_has_failed_is_not_started_over(
    autojump_clock: object, tmp_path: Path
) -> None:
    async with open_batch_setup(scripts=then(CUT, (Fail(),))) as setup:
        out = await killed(setup, tmp_path)
        [session] = await setup.manager.sessions()
        by_hand = await (await setup.manager.session(session.id)).submit("by hand")
        assert (await by_hand.result()).status is RunStatus.FAILED
        result = await again(setup, out)
        assert (result.id, result.side_effects) == (by_hand.id, True)
        assert result.failure is not None
        assert FRESH in result.failure.message
        assert setup.prompts() == ["a", "by hand"]


async def test_a_killed_job_that_waits_to_be_resumed_stays_undecided_with_ask(
    autojump_clock: object, tmp_path: Path
) -> None:
    async with open_batch_setup(scripts=then(CUT)) as setup:
        out = await killed(setup, tmp_path)
        other = [job("a", deadline=50), job("b")]
        [of_b] = await collect(run_batch(setup.manager, other, out=out, only=["b"]))
        assert of_b.job == "b"
        result = await again(setup, out, retry_from="ask")
        assert (result.status, result.attempt, result.side_effects) == (RunStatus.FAILED, 1, True)
        assert result.failure is not None
        assert result.failure.message.startswith(
            "it was interrupted; the job has made tool calls, and"
        )
        assert setup.prompts() == ["a", "b"]
        assert (await again(setup, out)).text == "well"


async def test_a_killed_job_that_waits_for_a_limit_does_not_return_to_its_earlier_result(
    autojump_clock: object, tmp_path: Path
) -> None:
    """Its earlier result still stands, without a tool call; the attempt after it has made one."""
    out, disk = tmp_path / "out", tmp_path / "disk"
    firsts = [(Fail(),), (Tool(name="Bash"), RateLimited())]

    def scripts(prompt: str, attempt: int) -> tuple[Step, ...]:
        return firsts.pop(0) if prompt == "a" else (Say(text="well"),)

    async with open_batch_setup(scripts=scripts) as setup:
        assert (await again(setup, out)).side_effects is False
        async with batch(setup, out):
            await trio.sleep(3)
            shutil.copytree(out, disk, ignore=shutil.ignore_patterns("*-shm"))
        result = await again(setup, disk)
        assert (result.text, result.side_effects) == ("well", True)
        assert setup.prompts() == ["a", "a", "continue"]


async def test_a_job_whose_agent_has_not_answered_yet_is_given_its_prompt_again(
    autojump_clock: object, tmp_path: Path
) -> None:
    """Codex forgets the prompt of a turn that is interrupted at its start."""
    async with open_batch_setup(scripts=then((Hang(),))) as setup:
        for _ in range(2):
            async with batch(setup, tmp_path):
                await trio.sleep(3)
        assert setup.prompts() == ["a", "a"]
        assert len(await setup.manager.sessions()) == 1


async def test_a_job_whose_agent_has_answered_gets_the_message_to_continue(
    autojump_clock: object, tmp_path: Path
) -> None:
    async with open_batch_setup(scripts=then((Say(text="I see"), Hang()), (Hang(),))) as setup:
        for _ in range(2):
            async with batch(setup, tmp_path):
                await trio.sleep(3)
        assert (await again(setup, tmp_path)).text == "well"
        assert setup.prompts() == ["a", "continue", "continue"]


async def test_an_unknown_policy_is_refused_with_its_value(autojump_clock: object) -> None:
    async with open_batch_setup() as setup:
        with pytest.raises(ValueError, match="retry_from: expected one of session"):
            run_batch(setup.manager, [job("a")], retry_from="start")


async def test_a_job_that_has_completed_wants_no_decision(autojump_clock: object) -> None:
    async with open_batch_setup() as setup:
        batch = run_batch(setup.manager, [job("a", Tool(name="Bash"), Say(text="done"))])
        (result,) = await collect(batch)
    assert (result.status, result.detail) == (RunStatus.COMPLETED, None)
