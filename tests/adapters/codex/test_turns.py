"""Turns on a mock: their events, their usage and their ends."""

from __future__ import annotations

import pytest
from trio.testing import MockClock

from sessionmgr.adapter.kit.json_rpc_caller import RpcCall
from sessionmgr.model import (
    ErrorOccurred,
    FailureKind,
    Json,
    MessageReceived,
    RetryScheduled,
    TokenUsageUpdated,
    ToolCallFailed,
)
from sessionmgr.testing.mock_sdk import INTERRUPTED
from sessionmgr_adapters.codex.frames import (
    AccountLimits,
    CodexFrame,
    CodexMessageDelta,
    CodexTokenCounts,
    ErrorNotice,
    ItemEndedNotice,
    ItemStartedNotice,
    LimitsNotice,
    LimitWindow,
    TokenUsage,
    TokenUsageNotice,
    TurnError,
    UnknownNotice,
    WarningNotice,
)
from sessionmgr_adapters.codex.items import AgentMessageItem, ContextCompactionItem
from tests.adapters.codex.mock_agent import (
    TURN,
    Talk,
    begin,
    command,
    end,
    opening,
    result,
    text,
    thread_of,
)
from tests.adapters.codex.mocked_manager import manager_of, play


async def test_text_that_was_given_up_is_part_of_nothing(autojump_clock: MockClock) -> None:
    async def retry(it: Talk) -> None:
        call = await opening(it)
        thread = thread_of(call)
        begin(it, call)
        half: list[CodexFrame] = [
            ItemStartedNotice(thread_id=thread, item=AgentMessageItem(id="m")),
            CodexMessageDelta(thread_id=thread, item_id="m", delta="Half"),
            ErrorNotice(
                thread_id=thread,
                error=TurnError(message="Reconnecting... 1/5", codex_error_info="other"),
                will_retry=True,
            ),
        ]
        it.says(*half, *text(thread, "Whole", "m"))
        end(it, thread)

    done, events = await play(retry)
    assert (done.status, done.text) == ("completed", "Whole")
    assert [each.content for each in events if isinstance(each, MessageReceived)] == ["Whole"]
    assert [each.attempt for each in events if isinstance(each, RetryScheduled)] == [1]


def usage(thread: str, turn: str, total: int, last: int) -> TokenUsageNotice:
    return TokenUsageNotice(
        thread_id=thread,
        turn_id=turn,
        token_usage=TokenUsage(
            total=CodexTokenCounts(
                input_tokens=10 * total, cached_input_tokens=total, output_tokens=total
            ),
            last=CodexTokenCounts(
                input_tokens=10 * last, cached_input_tokens=last, output_tokens=last
            ),
        ),
    )


async def test_what_was_used_before_is_not_counted_again(autojump_clock: MockClock) -> None:
    async def count(it: Talk) -> None:
        call = await opening(it)
        thread = thread_of(call)
        it.says(usage(thread, "turn-0", 100, 7))
        begin(it, call)
        it.says(usage(thread, TURN, 130, 30), usage(thread, TURN, 150, 20))
        end(it, thread)

    done, events = await play(count)
    assert [each.usage.output for each in events if isinstance(each, TokenUsageUpdated)] == [30, 20]
    assert (done.usage.input, done.usage.cached_input, done.usage.output) == (450, 50, 50)


@pytest.mark.parametrize("answers", [False, True])
async def test_what_was_tried_again_explains_a_failure_unless_the_model_has_answered_since(
    autojump_clock: MockClock, *, answers: bool
) -> None:
    async def cut(it: Talk) -> None:
        call = await opening(it)
        thread = thread_of(call)
        begin(it, call)
        gone = TurnError(message="gone", codex_error_info="responseStreamDisconnected")
        it.says(ErrorNotice(thread_id=thread, error=gone, will_retry=True))
        if answers:
            it.says(usage(thread, TURN, 10, 10))
        end(it, thread, "failed", TurnError(message="Bad Request", codex_error_info="other"))

    done, _ = await play(cut)
    assert done.failure is not None
    assert done.failure.retryable is not answers


@pytest.mark.parametrize("status", ["failed", "interrupted", "completed"])
async def test_a_context_that_was_not_shortened_when_the_turn_ends_never_is(
    autojump_clock: MockClock, status: str
) -> None:
    async def shortens(it: Talk) -> None:
        call = await opening(it)
        thread = thread_of(call)
        begin(it, call)
        first, second = ContextCompactionItem(id="one"), ContextCompactionItem(id="two")
        it.says(
            ItemStartedNotice(thread_id=thread, item=first),
            ItemEndedNotice(thread_id=thread, item=first),
            ItemStartedNotice(thread_id=thread, item=second),
        )
        end(it, thread, status)

    _, events = await play(shortens)
    assert [each.type for each in events if each.type.startswith("compaction")] == [
        "compaction_started",
        "compaction_completed",
        "compaction_started",
        "compaction_failed",
    ]


