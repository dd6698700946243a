"""Failures end a run with their kind, on an app-server and with `codex exec`, without hanging."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import trio

from sessionmgr.manager import Clocks
from sessionmgr.model import FailureKind, Json, RunStatus
from sessionmgr.testing.model_server import (
    ModelCall,
    ModelCut,
    ModelFault,
    ModelHang,
    ModelRefuse,
    ModelReply,
    ModelRequest,
    ModelSay,
    ModelScript,
    ModelServer,
    ModelStop,
    ModelUsageLimit,
    ModelUse,
    open_model_server,
)
from sessionmgr.testing.model_server.isolated_env import IsolatedEnvironment
from tests.real.codex.harness import open_house
from tests.real.harness import RealAgentHarness

K = FailureKind
# The model's reply; the kind of failure; retryable; resumable.
TABLE: dict[str, tuple[ModelReply, FailureKind | None, bool, bool]] = {
    "429": ((ModelRefuse(status=429),), K.RATE_LIMITED, True, True),
    "500": ((ModelRefuse(status=500),), K.PROVIDER_ERROR, True, True),
    "503": ((ModelRefuse(status=503),), K.OVERLOADED, True, True),
    "at capacity": (
        (ModelRefuse(status=503, kind="server_is_overloaded"),),
        K.OVERLOADED,
        True,
        True,
    ),
    "401": ((ModelRefuse(status=401),), K.AUTH_FAILED, False, True),
    "403": ((ModelRefuse(status=403),), K.AUTH_FAILED, False, True),
    "404": ((ModelRefuse(status=404),), K.PROVIDER_ERROR, False, True),
    "400": ((ModelRefuse(status=400),), K.PROVIDER_ERROR, False, True),
    "always cut": ((ModelCut(),), K.PROVIDER_ERROR, True, True),
    "quota": ((ModelFault(kind="insufficient_quota"),), K.QUOTA_EXHAUSTED, False, True),
    "context": ((ModelFault(kind="context_length_exceeded"),), K.CONTEXT_EXCEEDED, False, False),
    "prompt": ((ModelFault(kind="invalid_prompt"),), K.PROVIDER_ERROR, False, True),
    "too long": (
        (ModelSay(text="x"), ModelStop(reason="max_tokens")),
        K.PROVIDER_ERROR,
        False,
        True,
    ),
    "once 500": ((ModelRefuse(status=500, times=1), ModelSay(text="well")), None, False, False),
    "once cut": (
        (ModelSay(text="ha", whole=False), ModelCut(times=1), ModelSay(text="well")),
        None,
        False,
        False,
    ),
}
# Failures with a class but without a sentence that `codex exec` could be classified by.
CLASSED: dict[str, tuple[ModelReply, FailureKind | None, bool, bool]] = {
    "model": ((ModelRefuse(status=404, kind="model_not_found"),), K.MODEL_NOT_FOUND, False, True),
    "cyber": ((ModelFault(kind="cyber_policy"),), K.REFUSED, False, True),
    "used up": ((ModelUsageLimit(resets_at=1_900_000_000),), K.RATE_LIMITED, True, True),
}
LAST: list[str] = ["context"]
"""Failures after which a thread cannot continue."""


async def test_an_error_of_the_api_ends_in_its_kind(any_house: RealAgentHarness) -> None:
    """Each failure is one of three runs of a session, so that it also follows another failure."""
    table = {**TABLE, **CLASSED}
    names = [each for each in table if each not in LAST]
    async with trio.open_nursery() as nursery:
        for some in (names[::3], names[1::3], names[2::3], LAST):
            nursery.start_soon(fail_one_after_the_other, any_house, table, some)


async def test_so_it_does_in_a_process_of_its_own(house: RealAgentHarness) -> None:
    names = [each for each in TABLE if each not in LAST]
    async with trio.open_nursery() as nursery:
        for some in (names[::2], names[1::2], LAST):
            play = partial(fail_one_after_the_other, exec=True)
            nursery.start_soon(play, house, TABLE, some)


async def fail_one_after_the_other(
    house: RealAgentHarness,
    table: dict[str, tuple[ModelReply, FailureKind | None, bool, bool]],
    names: list[str],
    **options: Json,
) -> None:
    session = await house.session()
    for name in names:
        reply, kind, retryable, resumable = table[name]
        if name == "model" and "0.163.0" in str(house.program):
            kind = K.PROVIDER_ERROR  # older versions have no class for it
        played = await house.play([reply], session, options=house.options(**options))
        result, failure = played.result, played.result.failure
        if kind is None:
            assert result.status is RunStatus.COMPLETED, f"{name}: {failure}"
            assert result.text == "well", name
            told_of = name == "once cut"  # retries of other failures are not reported
            assert ("retry_scheduled" in played.types) == told_of, name
        else:
            assert failure is not None, name
            told = (failure.kind, failure.retryable, failure.resumable)
            assert told == (kind, retryable, resumable), f"{name}: {failure}"
            limited = kind is K.RATE_LIMITED
            assert result.status == ("rate_limited" if limited else "failed"), name
        if name not in LAST:
            await house.goes_on(session)


async def test_what_was_tried_again_with_success_explains_no_later_failure(
    house: RealAgentHarness,
) -> None:
    """A class without information is retryable only if the turn broke off just before."""
    for once in (False, True):
        session = await house.session("full_auto")
        works = ModelCall(tool="shell", input={"command": "true"})
        script: ModelScript = [
            [ModelSay(text="ha", whole=False), ModelCut(times=1), works],
            [ModelRefuse(status=400)],
        ]
        played = await house.play(script, session, options=house.options(exec=once))
        failure = played.result.failure
        assert failure is not None
        assert "retry_scheduled" in played.types
        assert "tool_call_completed" in played.types
        assert (failure.kind, failure.retryable) == (K.PROVIDER_ERROR, False), (once, failure)


async def test_a_context_that_could_not_be_shortened_says_so(newest: Path, tmp_path: Path) -> None:
    def none_is_made(request: ModelRequest) -> ModelReply | None:
        return [ModelRefuse(status=400)] if request.purpose == "compaction" else None

    async with open_model_server(none_is_made) as server:
        hermitage = IsolatedEnvironment(tmp_path, server.url)
        env = hermitage.codex(retries=1)
        async with open_house(server, newest, hermitage.work, env) as house:
            options = house.options(config={"model_auto_compact_token_limit": 20_000})
            script: ModelScript = [
                [ModelCall(tool="shell", input={"command": "true"}), ModelUse(input=90_000)],
                [ModelSay(text="x")],
            ]
            session = await house.session("full_auto")
            played = await house.play(script, session, options=options)
    assert played.result.failure is not None
    of_it = [each for each in played.types if each.startswith("compaction")]
    assert of_it == ["compaction_started", "compaction_failed"]


async def test_a_subscription_that_is_used_up_says_until_when(house: RealAgentHarness) -> None:
    played = await house.play([[ModelUsageLimit(resets_at=1_900_000_000)]])
    assert played.result.failure is not None
    assert played.result.failure.retry_at == "2030-03-17T17:46:40.000Z"
    assert "rate_limit_updated" in played.types


async def test_what_cannot_start_says_why(house: RealAgentHarness) -> None:
    cases: list[tuple[dict[str, Json], FailureKind]] = [
        ({"command": ["/nowhere/codex"]}, K.CLI_NOT_FOUND),
        ({"config": {"sandbox_mode": "nix"}}, K.CONFIG_INVALID),
    ]
    for options, kind in cases:
        for once in (False, True):
            session = await house.session()
            said = house.options(exec=once, **{k: v for k, v in options.items() if k != "command"})
            run = await session.submit("hi", options={**said, **options})
            result = await run.result()
            assert result.failure is not None
            assert (result.status, result.failure.kind) == (RunStatus.FAILED, kind), result.failure


async def test_a_thread_that_nobody_knows_is_not_found(house: RealAgentHarness) -> None:
    session = await house.session()
    await house.play([[ModelSay(text="one")]], session, options=house.options(keep=False))
    for each in (house.work.parent / "codex" / "sessions").rglob("*.jsonl"):
        each.unlink()
    for once in (False, True):
        played = await house.play([[ModelSay(text="x")]], session, options=house.options(exec=once))
        assert played.result.failure is not None
        assert played.result.failure.kind is K.SESSION_NOT_FOUND, played.result.failure


async def test_an_agent_that_hangs_is_stalled_and_replaced(house: RealAgentHarness) -> None:
    for once in (False, True):
        session, options = await house.session(), house.options(exec=once)
        await house.goes_on(session, options=options)
        clocks = Clocks(model=1.0)
        played = await house.play([[ModelHang()]], session, clocks=clocks, options=options)
        assert (played.result.status, played.result.failure and played.result.failure.kind) == (
            RunStatus.TIMED_OUT,
            K.STALLED,
        )
        await house.goes_on(session)


async def test_a_server_that_is_not_there_is_not_waited_for(
    server: ModelServer, hermitage: IsolatedEnvironment, newest: Path
) -> None:
    env = hermitage.codex(retries=1)
    config = hermitage.root / "codex" / "config.toml"
    config.write_text(config.read_text().replace(server.url, "http://127.0.0.1:9"))
    async with open_house(server, newest, hermitage.work, env) as house:
        for once in (False, True):
            played = await house.play([[ModelSay(text="x")]], options=house.options(exec=once))
            failure = played.result.failure
            assert failure is not None
            assert (failure.kind, failure.retryable) == (K.PROVIDER_ERROR, True), failure
