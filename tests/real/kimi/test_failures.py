"""Failures end a run with their kind, without hanging, and the session continues."""

from __future__ import annotations

from sessionmgr.manager import Clocks
from sessionmgr.model import FailureKind, RunStatus
from sessionmgr.testing.model_server import (
    ModelCut,
    ModelFault,
    ModelHang,
    ModelRefuse,
    ModelReply,
    ModelSay,
)
from tests.real.harness import RealAgentHarness

K = FailureKind
# The model's reply; the kind of failure; retryable; resumable.
TABLE: dict[str, tuple[ModelReply, FailureKind | None, bool, bool]] = {
    "401": ((ModelRefuse(status=401),), K.AUTH_FAILED, False, True),
    "403": ((ModelRefuse(status=403),), K.AUTH_FAILED, False, True),
    "404": ((ModelRefuse(status=404),), K.MODEL_NOT_FOUND, False, True),
    "400": ((ModelRefuse(status=400),), K.PROVIDER_ERROR, False, True),
    "429": ((ModelRefuse(status=429),), K.RATE_LIMITED, True, True),
    "quota": (
        (ModelRefuse(status=429, kind="insufficient_quota"),),
        K.QUOTA_EXHAUSTED,
        False,
        True,
    ),
    "500": ((ModelRefuse(status=500),), K.PROVIDER_ERROR, True, True),
    "503": ((ModelRefuse(status=503),), K.OVERLOADED, True, True),
    "always cut": ((ModelSay(text="half"), ModelCut()), K.PROVIDER_ERROR, True, True),
    "fault": ((ModelSay(text="half"), ModelFault()), K.PROVIDER_ERROR, True, True),
    "empty": ((), K.PROVIDER_ERROR, True, True),
    "once 500": ((ModelRefuse(status=500, times=3), ModelSay(text="well")), None, False, False),
}


async def test_an_error_of_the_api_ends_in_its_kind(house: RealAgentHarness) -> None:
    """The failures follow each other in one session."""
    session = await house.session()
    for name, (reply, kind, retryable, resumable) in TABLE.items():
        played = await house.play([reply], session)
        result, failure = played.result, played.result.failure
        if kind is None:
            assert (result.status, result.text) == (RunStatus.COMPLETED, "well"), failure
            assert "retry_scheduled" in played.types
        else:
            assert failure is not None, name
            told = (failure.kind, failure.retryable, failure.resumable)
            assert told == (kind, retryable, resumable), f"{name}: {failure}"
            limited = kind is K.RATE_LIMITED
            assert result.status == ("rate_limited" if limited else "failed"), name
    await house.goes_on(session)


async def test_a_context_that_is_too_long_is_not_resumed(house: RealAgentHarness) -> None:
    reply = [ModelRefuse(status=400, message="maximum context length exceeded")]
    played = await house.play([reply])
    assert played.result.failure is not None
    assert played.result.failure.kind is K.CONTEXT_EXCEEDED
    assert not played.result.failure.resumable


async def test_an_agent_that_hangs_is_stalled_and_replaced(house: RealAgentHarness) -> None:
    session = await house.session()
    played = await house.play([[ModelHang()]], session, clocks=Clocks(model=1.0))
    assert played.result.status is RunStatus.TIMED_OUT, played.result
    await house.goes_on(session)


async def test_what_cannot_start_says_why(house: RealAgentHarness) -> None:
    session = await house.session()
    refused = await house.play(
        [[ModelSay(text="x")]], session, options={"command": ["/nowhere/kimi"]}
    )
    assert refused.result.failure is not None
    assert refused.result.failure.kind is K.CLI_NOT_FOUND
    run = await house.submit(session, "/yolo")
    failure = (await run.result()).failure
    assert failure is not None
    assert "'/yolo'" in failure.message
    (house.work.parent / "kimi" / "config.toml").write_text("telemetry = false\n")
    unset = await house.play([[ModelSay(text="x")]], session)
    assert unset.result.failure is not None
    assert (unset.result.failure.kind, unset.result.failure.message) == (
        K.CONFIG_INVALID,
        "LLM is not set",
    )