async def test_a_used_up_limit_says_when_it_is_over(autojump_clock: MockClock) -> None:
    async def limited(it: Talk) -> None:
        call = await opening(it)
        begin(it, call)
        window = LimitWindow(used_percent=100, resets_at=1_900_000_000)
        it.says(LimitsNotice(rate_limits=AccountLimits(limit_id="codex", primary=window)))
        it.says(
            LimitsNotice(rate_limits=AccountLimits(limit_id="codex"))
        )  # of another run, without changes
        error = TurnError(message="You've hit it.", codex_error_info="usageLimitExceeded")
        end(it, thread_of(call), "failed", error)

    done, events = await play(limited)
    assert done.status == "rate_limited"
    assert done.failure is not None
    assert done.failure.retry_at == "2030-03-17T17:46:40.000Z"
    assert "rate_limit_updated" in [each.type for each in events]


async def test_what_nobody_knows_is_told_as_it_came(autojump_clock: MockClock) -> None:
    async def odd(it: Talk) -> None:
        call = await opening(it)
        begin(it, call)
        thread = thread_of(call)
        params: Json = {"threadId": thread}
        it.says(UnknownNotice(method="thread/dreamed", params=params, thread_id=thread))
        end(it, thread_of(call))

    done, events = await play(odd)
    assert done.status == "completed"
    assert "raw_received" in [each.type for each in events]


async def test_a_warning_that_concerns_no_thread_is_told_by_the_first_run_alone(
    autojump_clock: MockClock,
) -> None:
    async def warns(it: Talk) -> None:
        call = await opening(it)
        it.says(WarningNotice(summary="no bubblewrap on PATH"))
        it.says(WarningNotice(message="of this thread", thread_id=thread_of(call)))
        begin(it, call)
        end(it, thread_of(call))

    async with manager_of(warns) as manager:
        told: list[list[str]] = []
        for _ in range(2):
            session = await manager.open_session("codex")
            run = await session.submit("go")
            events = [each async for each in run]
            told.append(
                [each.failure.message for each in events if isinstance(each, ErrorOccurred)]
            )
    assert told == [["no bubblewrap on PATH", "of this thread"], ["of this thread"]]


async def test_commands_that_still_run_are_ended_with_the_turn(autojump_clock: MockClock) -> None:
    async def leave(it: Talk) -> None:
        call = await opening(it)
        thread = thread_of(call)
        begin(it, call)
        it.says(ItemStartedNotice(thread_id=thread, item=command("c1", "sleep 100")))
        it.says(ItemStartedNotice(thread_id=thread, item=command("c2", "sleep 100")))
        end(it, thread)
        clean = await it.heard()
        assert isinstance(clean, RpcCall)
        assert clean.method == "thread/backgroundTerminals/clean"
        it.says(result(clean, {}))
        it.says(ItemEndedNotice(thread_id=thread, item=command("c1", "sleep 100", "failed")))

    done, events = await play(leave)
    assert done.status == "completed"
    ended = [each for each in events if isinstance(each, ToolCallFailed)]
    assert [(each.tool_call_id, each.synthetic is True) for each in ended] == [
        ("c1", False),
        ("c2", True),
    ]


async def test_a_cancel_interrupts_and_ends_what_runs(autojump_clock: MockClock) -> None:
    heard: list[object] = []

    async def busy(it: Talk) -> None:
        call = await opening(it)
        thread = thread_of(call)
        begin(it, call)
        it.says(ItemStartedNotice(thread_id=thread, item=command("c1", "sleep 100")))
        heard.append(await it.heard())
        end(it, thread, "interrupted")
        clean = await it.heard()
        assert isinstance(clean, RpcCall)
        heard.append(clean.method)
        it.says(result(clean, {}))
        it.says(ItemEndedNotice(thread_id=thread, item=command("c1", "sleep 100", "failed")))

    async with manager_of(busy) as manager:
        session = await manager.open_session("codex")
        run = await session.submit("hi")
        async for event in run:
            if event.type == "tool_call_started":
                run.cancel()
        assert (await run.result()).status == "cancelled"
    assert heard == [INTERRUPTED, "thread/backgroundTerminals/clean"]


async def test_an_app_server_that_goes_fails_its_runs_which_can_go_on(
    autojump_clock: MockClock,
) -> None:
    async def short_lived(it: Talk) -> None:
        call = await opening(it)
        begin(it, call)
        it.says(*text(thread_of(call), "one"))
        it.ends()

    done, _ = await play(short_lived)
    assert (done.status, done.text) == ("failed", "one")
    assert done.failure is not None
    assert (done.failure.retryable, done.failure.resumable) == (True, True)


@pytest.mark.parametrize(
    ("said", "schema", "kind"),
    [
        ('{"a": 1}', {"type": "object"}, None),
        ("prose", {"type": "object"}, FailureKind.STRUCTURED_INVALID),
        ("[1]", {"type": "object"}, FailureKind.STRUCTURED_INVALID),
        ("{}", {"type": "no type"}, FailureKind.CONFIG_INVALID),
    ],
)
async def test_output_by_a_schema_is_looked_at(
    autojump_clock: MockClock, said: str, schema: Json, kind: FailureKind | None
) -> None:
    pytest.importorskip("jsonschema_rs")

    async def answers(it: Talk) -> None:
        call = await opening(it)
        begin(it, call)
        it.says(*text(thread_of(call), said))
        end(it, thread_of(call))

    done, _ = await play(answers, schema=schema)
    assert (done.failure.kind if done.failure else None) == kind
    assert (done.structured == {"a": 1}) is (kind is None)
