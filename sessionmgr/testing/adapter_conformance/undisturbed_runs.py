"""The behaviours of runs that are not interrupted, cancelled or sent messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio

from sessionmgr.model import FailureKind, RunStatus
from sessionmgr.testing.adapter_conformance.behaviour import AdapterBehaviourGroup

if TYPE_CHECKING:
    from sessionmgr.model import RunResult
    from sessionmgr.testing.adapter_conformance.harness import ConformanceHarness

PLAYING: Final = AdapterBehaviourGroup()
AT_ONCE: Final = 5


@PLAYING.register()
async def a_run_has_one_start_and_one_end(stage: ConformanceHarness) -> None:
    play = stage.case.answers
    played = await stage.run_to_end(play)
    result = played.result
    assert result.status == RunStatus.COMPLETED, f"{result.status}: {result.failure}"
    assert played.types[0] == "run_started"
    assert played.types[-1] == "run_completed"
    assert play.text in {None, result.text}, f"its text is {result.text!r}"


@PLAYING.register()
async def a_run_without_a_reader_ends(stage: ConformanceHarness) -> None:
    run = await stage.submit(stage.case.answers)
    assert (await run.result()).status == RunStatus.COMPLETED


@PLAYING.register(capabilities=("streaming",))
async def what_is_streamed_is_what_is_received(stage: ConformanceHarness) -> None:
    played = await stage.run_to_end(stage.case.answers)  # `run_to_end` compares them
    assert {"message_streamed", "message_received"} & set(played.types)


@PLAYING.register()
async def runs_at_the_same_time_do_not_mix(stage: ConformanceHarness) -> None:
    results: list[RunResult] = []

    async def one() -> None:
        results.append((await stage.run_to_end(stage.case.answers)).result)

    async with trio.open_nursery() as nursery:
        for _ in range(AT_ONCE):
            nursery.start_soon(one)
    assert [each.status for each in results] == [RunStatus.COMPLETED] * AT_ONCE
    named = [each.provider_session_id for each in results if each.provider_session_id is not None]
    assert len(set(named)) == len(named), f"several sessions share one provider session: {named}"
    if stage.case.answers.text is not None:
        assert {each.text for each in results} == {stage.case.answers.text}


@PLAYING.register()
async def runs_of_a_session_come_one_after_the_other(stage: ConformanceHarness) -> None:
    session = await stage.session()
    runs = [await stage.submit(stage.case.answers, session) for _ in range(3)]
    for run in runs:
        assert (await stage.collect(run)).result.status == RunStatus.COMPLETED


@PLAYING.register(capabilities=("resume",))
async def the_next_run_resumes_the_providers_session(stage: ConformanceHarness) -> None:
    session = await stage.session()
    first = (await stage.run_to_end(stage.case.answers, session)).result
    second = (await stage.run_to_end(stage.case.answers, session)).result
    assert first.provider_session_id is not None, "it can resume, but reports no session id"
    assert second.provider_session_id == first.provider_session_id


@PLAYING.register("fails")
async def a_failed_run_reports_its_failure(stage: ConformanceHarness) -> None:
    assert stage.case.fails is not None
    played = await stage.run_to_end(stage.case.fails)
    result = played.result
    assert result.status == RunStatus.FAILED
    assert result.failure is not None
    assert result.failure.kind is not FailureKind.ADAPTER_CRASHED, result.failure.message
    assert result.failure.message
    assert stage.case.fails.text in {None, result.text}, f"its text is {result.text!r}"


@PLAYING.register("fails")
async def after_a_failed_run_the_next_succeeds(stage: ConformanceHarness) -> None:
    assert stage.case.fails is not None
    session = await stage.session()
    await stage.run_to_end(stage.case.fails, session)
    played = await stage.run_to_end(stage.case.answers, session)
    assert played.result.status == RunStatus.COMPLETED, played.result.failure


@PLAYING.register()
async def it_reports_its_health(stage: ConformanceHarness) -> None:
    await stage.run_to_end(stage.case.answers)
    health = await stage.case.adapter().health()
    assert health.state in {"ok", "skip", "fail"}
    assert health.state == "ok" or health.detail, "health reports no reason"
