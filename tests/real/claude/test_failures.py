"""Failures end a run with their kind, and nothing hangs."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import trio

from sessionmgr.adapter import Budget
from sessionmgr.manager import Clocks
from sessionmgr.model import (
    ErrorOccurred,
    FailureKind,
    Json,
    RunStatus,
    SessionStatsUpdated,
)
from sessionmgr.testing.model_server import (
    ModelCall,
    ModelCut,
    ModelFault,
    ModelHang,
    ModelMalformed,
    ModelRefuse,
    ModelReply,
    ModelSay,
    ModelScript,
    ModelStop,
    ModelUsageLimit,
    ModelUse,
)
from sessionmgr.testing.model_server.isolated_env import IsolatedEnvironment
from sessionmgr.testing.model_server.server import ModelServer
from tests.real.claude.harness import RealAgentHarness, is_kept, living, open_house, until

K = FailureKind
TOO_LONG: Final = "prompt is too long: 300000 tokens > 200000 maximum"
# Actions of the model; the resulting kind; whether a retry, and resuming, makes sense.
TABLE: dict[str, tuple[ModelReply, FailureKind | None, bool, bool]] = {
    "429": ((ModelRefuse(status=429),), K.RATE_LIMITED, True, True),
    "429 for long": ((ModelRefuse(status=429, retry_after=3600),), K.RATE_LIMITED, True, True),
    "529": ((ModelRefuse(status=529),), K.OVERLOADED, True, True),
    "500": ((ModelRefuse(status=500),), K.PROVIDER_ERROR, True, True),
    "401": ((ModelRefuse(status=401),), K.AUTH_FAILED, False, True),
    "403": ((ModelRefuse(status=403),), K.AUTH_FAILED, False, True),
    "400": ((ModelRefuse(status=400),), K.PROVIDER_ERROR, False, True),
    "404": ((ModelRefuse(status=404),), K.MODEL_NOT_FOUND, False, True),
    "413": ((ModelRefuse(status=413),), K.CONTEXT_EXCEEDED, False, False),
    "too long": ((ModelRefuse(status=400, message=TOO_LONG),), K.CONTEXT_EXCEEDED, False, False),
    "credit": (
        (ModelRefuse(status=400, message="Your credit balance is too low to access the API."),),
        K.BILLING,
        False,
        True,
    ),
    "always cut": ((ModelCut(),), K.PROVIDER_ERROR, True, True),
    "malformed": ((ModelMalformed(),), K.PROVIDER_ERROR, True, True),
    "refusal": ((ModelStop(reason="refusal"),), K.REFUSED, False, True),
    "once 529": ((ModelRefuse(status=529, times=1), ModelSay(text="well")), None, False, False),
    "once a fault": (
        (ModelSay(text="ha"), ModelFault(times=1), ModelSay(text="well")),
        None,
        False,
        False,
    ),
    "once cut": ((ModelCut(times=1), ModelSay(text="well")), None, False, False),
}


async def test_an_error_of_the_api_ends_in_its_kind(any_house: RealAgentHarness) -> None:
    """Each is played in a session of three, so that each also follows another failure."""
    names = list(TABLE)
    async with trio.open_nursery() as nursery:
        for some in (names[::3], names[1::3], names[2::3]):
            nursery.start_soon(fail_one_after_the_other, any_house, some)


async def fail_one_after_the_other(house: RealAgentHarness, names: list[str]) -> None:
    session = await house.session()
    for name in names:
        reply, kind, retryable, resumable = TABLE[name]
        if name == "once a fault" and "2.1.197" in str(house.program):
            kind, retryable, resumable = K.PROVIDER_ERROR, True, True  # older versions give up
        played = await house.play([reply], session)
        result, failure = played.result, played.result.failure
        if kind is None:
            assert result.status is RunStatus.COMPLETED, f"{name}: {failure}"
            assert result.text.endswith("well"), name
            assert "retry_scheduled" in played.types, name
        else:
            assert failure is not None, name
            told = (failure.kind, failure.retryable, failure.resumable)
            assert told == (kind, retryable, resumable), f"{name}: {failure}"
            limited = kind is K.RATE_LIMITED
            assert result.status == ("rate_limited" if limited else "failed"), name
        await house.goes_on(session)


async def test_what_is_not_to_be_asked_for_again_is_not(any_house: RealAgentHarness) -> None:
    headers = {"x-should-retry": "false"}
    played = await any_house.play([[ModelRefuse(status=500, headers=headers)]])
    failure = played.result.failure
    assert failure is not None
    assert (failure.kind, failure.retryable) == (K.PROVIDER_ERROR, True)
    assert "retry_scheduled" not in played.types
    assert len(any_house.server.log.asked) == 1


async def test_a_model_that_is_overloaded_is_left_for_the_one_that_was_named_for_that(
    server: ModelServer, hermitage: IsolatedEnvironment, claude_program: tuple[str, Path]
) -> None:
    env = hermitage.claude(retries=10)
    async with open_house(server, claude_program[1], hermitage.work, env) as house:
        played = await house.play(
            [[ModelRefuse(status=529, times=3), ModelSay(text="in its stead")]],
            model="claude-opus-4-5",
            options=house.options(fallback_model="claude-sonnet-4-5"),
        )
    assert (played.result.status, played.result.text) == (RunStatus.COMPLETED, "in its stead")
    models = [each.model for each in server.log.asked]
    assert models[:4] == ["claude-opus-4-5"] * 3 + ["claude-sonnet-4-5"]
    assert set(models[3:]) == {"claude-sonnet-4-5"}
    (told,) = [each for each in played.events if isinstance(each, ErrorOccurred)]
    assert (told.severity, told.failure.kind) == ("warning", K.OVERLOADED)
    stats = [each.model for each in played.events if isinstance(each, SessionStatsUpdated)]
    assert stats[0] == "claude-sonnet-4-5"


async def test_what_is_cut_at_its_limit_is_gone_on_with_and_fails_where_that_does_not_end(
    any_house: RealAgentHarness,
) -> None:
    cut: ModelReply = [ModelSay(text="a part"), ModelStop(reason="max_tokens")]
    played = await any_house.play([cut, [ModelSay(text="the rest")]])
    assert (played.result.status, played.result.text) == (RunStatus.COMPLETED, "the rest")
    session = await any_house.session()
    failure = (await any_house.play([cut] * 6, session)).result.failure
    assert failure is not None
    assert (failure.kind, failure.provider_code) == (K.PROVIDER_ERROR, "max_output_tokens")
    assert (failure.retryable, failure.resumable) == (False, True)
    await any_house.goes_on(session)


async def test_a_reply_of_nothing_is_asked_for_again_and_may_be_all_there_is(
    any_house: RealAgentHarness,
) -> None:
    session = await any_house.session()
    played = await any_house.play([[]], session)
    assert (played.result.status, played.result.text) == (RunStatus.COMPLETED, "")
    await any_house.goes_on(session)


async def test_arguments_that_cannot_be_read_are_the_models_to_mend(
    any_house: RealAgentHarness,
) -> None:
    played = await any_house.play(
        [[ModelCall(tool="shell", broken="{nope")], [ModelSay(text="sorry")]]
    )
    assert (played.result.status, played.result.text) == (RunStatus.COMPLETED, "sorry")
    assert played.result.tool_calls.failed == 1
    assert "tool_call_failed" in played.types


async def test_work_in_the_background_is_not_waited_for_beyond_the_clock(
    any_house: RealAgentHarness,
) -> None:
    session = await any_house.session("full_auto")
    command: dict[str, Json] = {"command": "sleep 1000; touch late", "run_in_background": True}
    script: ModelScript = [[ModelCall(tool="Bash", input=command)], [ModelSay(text="soon")]]
    played = await any_house.play(script, session, clocks=Clocks(drain=1.0))
    failure = played.result.failure
    assert failure is not None
    assert (played.result.status, failure.kind) == (RunStatus.TIMED_OUT, K.STALLED)
    assert "drain" in failure.message
    assert (failure.retryable, failure.resumable) == (True, True)
    await until(lambda: not any("sleep 1000" in each for each in living(any_house.work)))
    await any_house.goes_on(session)


async def test_a_subscription_that_is_used_up_says_until_when(
    server: ModelServer, house: RealAgentHarness
) -> None:
    env = {key: each for key, each in house.env.items() if key != "ANTHROPIC_API_KEY"}
    env["CLAUDE_CODE_OAUTH_TOKEN"] = "sk-scripted-token"
    async with open_house(server, house.program, house.work, env) as other:
        played = await other.play([[ModelUsageLimit(resets_at=1_900_000_000)]])
        assert played.result.status is RunStatus.RATE_LIMITED
        assert played.result.failure is not None
        assert played.result.failure.retry_at == "2030-03-17T17:46:40.000Z"
        assert "rate_limit_updated" in played.types


async def test_nothing_is_spent_where_another_pays_than_was_declared(
    any_house: RealAgentHarness,
) -> None:
    played = await any_house.play(
        [[ModelSay(text="never")]], options=any_house.options(billing="subscription")
    )
    assert played.result.failure is not None
    assert played.result.failure.kind is K.BILLING
    assert len(any_house.server.log) == sum(
        each.http.method == "HEAD" for each in any_house.server.log
    )
    played = await any_house.play(
        [[ModelSay(text="paid")]], options=any_house.options(billing="api")
    )
    assert played.result.text == "paid"


async def test_limits_of_turns_and_money_end_a_run(house: RealAgentHarness) -> None:
    call = ModelCall(tool="shell", input={"command": "true"})
    script: ModelScript = [[call], [call], [call], [ModelSay(text="never")]]
    played = await house.play(script, await house.session("full_auto"), max_turns=2)
    assert played.result.failure is not None
    assert played.result.failure.provider_code == "error_max_turns"
    assert played.result.failure.kind is K.BUDGET_EXCEEDED
    assert played.result.reason == "budget"
    costly: ModelScript = [
        [call, ModelUse(input=100_000, output=10_000)],
        [call],
        [ModelSay(text="never")],
    ]
    played = await house.play(costly, await house.session("full_auto"), budget=Budget(usd=0.1))
    assert played.result.failure is not None
    assert played.result.failure.kind is K.BUDGET_EXCEEDED


async def test_a_budget_of_money_is_one_runs_and_not_the_sessions(house: RealAgentHarness) -> None:
    session, budget = await house.session("full_auto"), Budget(usd=0.1)
    call = ModelCall(tool="shell", input={"command": "true"})
    for _ in range(
        2
    ):  # each uses a little more than half of it, both together more than the session's budget
        played = await house.play(
            [[ModelSay(text="x"), ModelUse(input=10_000, output=1_000)]], session, budget=budget
        )
        assert played.result.status is RunStatus.COMPLETED, played.result.failure
        assert 0.05 < (played.result.cost.usd or 0) < 0.1
    costly: ModelScript = [[call, ModelUse(input=10_000, output=10_000)], [ModelSay(text="never")]]
    played = await house.play(costly, session, budget=budget)
    assert played.result.failure is not None
    assert (played.result.failure.kind, played.result.reason) == (K.BUDGET_EXCEEDED, "budget")


async def test_what_cannot_start_says_why(house: RealAgentHarness) -> None:
    session = await house.session()
    cases: list[tuple[dict[str, object], FailureKind]] = [
        ({"command": ["/nowhere/claude"]}, K.CLI_NOT_FOUND),
        ({"command": [str(house.program), "--no-such-flag"]}, K.CONFIG_INVALID),
    ]
    for options, kind in cases:
        run = await session.submit("hi", options=options)
        result = await run.result()
        assert result.failure is not None
        assert (result.status, result.failure.kind) == (RunStatus.FAILED, kind), result.failure


async def test_an_unknown_session_is_not_found(house: RealAgentHarness) -> None:
    session = await house.manager.open_session("claude", cwd=house.work)
    run = await session.submit("hi", options=house.options(keep=False))
    first = await run.result()
    await until(lambda: not list(living(house.work)))  # the agent writes to its end
    for each in house.work.parent.glob("home/.claude/projects/*/*.jsonl"):
        each.unlink()
    played = await house.play([[ModelSay(text="x")]], session, options=house.options(keep=False))
    assert first.provider_session_id
    assert played.result.failure is not None
    assert played.result.failure.kind is K.SESSION_NOT_FOUND


async def test_an_agent_that_hangs_is_stalled_and_replaced(house: RealAgentHarness) -> None:
    session = await house.session()
    await house.play([[ModelSay(text="one")]], session)
    await until(lambda: is_kept(house.work.parent, '"one"'))
    played = await house.play([[ModelHang()]], session, clocks=Clocks(model=1.0))
    failure = played.result.failure
    assert failure is not None
    assert (played.result.status, failure.kind) == (RunStatus.TIMED_OUT, K.STALLED)
    assert (failure.retryable, failure.resumable) == (True, True)
    again = await house.play([[ModelSay(text="again")]], session)
    assert again.result.text == "again"


async def test_root_may_not_do_all_unless_it_says_that_it_is_in_a_sandbox(
    server: ModelServer, house: RealAgentHarness
) -> None:
    env = {key: each for key, each in house.env.items() if key != "IS_SANDBOX"}
    async with open_house(server, house.program, house.work, env) as other:
        played = await other.play([[ModelSay(text="x")]], await other.session("full_auto"))
        if played.result.failure is not None:  # root can do it
            assert played.result.failure.kind is K.PERMISSION_REFUSED
