"""Failures end a run with their kind, and the session continues."""

from __future__ import annotations

import pytest
import trio

from sessionmgr.model import FailureKind as K, MessageStreamed, RetryScheduled, RunStatus
from sessionmgr.testing.model_server import (
    ModelCut,
    ModelFault,
    ModelMalformed,
    ModelRefuse,
    ModelReply,
    ModelSay,
    ModelUsageLimit,
)
from tests.real.harness import RealAgentHarness, until_event

# The model's reply; the kind of failure; retryable.
TABLE: dict[str, tuple[ModelReply, K, bool]] = {
    "400": ((ModelRefuse(status=400),), K.PROVIDER_ERROR, False),
    "401": ((ModelRefuse(status=401),), K.AUTH_FAILED, False),
    "403": ((ModelRefuse(status=403),), K.AUTH_FAILED, False),
    "404": ((ModelRefuse(status=404),), K.MODEL_NOT_FOUND, False),
    "context": (
        (ModelRefuse(status=400, message="maximum context length exceeded"),),
        *(K.CONTEXT_EXCEEDED, False),
    ),
    "quota": ((ModelUsageLimit(resets_at=1_900_000_000),), K.QUOTA_EXHAUSTED, False),
    "cut": ((ModelSay(text="half", deltas=2), ModelCut()), K.PROVIDER_ERROR, True),
    "malformed": ((ModelSay(text="half"), ModelMalformed()), K.PROVIDER_ERROR, False),
}


async def test_an_error_of_the_api_ends_in_its_kind(house: RealAgentHarness) -> None:
    async def fail(names: list[str]) -> None:
        session = await house.session(cwd=house.place())
        for name in names:
            reply, kind, retryable = TABLE[name]
            played = await house.play([reply], session)
            failure = played.result.failure
            assert failure is not None, name
            assert (failure.kind, failure.retryable) == (kind, retryable), f"{name}: {failure}"
            assert played.result.status is RunStatus.FAILED
            await house.goes_on(session)

    async with trio.open_nursery() as nursery:
        for some in (list(TABLE)[::2], list(TABLE)[1::2]):
            nursery.start_soon(fail, some)


async def test_a_stream_that_always_breaks_off_is_shown_once(house: RealAgentHarness) -> None:
    session = await house.session()
    played = await house.play([[ModelSay(text="half ", deltas=2), ModelFault()]], session)
    failure = played.result.failure
    assert failure is not None
    assert (failure.kind, failure.retryable) == (K.PROVIDER_ERROR, True)
    assert len(house.server.log.asked) == 2
    said = [each.delta for each in played.events if isinstance(each, MessageStreamed)]
    assert "".join(said) == played.result.text == "half "


async def test_a_stream_that_breaks_off_once_is_completed(house: RealAgentHarness) -> None:
    reply = [ModelSay(text="half ", deltas=2), ModelFault(times=1), ModelSay(text="and whole")]
    played = await house.play([reply])
    assert played.result.text == "half and whole", played.result.failure
    said = [each.delta for each in played.events if isinstance(each, MessageStreamed)]
    assert "".join(said) == "half and whole"
    assert len(house.server.log.asked) == 2


async def test_an_empty_answer_is_no_success(house: RealAgentHarness) -> None:
    played = await house.play([[ModelSay(text="")]])
    assert played.result.failure is not None
    assert (played.result.failure.kind, played.result.failure.retryable) == (
        *(K.PROVIDER_ERROR, True),
    )


@pytest.mark.parametrize(
    ("refusal", "kind"),
    [
        (ModelRefuse(status=429, retry_after=1.0, times=1), K.RATE_LIMITED),
        (ModelRefuse(status=503, times=1), K.OVERLOADED),
    ],
    ids=["429", "503"],
)
async def test_what_gemini_tries_again_is_reported(
    house: RealAgentHarness, refusal: ModelRefuse, kind: K
) -> None:
    played = await house.play([[refusal, ModelSay(text="well")]])
    assert played.result.text == "well", played.result.failure
    [retry] = [each for each in played.events if isinstance(each, RetryScheduled)]
    assert (retry.attempt, retry.by) == (2, "provider")
    assert retry.failure is not None
    assert retry.failure.kind is kind


async def test_a_run_that_waits_for_a_retry_can_be_cancelled(house: RealAgentHarness) -> None:
    session = await house.session()
    run = await house.submit(session, [[ModelRefuse(status=500)]])
    await until_event(run, "retry_scheduled")
    assert run.cancel("enough")
    assert (await run.result()).status is RunStatus.CANCELLED
    await house.goes_on(session)


async def test_plain_text_tells_a_failure_too(house: RealAgentHarness) -> None:
    for reply, kind in (
        ((ModelRefuse(status=401),), K.AUTH_FAILED),
        ((ModelSay(text=""),), K.PROVIDER_ERROR),
    ):
        played = await house.play([reply], options=house.options(output="text"))
        assert played.result.failure is not None
        assert played.result.failure.kind is kind, played.result.failure


async def test_a_login_that_is_missing_is_named(house: RealAgentHarness) -> None:
    session = await house.session()
    played = await house.play(
        [[ModelSay(text="never")]], session, env={"GEMINI_API_KEY": "", "GOOGLE_API_KEY": ""}
    )
    assert played.result.failure is not None
    assert played.result.failure.kind is K.AUTH_FAILED
    assert "GEMINI_API_KEY" in played.result.failure.message
