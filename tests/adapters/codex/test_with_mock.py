"""The adapter and its turns, with a mock in the place of the app-server, in virtual time."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Unpack

import pytest
import trio
from trio.testing import MockClock

from sessionmgr.manager import Clocks, Manager, open_manager
from sessionmgr.manager.plan import Wishes
from sessionmgr.model import (
    AnyEvent,
    FailureKind,
    Json,
    MessageReceived,
    RetryScheduled,
    RunResult,
    TokenUsageUpdated,
    ToolCallFailed,
)
from sessionmgr.provider import Allow, ApprovalRequest, Decision, Deny
from sessionmgr.store import MemoryStore
from sessionmgr.testing.mock_sdk import INTERRUPTED, Answered, MockSdk, with_sdk
from sessionmgr_adapters.codex import CodexAdapter, CodexOptions, CodexTool
from sessionmgr_adapters.codex.frames import (
    Answer,
    Asking,
    Failing,
    Frame,
    Hello,
    ItemEnded,
    ItemStarted,
    Limits,
    LimitsChanged,
    MessageDelta,
    Resolved,
    TokenCounts,
    TokensUsed,
    TokenUsage,
    TurnError,
    Unknown,
    Window,
)
from sessionmgr_adapters.codex.items import AgentMessage, FileChange, FileUpdate
from sessionmgr_adapters.codex.orders import Call, Reply
from tests.adapters.codex.mocked import (
    COMMAND,
    HELLO,
    TURN,
    Talk,
    begin,
    command,
    end,
    opened,
    opening,
    refusal,
    result,
    settled,
    text,
    thread_of,
)

Script = Callable[[Talk], Awaitable[None]]


@asynccontextmanager
async def manager_of(script: Script) -> AsyncGenerator[Manager, None]:
    async with (
        MockSdk(script) as sdk,
        open_manager(
            store=MemoryStore(),
            adapters={"codex": with_sdk(CodexAdapter, sdk)},
            environ={"HOME": "/nowhere"},
        ) as manager,
    ):
        yield manager


async def play(
    script: Script, prompt: str = "hi", mode: str = "default", **wishes: Unpack[Wishes]
) -> tuple[RunResult, list[AnyEvent]]:
    async with manager_of(script) as manager:
        session = await manager.open_session("codex", permission_mode=mode)
        run = await session.submit(prompt, **wishes)
        events = [event async for event in run]
        return await run.result(), events


def failure(found: tuple[RunResult, list[AnyEvent]]) -> tuple[FailureKind, str]:
    assert found[0].failure is not None, found[0]
    return found[0].failure.kind, found[0].failure.message


# --- before a turn -------------------------------------------------------------------------------


async def test_a_version_that_is_too_old_is_refused_by_name() -> None:
    async def old(it: Talk) -> None:
        it.says(Hello(user_agent="sessionmgr/0.144.4 (x)"))

    kind, message = failure(await play(old))
    assert kind == FailureKind.CONFIG_INVALID
    assert message == "Codex 0.144.4 is too old: 0.163.0 is the oldest"


async def test_a_sandbox_that_is_wider_than_asked_is_not_used() -> None:
    heard: list[str] = []

    async def wide(it: Talk) -> None:
        it.says(HELLO)
        for _ in range(2):
            call = await it.heard()
            assert isinstance(call, Call)
            heard.append(call.method)
            if call.method == "thread/start":
                answer = opened(call)
                wider = answer.result.replace(b'"readOnly"', b'"dangerFullAccess"')
                it.says(Answer(answer.call, answer.method, wider))
            else:
                params: dict[str, Json] = {
                    **call.params,
                    "sandboxPolicy": {"type": "dangerFullAccess"},
                }
                it.says(result(call, {}), settled(Call(0, "", params)))

    result_, events = await play(wide, mode="plan")
    assert failure((result_, events))[0] == FailureKind.PERMISSION_REFUSED
    assert "policy_violation" in [each.type for each in events]
    assert heard == ["thread/start", "thread/settings/update"]


@pytest.mark.parametrize("field", ["networkAccess", "writableRoots", "approvalPolicy"])
async def test_settings_that_allow_more_are_not_used(field: str) -> None:
    async def wide(it: Talk) -> None:
        it.says(HELLO)
        for _ in range(2):
            call = await it.heard()
            assert isinstance(call, Call)
            if call.method == "thread/start":
                it.says(opened(call))
                continue
            params = dict(call.params)
            sandbox = params["sandboxPolicy"]
            assert isinstance(sandbox, dict)
            wider: dict[str, Json] = {"networkAccess": True, "writableRoots": ["/"]}
            if field in wider:
                params["sandboxPolicy"] = {**sandbox, field: wider[field]}
            else:
                params["approvalPolicy"] = "untrusted"
            it.says(result(call, {}), settled(Call(0, "", params)))

    assert failure(await play(wide))[0] == FailureKind.PERMISSION_REFUSED


async def test_what_a_mode_is_to_codex_is_sent_for_each_thread() -> None:
    seen: list[tuple[Json, Json, Json]] = []

    async def look(it: Talk) -> None:
        call = await opening(it)
        before = [each for each in it.heard_so_far if isinstance(each, Call)]
        start = before[0].params
        updates = [each for each in before if each.method == "thread/settings/update"]
        sandbox = updates[0].params["sandboxPolicy"] if updates else {"type": "readOnly"}
        assert isinstance(sandbox, dict)
        seen.append((start["approvalPolicy"], start["sandbox"], sandbox["type"]))
        begin(it, call)
        end(it, thread_of(call))

    for mode in ("default", "accept_edits", "plan", "full_auto", "dangerously_skip_permissions"):
        assert (await play(look, mode=mode))[0].status == "completed"
    # Where a thread may write when it is opened, Codex notes that its directory is trusted.
    assert seen == [
        ("on-request", "read-only", "workspaceWrite"),
        ("on-request", "read-only", "workspaceWrite"),
        ("never", "read-only", "readOnly"),
        ("never", "read-only", "workspaceWrite"),
        ("never", "read-only", "dangerFullAccess"),
    ]


async def test_what_the_run_wants_is_said() -> None:
    calls: list[Call] = []

    async def look(it: Talk) -> None:
        calls.append(await opening(it))
        calls.extend(each for each in it.heard_so_far if isinstance(each, Call))
        begin(it, calls[0])
        end(it, thread_of(calls[0]))

    schema: dict[str, Json] = {"type": "object"}
    done, _ = await play(
        look,
        system_prompt="Be short.",
        model="gpt-x",
        effort="high",
        schema=schema,
        options={"config": {"web_search": "disabled"}, "mcp_servers": {"a": {"command": "b"}}},
    )
    assert done.failure is not None
    assert done.failure.kind == FailureKind.STRUCTURED_INVALID  # nothing was said at all
    turn, start = calls[0].params, calls[1].params
    assert (turn["effort"], turn["outputSchema"]) == ("high", schema)
    assert (start["model"], start["developerInstructions"]) == ("gpt-x", "Be short.")
    assert start["config"] == {
        "features.instant_interrupt": False,
        "shell_environment_policy.ignore_default_excludes": False,
        "mcp_servers.a": {"command": "b"},
        "web_search": "disabled",
    }


async def test_the_keys_of_models_are_kept_from_commands() -> None:
    configs: list[Json] = []

    async def look(it: Talk) -> None:
        it.says(Hello(user_agent=HELLO.user_agent, keys=("THE_WORD",), hidden=("MINE",)))
        call = await it.heard()
        assert isinstance(call, Call)
        configs.append(call.params["config"])
        it.says(refusal(call, "enough"))

    await play(look)
    assert isinstance(configs[0], dict)
    assert configs[0]["shell_environment_policy.exclude"] == ["MINE", "THE_WORD"]


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("no rollout found for thread id x", FailureKind.SESSION_NOT_FOUND),
        ("Invalid request: unknown variant", FailureKind.CONFIG_INVALID),
    ],
)
async def test_a_thread_that_is_not_opened_says_why(message: str, kind: FailureKind) -> None:
    async def refuse(it: Talk) -> None:
        it.says(HELLO)
        call = await it.heard()
        assert isinstance(call, Call)
        it.says(refusal(call, message))

    assert failure(await play(refuse))[0] == kind


async def test_a_busy_server_is_asked_again(autojump_clock: MockClock) -> None:
    times: list[float] = []

    async def busy(it: Talk) -> None:
        it.says(HELLO)
        for _ in range(2):
            call = await it.heard()
            assert isinstance(call, Call)
            times.append(trio.current_time())
            it.says(refusal(call, "Server overloaded", -32001))
        call = await it.heard()
        assert isinstance(call, Call)
        it.says(refusal(call, "no"))

    assert failure(await play(busy))[0] == FailureKind.CONFIG_INVALID
    assert times[1] - times[0] >= 0.1


async def test_a_call_that_is_not_answered_ends_the_run(autojump_clock: MockClock) -> None:
    async def deaf(it: Talk) -> None:
        it.says(HELLO)
        await trio.sleep_forever()

    kind, message = failure(await play(deaf, clocks=Clocks(start=0, idle=0)))
    assert "there was no answer within 60 seconds" in message
    assert kind == FailureKind.PROVIDER_ERROR


# --- a turn --------------------------------------------------------------------------------------


async def test_text_that_was_given_up_is_part_of_nothing() -> None:
    async def retry(it: Talk) -> None:
        call = await opening(it)
        thread = thread_of(call)
        begin(it, call)
        half: list[Frame] = [
            ItemStarted(thread_id=thread, item=AgentMessage(id="m")),
            MessageDelta(thread_id=thread, item_id="m", delta="Half"),
            Failing(
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


def usage(thread: str, turn: str, total: int, last: int) -> TokensUsed:
    return TokensUsed(
        thread_id=thread,
        turn_id=turn,
        token_usage=TokenUsage(
            total=TokenCounts(
                input_tokens=10 * total, cached_input_tokens=total, output_tokens=total
            ),
            last=TokenCounts(input_tokens=10 * last, cached_input_tokens=last, output_tokens=last),
        ),
    )


async def test_what_was_used_before_is_not_counted_again() -> None:
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


async def test_a_used_up_limit_says_when_it_is_over() -> None:
    async def limited(it: Talk) -> None:
        call = await opening(it)
        begin(it, call)
        window = Window(used_percent=100, resets_at=1_900_000_000)
        it.says(LimitsChanged(rate_limits=Limits(limit_id="codex", primary=window)))
        error = TurnError(message="You've hit it.", codex_error_info="usageLimitExceeded")
        end(it, thread_of(call), "failed", error)

    done, events = await play(limited)
    assert done.status == "rate_limited"
    assert done.failure is not None
    assert done.failure.retry_at == "2030-03-17T17:46:40.000Z"
    assert "rate_limit_updated" in [each.type for each in events]


async def test_what_nobody_knows_is_told_as_it_came() -> None:
    async def odd(it: Talk) -> None:
        call = await opening(it)
        begin(it, call)
        it.says(Unknown("thread/dreamed", {"threadId": thread_of(call)}, thread_of(call)))
        end(it, thread_of(call))

    done, events = await play(odd)
    assert done.status == "completed"
    assert "raw_received" in [each.type for each in events]


async def test_commands_that_still_run_are_ended_with_the_turn(autojump_clock: MockClock) -> None:
    async def leave(it: Talk) -> None:
        call = await opening(it)
        thread = thread_of(call)
        begin(it, call)
        it.says(ItemStarted(thread_id=thread, item=command("c1", "sleep 100")))
        it.says(ItemStarted(thread_id=thread, item=command("c2", "sleep 100")))
        end(it, thread)
        clean = await it.heard()
        assert isinstance(clean, Call)
        assert clean.method == "thread/backgroundTerminals/clean"
        it.says(result(clean, {}))
        it.says(ItemEnded(thread_id=thread, item=command("c1", "sleep 100", "failed")))

    done, events = await play(leave)
    assert done.status == "completed"
    ended = [each for each in events if isinstance(each, ToolCallFailed)]
    assert [(each.tool_call_id, each.synthetic is True) for each in ended] == [
        ("c1", False),
        ("c2", True),
    ]


async def test_a_cancel_interrupts_and_ends_what_runs() -> None:
    heard: list[object] = []

    async def busy(it: Talk) -> None:
        call = await opening(it)
        thread = thread_of(call)
        begin(it, call)
        it.says(ItemStarted(thread_id=thread, item=command("c1", "sleep 100")))
        heard.append(await it.heard())
        end(it, thread, "interrupted")
        clean = await it.heard()
        assert isinstance(clean, Call)
        heard.append(clean.method)
        it.says(result(clean, {}))
        it.says(ItemEnded(thread_id=thread, item=command("c1", "sleep 100", "failed")))

    async with manager_of(busy) as manager:
        session = await manager.open_session("codex")
        run = await session.submit("hi")
        async for event in run:
            if event.type == "tool_call_started":
                run.cancel()
        assert (await run.result()).status == "cancelled"
    assert heard == [INTERRUPTED, "thread/backgroundTerminals/clean"]


# --- messages meanwhile --------------------------------------------------------------------------


async def test_a_message_that_was_taken_and_not_heard_is_said_again() -> None:
    async def distracted(it: Talk) -> None:
        call = await opening(it)
        thread = thread_of(call)
        begin(it, call)
        it.says(*text(thread, "one"))
        steer = await it.heard()
        assert isinstance(steer, Call)
        assert (steer.method, steer.params["expectedTurnId"]) == ("turn/steer", TURN)
        it.says(result(steer, {"turnId": TURN}))
        end(it, thread)
        again = await it.heard()
        assert isinstance(again, Call)
        assert again.method == "turn/start"
        assert again.params["input"] == [{"type": "text", "text": "more", "text_elements": []}]
        begin(it, again, "turn-2")
        it.says(*text(thread, "two"))
        end(it, thread, turn="turn-2")

    async with manager_of(distracted) as manager:
        session = await manager.open_session("codex")
        run = await session.submit("hi")
        async for event in run:
            if isinstance(event, MessageReceived) and event.content == "one":
                follow_up = await run.append("more")
                assert follow_up.run is run
        done = await run.result()
    assert (done.status, done.text, done.turns) == ("completed", "two", 2)


async def test_a_message_for_later_is_a_run_of_its_own() -> None:
    prompts: list[Json] = []

    async def simple(it: Talk) -> None:
        call = await opening(it)
        prompts.append(call.params["input"])
        thread = thread_of(call)
        begin(it, call)
        it.says(*text(thread, "one"))
        await it.gate("on")
        end(it, thread)

    async with (
        MockSdk(simple) as sdk,
        open_manager(
            store=MemoryStore(), adapters={"codex": with_sdk(CodexAdapter, sdk)}
        ) as manager,
    ):
        session = await manager.open_session("codex")
        run = await session.submit("hi", options={"follow_up": "later"})
        await sdk.reached("on")
        follow_up = await run.append("more")
        assert follow_up.run is not run
        sdk.open_gate("on")
        assert (await follow_up.run.result()).status == "completed"
    assert len(prompts) == 2


# --- what it asks --------------------------------------------------------------------------------


async def ask(
    asking: Asking,
    mode: str = "default",
    before: ItemStarted | None = None,
    **wishes: Unpack[Wishes],
) -> object:
    """Return how a request is answered."""
    answers: list[object] = []

    async def asks(it: Talk) -> None:
        call = await opening(it)
        thread = thread_of(call)
        begin(it, call)
        if before is not None:
            it.says(before)
        it.says(asking)
        answers.append(await it.heard())
        if before is not None:
            it.says(ItemEnded(thread_id=thread, item=before.item))
        end(it, thread)

    await play(asks, mode=mode, **wishes)
    return answers[0]


async def test_with_nobody_to_ask_all_is_denied() -> None:
    for method in (COMMAND, "item/fileChange/requestApproval", "item/permissions/requestApproval"):
        answer = await ask(Asking(0, method, {"itemId": "c"}))
        assert isinstance(answer, Answered)
        assert isinstance(answer.decision, Deny)


async def test_a_request_that_nobody_knows_is_refused() -> None:
    answer = await ask(Asking(7, "attestation/generate", {}))
    assert isinstance(answer, Reply)
    assert (answer.id, answer.result) == (7, None)
    assert answer.error == "this host does not serve 'attestation/generate'"


def patch(path: str) -> ItemStarted:
    return ItemStarted(item=FileChange(id="c", changes=[FileUpdate(path)], status="inProgress"))


@pytest.mark.parametrize(("path", "granted"), [("a.txt", True), ("/etc/passwd", False)])
async def test_edits_inside_are_granted_where_edits_are_accepted(path: str, granted: bool) -> None:
    asking = Asking(0, "item/fileChange/requestApproval", {"itemId": "c"})
    answer = await ask(asking, mode="accept_edits", before=patch(path))
    assert isinstance(answer, Answered)
    assert isinstance(answer.decision, Allow) is granted


async def test_a_question_that_is_withdrawn_is_asked_no_more() -> None:
    async def withdrawn(it: Talk) -> None:
        call = await opening(it)
        begin(it, call)
        it.says(Asking(3, COMMAND, {"itemId": "c", "command": "ls"}))
        await it.gate("asked")
        it.says(Resolved(thread_id=thread_of(call), request_id=3))
        end(it, thread_of(call))

    async with (
        MockSdk(withdrawn) as sdk,
        open_manager(
            store=MemoryStore(), adapters={"codex": with_sdk(CodexAdapter, sdk)}
        ) as manager,
    ):
        asked = trio.Event()

        async def approve(_: ApprovalRequest) -> Decision:
            asked.set()
            await trio.sleep_forever()
            raise AssertionError

        session = await manager.open_session("codex", approve=approve)
        run = await session.submit("hi")
        await asked.wait()
        sdk.open_gate("asked")
        assert (await run.result()).status == "completed"
        heard = sdk.conversations[0].heard_so_far
        assert not any(isinstance(each, Answered) for each in heard)


async def weather(given: dict[str, Json]) -> Json:
    await trio.lowlevel.checkpoint()
    if "city" not in given:
        raise ValueError("which city?")
    return {"mild": given["city"]}


@pytest.mark.parametrize(
    ("mode", "arguments", "said", "success"),
    [
        ("default", {"city": "Rome"}, '{"mild":"Rome"}', True),
        ("default", {}, "ValueError: which city?", False),
        ("plan", {"city": "Rome"}, "the run only plans: nothing may be changed", False),
    ],
)
async def test_functions_of_the_caller_are_called(
    mode: str, arguments: Json, said: str, success: bool
) -> None:
    tool = CodexTool("weather", "Say what the weather is.", weather)
    params: dict[str, Json] = {"callId": "c", "tool": "weather", "arguments": arguments}
    answer = await ask(
        Asking(0, "item/tool/call", params), mode=mode, options=CodexOptions(tools=(tool,))
    )
    assert isinstance(answer, Reply)
    assert answer.result == {
        "contentItems": [{"type": "inputText", "text": said}],
        "success": success,
    }


# --- the end -------------------------------------------------------------------------------------


async def test_an_app_server_that_goes_fails_its_runs_which_can_go_on() -> None:
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
        ("{}", ["no schema"], FailureKind.CONFIG_INVALID),
    ],
)
async def test_output_by_a_schema_is_looked_at(
    said: str, schema: Json, kind: FailureKind | None
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
