"""Failures of the model's server: each ends a run with its kind, and none seems a success."""

from __future__ import annotations

from typing import Final

import trio

from sessionmgr.model import FailureKind, RunResult, RunStatus
from sessionmgr.testing.model_server import (
    ModelCall,
    ModelCut,
    ModelEmpty,
    ModelFault,
    ModelRefuse,
    ModelSay,
    ModelScript,
    prompt_with,
)
from tests.real.acp.agents import InstalledAcpAgent
from tests.real.acp.harness import AcpHarness
from tests.real.acp.limits import RETRIES, outcome_of
from tests.real.harness import see, until

K = FailureKind
LANES: Final = 4
SLOW: Final = "Rate limit reached for requests"
SPENT: Final = "You exceeded your current quota, please check your plan and billing details"
WRONG: Final = "Invalid value for a parameter"
WELL: Final = ModelSay(text="well")
LOOK: Final = ModelCall(tool="shell", input={"command": "true"})
REFUSED: Final = ModelRefuse(status=400, message=WRONG)


def failed(kind: FailureKind, *, retryable: bool = False) -> str:
    return f"{kind.value}, retryable" if retryable else kind.value


CASES: Final[dict[str, tuple[ModelScript, str]]] = {
    "401": (
        [[ModelRefuse(status=401, message="Incorrect API key provided: sk-none")]],
        failed(K.AUTH_FAILED),
    ),
    "429": (
        [[ModelRefuse(status=429, message=SLOW, retry_after=1.0)]],
        failed(K.RATE_LIMITED, retryable=True),
    ),
    "429 once": (
        [[ModelRefuse(status=429, message=SLOW, retry_after=1.0, times=1), WELL]],
        "completed: well",
    ),
    "429 of a quota": (
        [[ModelRefuse(status=429, kind="insufficient_quota", message=SPENT, retry_after=1.0)]],
        failed(K.QUOTA_EXHAUSTED),
    ),
    "a quota in the stream": (
        [[ModelFault(kind="insufficient_quota", message=SPENT)]],
        failed(K.QUOTA_EXHAUSTED),
    ),
    "500": (
        [[ModelRefuse(status=500, message="The server had an error")]],
        failed(K.PROVIDER_ERROR, retryable=True),
    ),
    "503": (
        [[ModelRefuse(status=503, message="The engine is currently overloaded")]],
        failed(K.OVERLOADED, retryable=True),
    ),
    "400": ([[REFUSED]], failed(K.PROVIDER_ERROR)),
    "400 after a tool": ([[LOOK], [REFUSED]], failed(K.PROVIDER_ERROR)),
    "always cut": (
        [[ModelSay(text="ha", whole=False), ModelCut()]],
        failed(K.PROVIDER_ERROR, retryable=True),
    ),
    "an empty answer": ([[ModelEmpty()]], "completed: "),
}


async def test_an_error_of_the_api_ends_in_its_kind(
    house: AcpHarness, acp_agent: InstalledAcpAgent
) -> None:
    """After each failure its session goes on, unless it has none."""
    wanted = {name: outcome_of(acp_agent.id, name, usual) for name, (_, usual) in CASES.items()}
    found: dict[str, str] = {}

    async def play(names: list[str]) -> None:
        for name in names:
            found[name] = await fail(house, CASES[name][0], wanted[name])

    async with trio.open_nursery() as nursery:
        for lane in range(LANES):  # Gemini takes a minute to open many sessions at once
            nursery.start_soon(play, [*CASES][lane::LANES])
    assert found == wanted


async def fail(house: AcpHarness, script: ModelScript, wanted: str) -> str:
    """Play a script, and return how it ended."""
    session, word = await house.session("full_auto"), house.word()
    run = await house.submit(session, prompt_with(script, word))
    if wanted == RETRIES:
        await until(lambda: house.turns_asked(word) > 1)
        assert run.status == "running", run.status
        run.cancel()
        assert (await run.result()).status is RunStatus.CANCELLED
        found = RETRIES
    else:
        found = ending((await see(run)).result)
    await house.goes_on(session)
    return found


def ending(result: RunResult) -> str:
    """Return how a run ended, in words."""
    failure = result.failure
    if failure is None:
        return f"{result.status.value}: {result.text}"
    assert failure.resumable, failure
    assert (result.status is RunStatus.RATE_LIMITED) == (failure.kind is K.RATE_LIMITED), result
    return failed(failure.kind, retryable=failure.retryable)
