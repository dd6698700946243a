"""The events of a session: messages, tool calls, usage, and what a turn leaves unfinished."""

from __future__ import annotations

import base64
from typing import TypeVar

import pytest

from sessionmgr.model import (
    CompactionCompleted,
    CompactionFailed,
    CompactionStarted,
    Cost,
    ErrorOccurred,
    Event,
    ImageReceived,
    Json,
    MessageReceived,
    MessageStreamed,
    PlanEntry,
    PlanUpdated,
    Provenance,
    RateLimitUpdated,
    RawReceived,
    ReasoningReceived,
    ReasoningStreamed,
    SessionStatsUpdated,
    TokenUsageUpdated,
    ToolCallCompleted,
    ToolCallFailed,
    ToolCallStarted,
    ToolCallUpdated,
    TurnCompleted,
    Usage,
    total_cost,
)
from sessionmgr.wire import UntypedFrame
from sessionmgr_adapters.acp import updates
from sessionmgr_adapters.acp.frames import (
    Acknowledged,
    OptionsChanged,
    PermissionRequest,
    PromptAccepted,
    PromptEnded,
    SessionMode,
    SessionModes,
    SessionOpened,
    SessionUpdate,
)
from sessionmgr_adapters.acp.normalise import (
    MAX_OUTPUT,
    begin_turn,
    close_turn,
    normalise,
    terminal_events,
)
from sessionmgr_adapters.acp.state import AcpState
from sessionmgr_adapters.acp.tool_calls import request_input
from sessionmgr_adapters.acp.updates import (
    AcpCost,
    AcpPlanEntry,
    AcpUpdate,
    AcpUsage,
    AgentChunk,
    AgentContent,
    AgentPlan,
    ContentBlock,
    ContextUpdate,
    StateUpdate,
    ThoughtChunk,
    ToolCallNews,
    ToolCallReport,
    ToolLocation,
)
from sessionmgr_adapters.acp.usage import token_usage

E = TypeVar("E", bound=Event)
PNG = base64.b64encode(b"\x89PNG").decode()
END = PromptEnded(stop_reason="end_turn")


@pytest.fixture
def state() -> AcpState:
    state = AcpState(session="s")
    begin_turn(state)
    return state


def play(state: AcpState, *given: AcpUpdate, session: str = "s") -> list[Event]:
    return [
        event
        for update in given
        for event in normalise(SessionUpdate(session_id=session, update=update), state)
    ]


def of_type(events: list[Event], wanted: type[E]) -> list[E]:
    return [each for each in events if isinstance(each, wanted)]


def text(words: str) -> ContentBlock:
    return ContentBlock(type="text", text=words)


def said(words: str, message_id: str | None = None, meta: Json = None) -> AgentChunk:
    return AgentChunk(content=text(words), message_id=message_id, meta=meta)


def thought(words: str) -> ThoughtChunk:
    return ThoughtChunk(content=text(words))


def content(words: str) -> tuple[Json, ...]:
    return ({"type": "content", "content": {"type": "text", "text": words}},)


# --- messages ------------------------------------------------------------------------------------


def test_a_message_is_complete_when_another_kind_follows(state: AcpState) -> None:
    events = play(state, thought("Let "), thought("me."), said("A"), said("B"))
    assert events == [
        ReasoningStreamed(delta="Let "),
        ReasoningStreamed(delta="me."),
        ReasoningReceived(content="Let me."),
        MessageStreamed(delta="A"),
        MessageStreamed(delta="B"),
    ]
    assert normalise(END, state) == [
        MessageReceived(content="AB"),
        TurnCompleted(stop_reason="end_turn"),
    ]
    assert state.text == "AB"
    assert state.turn.end == END


def test_a_message_is_complete_when_one_with_another_name_follows(state: AcpState) -> None:
    events = play(state, said("", "m1"), said("A", "m1"), said("B"), said("C", "m2"))
    assert of_type(events, MessageReceived) == [MessageReceived(content="AB", message_id="m1")]


def test_a_message_is_complete_when_a_tool_is_called(state: AcpState) -> None:
    call = ToolCallReport(tool_call_id="c", title="ls", status="in_progress")
    events = play(state, said("I look."), call, said("More."))
    assert [each.type for each in events] == [
        "message_streamed",
        "message_received",
        "tool_call_started",
        "message_streamed",
    ]


def test_news_of_a_known_call_does_not_cut_a_message(state: AcpState) -> None:
    play(state, ToolCallReport(tool_call_id="c", title="ls", status="in_progress"))
    play(state, said("A"), ToolCallNews(tool_call_id="c", status="in_progress"), said("B"))
    assert of_type(normalise(END, state), MessageReceived) == [MessageReceived(content="AB")]


def test_an_echo_of_the_prompt_gives_no_event(state: AcpState) -> None:
    assert play(state, updates.UserChunk(content=text("Do."))) == []
    assert play(state, updates.UserContent(message_id="m", content=(text("Do."),))) == []


def test_a_message_of_version_2_can_be_replaced(state: AcpState) -> None:
    def whole(words: str) -> AgentContent:
        return AgentContent(message_id="m", content=(text(words),))

    assert play(state, said("A", "m"), whole("AB")) == [
        MessageStreamed(delta="A", message_id="m"),
        MessageStreamed(delta="B", message_id="m"),
    ]
    assert play(state, whole("C"), AgentContent(message_id="m")) == []
    assert play(state, thought("x"))[0] == MessageReceived(content="C", message_id="m")
    assert of_type(play(state, whole("C")), MessageReceived) == []
    changed = [*play(state, whole("D")), *close_turn(state)]
    assert of_type(changed, MessageReceived) == [MessageReceived(content="D", message_id="m")]


def test_a_thought_of_version_2_can_be_whole(state: AcpState) -> None:
    whole = updates.ThoughtContent(message_id="t", content=(text("So."),))
    assert [*play(state, whole), *close_turn(state)] == [
        ReasoningStreamed(delta="So."),
        ReasoningReceived(content="So."),
    ]


def test_content_that_is_no_text(state: AcpState) -> None:
    image = ContentBlock(type="image", data=PNG, mime_type="image/png")
    audio = ContentBlock(type="audio", data="AA==", mime_type="audio/wav")
    link = ContentBlock(type="resource_link", uri="file:///a", name="a")
    resource = ContentBlock(type="resource", resource={"uri": "file:///b", "text": "B"})
    blob = ContentBlock(type="resource", resource={"uri": "file:///c", "blob": "AA=="})
    chunks = [AgentChunk(content=each) for each in (image, audio, link, resource, blob)]
    events = play(state, *chunks)
    assert [each.media_type for each in of_type(events, ImageReceived)] == ["image/png"]
    assert state.images.collect() == [b"\x89PNG"]
    [raw] = of_type(events, RawReceived)
    assert raw.frame == {"type": "audio", "data": "AA==", "mimeType": "audio/wav"}
    assert "".join(each.delta for each in of_type(events, MessageStreamed)) == (
        "file:///aBfile:///c"
    )
    whole = AgentContent(message_id="m", content=(text("x"), image))
    assert of_type(play(state, whole), ImageReceived) == []  # it is known already


# --- tool calls ----------------------------------------------------------------------------------


def test_a_call_starts_once_its_input_is_known(state: AcpState) -> None:
    first = ToolCallReport(
        tool_call_id="c", title="bash", kind="execute", status="pending", raw_input={"cwd": "/w"}
    )
    assert play(state, first) == []
    known: Json = {"command": "ls", "cwd": "/w"}
    news = ToolCallNews(tool_call_id="c", status="in_progress", title="ls", raw_input=known)
    started = ToolCallStarted(tool_call_id="c", tool_name="bash", tool_input=known)
    assert play(state, news, news) == [started]
    done = ToolCallNews(tool_call_id="c", status="completed", raw_output={"exit": 0})
    assert play(state, done, done) == [
        ToolCallCompleted(tool_call_id="c", tool_name="bash", tool_output={"exit": 0})
    ]
    assert state.calls == {}


def test_an_input_that_changes_later_is_in_the_result(state: AcpState) -> None:
    events = play(
        state,
        ToolCallReport(tool_call_id="c", name="Write", status="pending", raw_input={"path": "a"}),
        ToolCallNews(tool_call_id="c", raw_input={"path": "a", "content": "x"}),
        ToolCallNews(tool_call_id="c", status="failed", content=content("no")),
    )
    assert events == [
        ToolCallStarted(tool_call_id="c", tool_name="Write", tool_input={"path": "a"}),
        ToolCallFailed(
            tool_call_id="c",
            tool_name="Write",
            tool_input={"path": "a", "content": "x"},
            tool_output="no",
        ),
    ]


def test_an_input_can_be_streamed_as_content(state: AcpState) -> None:
    def news(words: str) -> ToolCallNews:
        return ToolCallNews(
            tool_call_id="c", status="in_progress", title="Read: a", content=content(words)
        )

    first = ToolCallReport(
        tool_call_id="c", status="in_progress", title="Read", content=content("")
    )
    assert play(state, first, news('{"path"'), news('{"path": "a"}'), news('{"path": "a"}')) == [
        ToolCallStarted(tool_call_id="c", tool_name="Read", tool_input={"path": "a"})
    ]
    assert play(state, news("one"), news("one two"), news("else")) == [
        ToolCallUpdated(tool_call_id="c", output_delta="one"),
        ToolCallUpdated(tool_call_id="c", output_delta=" two"),
    ]


def test_a_call_may_appear_first_with_its_result(state: AcpState) -> None:
    events = play(state, ToolCallNews(tool_call_id="c", title="read", status="completed"))
    assert [each.type for each in events] == ["tool_call_started", "tool_call_completed"]


@pytest.mark.parametrize(
    ("update", "name"),
    [
        (ToolCallReport(tool_call_id="c", name="Bash", title="ls -l"), "Bash"),
        (ToolCallReport(tool_call_id="c", meta={"claudeCode": {"toolName": "Read"}}), "Read"),
        (
            ToolCallReport(tool_call_id="c", meta={"goose": {"toolCall": {"toolName": "shell"}}}),
            "shell",
        ),
        (ToolCallReport(tool_call_id="read_file__read_file_1_0", title="a b"), "read_file"),
        (ToolCallReport(tool_call_id="write_file__call_1_0", title="a b"), "write_file"),
        (ToolCallReport(tool_call_id="c", title="bash", kind="execute"), "bash"),
        (ToolCallReport(tool_call_id="c", title="Editing files", kind="edit"), "edit"),
        (ToolCallReport(tool_call_id="c", title="Ask the user", kind="other"), "Ask the user"),
        (ToolCallReport(tool_call_id="c"), "other"),
    ],
)
def test_a_call_has_the_name_of_its_tool(
    state: AcpState, update: ToolCallReport, name: str
) -> None:
    play(state, update)
    [started] = of_type(close_turn(state), ToolCallStarted)
    assert started.tool_name == name


def test_a_call_without_an_input_is_described(state: AcpState) -> None:
    diff: Json = {"type": "diff", "path": "/w/a", "newText": "x"}
    call = ToolCallReport(
        tool_call_id="c",
        title="Edit a",
        status="in_progress",
        locations=(ToolLocation(path="/w/a", line=3),),
        content=(diff,),
    )
    [started] = of_type(play(state, call), ToolCallStarted)
    assert started.tool_input == {"title": "Edit a", "paths": ["/w/a"], "content": [diff]}


def test_content_that_is_no_text_is_the_output(state: AcpState) -> None:
    diff: Json = {"type": "diff", "path": "/w/a", "newText": "x"}
    image: Json = {"type": "image", "data": PNG, "mimeType": "image/png"}
    items: tuple[Json, ...] = (diff, {"type": "content", "content": image})
    events = play(state, ToolCallNews(tool_call_id="c", status="completed", content=items))
    [received] = of_type(events, ImageReceived)
    [done] = of_type(events, ToolCallCompleted)
    blob: Json = {"type": "image", "media_type": "image/png", "blob": received.blob}
    assert done.tool_output == [diff, blob]


def test_null_removes_content_and_locations(state: AcpState) -> None:
    first = ToolCallReport(
        tool_call_id="c",
        status="in_progress",
        raw_input={"a": 1},
        content=content("x"),
        locations=(ToolLocation(path="/a"),),
    )
    play(state, first, ToolCallNews(tool_call_id="c", content=None, locations=None, title=None))
    call = state.calls["c"]
    assert (call.content, call.locations, call.input) == ([], (), {"a": 1})


def test_a_turn_closes_the_calls_that_it_leaves_open(state: AcpState) -> None:
    play(state, ToolCallReport(tool_call_id="c", title="Write", status="pending", raw_input={}))
    events = normalise(END, state)
    assert events == [
        ToolCallStarted(tool_call_id="c", tool_name="Write", tool_input={}),
        ToolCallFailed(tool_call_id="c", tool_name="Write", synthetic=True),
        TurnCompleted(stop_reason="end_turn"),
    ]
    assert play(state, ToolCallNews(tool_call_id="c", status="completed")) == []
    assert close_turn(state) == []


def test_output_of_terminals_and_extensions(state: AcpState) -> None:
    shown: tuple[Json, ...] = ({"type": "terminal", "terminalId": "t"},)
    play(state, ToolCallReport(tool_call_id="c", status="in_progress", content=shown))
    assert terminal_events("t", "one\n", state) == [
        ToolCallUpdated(tool_call_id="c", output_delta="one\n")
    ]
    meta: Json = {"terminal_output_delta": {"terminal_id": "t", "data": "two\n"}}
    assert play(state, ToolCallNews(tool_call_id="c", meta=meta)) == [
        ToolCallUpdated(tool_call_id="c", output_delta="two\n")
    ]
    [done] = play(state, ToolCallNews(tool_call_id="c", status="completed"))
    assert isinstance(done, ToolCallCompleted)
    assert done.tool_output == "one\ntwo\n"
    assert state.terminals == {}


def test_live_output_of_an_extension(state: AcpState) -> None:
    chunks: Json = [{"stream": "stderr", "output": "err\n"}, 5]
    meta: Json = {"toolNotification": {"type": "live_output", "params": {"chunks": chunks}}}
    play(state, ToolCallReport(tool_call_id="c", title="sh", status="in_progress"))
    assert play(state, ToolCallNews(tool_call_id="c", meta=meta)) == [
        ToolCallUpdated(tool_call_id="c", output_delta="err\n")
    ]


def test_terminals_of_the_agent(state: AcpState) -> None:
    def data(words: str) -> str:
        return base64.b64encode(words.encode()).decode()

    shown: tuple[Json, ...] = ({"type": "terminal", "terminalId": "t"},)
    play(state, ToolCallNews(tool_call_id="c", status="in_progress", content=shown))
    first = updates.TerminalChunk(terminal_id="t", data=data("one"))
    whole = updates.TerminalNews(terminal_id="t", output={"data": data("one two")})
    other = updates.TerminalNews(terminal_id="t", output={"data": data("three")})
    ignored = (
        updates.TerminalNews(terminal_id="t", command="ls"),
        updates.TerminalChunk(terminal_id="t", data="?"),
        updates.TerminalChunk(terminal_id="of another call", data=data("x")),
    )
    deltas = of_type(play(state, first, whole, other, *ignored), ToolCallUpdated)
    assert [each.output_delta for each in deltas] == ["one", " two"]
    assert state.terminals["t"] == "three"
    terminal_events("t", "x" * MAX_OUTPUT, state)
    assert state.terminals["t"] == "x" * MAX_OUTPUT


def test_content_can_come_in_items(state: AcpState) -> None:
    play(state, ToolCallNews(tool_call_id="c", title="sh", status="in_progress", raw_input={}))
    [item] = content("out")
    chunk = updates.ToolContentChunk(tool_call_id="c", content=item)
    assert play(state, chunk) == [ToolCallUpdated(tool_call_id="c", output_delta="out")]
    assert play(state, updates.ToolContentChunk(tool_call_id="?", content=item)) == []


# --- requests for permission ---------------------------------------------------------------------


def asks(call: updates.ToolCallUpsert | None) -> PermissionRequest:
    return PermissionRequest(session_id="s", name="1", options=(), tool_call=call)


def test_a_call_may_appear_first_as_a_request(state: AcpState) -> None:
    call = updates.ToolCallUpsert(
        tool_call_id="c", title="ls -l", kind="execute", content=content("in /w")
    )
    assert normalise(asks(call), state) == [
        ToolCallStarted(tool_call_id="c", tool_name="execute", tool_input={"title": "ls -l"})
    ]
    assert normalise(asks(call), state) == []
    assert request_input(call, state.calls["c"]) == {"title": "ls -l"}
    assert normalise(asks(None), state) == []


def test_a_request_adds_to_the_input_that_is_known(state: AcpState) -> None:
    play(state, ToolCallReport(tool_call_id="c", title="bash", raw_input={"cwd": "/w"}))
    call = updates.ToolCallUpsert(tool_call_id="c", title="ls", raw_input={"command": "ls"})
    [started] = of_type(normalise(asks(call), state), ToolCallStarted)
    assert started.tool_name == "bash"
    assert started.tool_input == {"cwd": "/w", "command": "ls"}


def test_what_is_approved_is_what_the_request_says(state: AcpState) -> None:
    play(state, ToolCallReport(tool_call_id="c", title="w", raw_input={"path": "a", "text": "x"}))
    call = updates.ToolCallUpsert(tool_call_id="c", raw_input={"path": "b"})
    normalise(asks(call), state)
    assert state.calls["c"].input == {"path": "a", "text": "x"}
    assert request_input(call, state.calls["c"]) == {"path": "b", "text": "x"}
    bare = updates.ToolCallUpsert(tool_call_id="c")
    assert request_input(bare, state.calls["c"]) == {"path": "a", "text": "x"}
    assert request_input(bare, None) == {}


# --- usage ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (AcpUsage(input_tokens=5, output_tokens=2), Usage(input=5, output=2)),
        (  # everything apart
            AcpUsage(
                input_tokens=62,
                output_tokens=7,
                thought_tokens=3,
                cached_read_tokens=40,
                total_tokens=112,
            ),
            Usage(input=62, cached_input=40, output=10, reasoning=3),
        ),
        (  # cached tokens are input, thoughts are apart
            AcpUsage(
                input_tokens=100,
                output_tokens=7,
                thought_tokens=3,
                cached_read_tokens=40,
                total_tokens=110,
            ),
            Usage(input=60, cached_input=40, output=10, reasoning=3),
        ),
        (  # cached tokens are apart, thoughts are output
            AcpUsage(
                input_tokens=60,
                output_tokens=10,
                thought_tokens=3,
                cached_read_tokens=30,
                cached_write_tokens=10,
                total_tokens=110,
            ),
            Usage(input=60, cached_input=30, cache_write=10, output=10, reasoning=3),
        ),
        (  # cached tokens are input, thoughts are output
            AcpUsage(
                input_tokens=100,
                output_tokens=10,
                thought_tokens=3,
                cached_read_tokens=40,
                total_tokens=110,
            ),
            Usage(input=60, cached_input=40, output=10, reasoning=3),
        ),
        (AcpUsage(input_tokens=-1, output_tokens=1e300), Usage()),
    ],
)
def test_the_total_tells_what_numbers_include(given: AcpUsage, wanted: Usage) -> None:
    assert token_usage(given) == wanted


def test_the_usage_of_a_turn_is_in_its_end(state: AcpState) -> None:
    end = PromptEnded(stop_reason="end_turn", usage=AcpUsage(input_tokens=5, output_tokens=2))
    assert normalise(end, state) == [
        TokenUsageUpdated(usage=Usage(input=5, output=2)),
        TurnCompleted(stop_reason="end_turn"),
    ]


def test_a_quota_is_the_usage_of_a_turn(state: AcpState) -> None:
    meta: Json = {"quota": {"token_count": {"input_tokens": 5, "output_tokens": 2}}}
    events = normalise(PromptEnded(stop_reason="end_turn", meta=meta), state)
    assert events[0] == TokenUsageUpdated(usage=Usage(input=5, output=2))


def test_usage_that_is_reported_twice_counts_once(state: AcpState) -> None:
    meta: Json = {"usage": {"inputTokens": 5, "outputTokens": 2, "totalTokens": 7}}
    first = play(state, said("", meta=meta))
    end = PromptEnded(stop_reason="end_turn", usage=AcpUsage(input_tokens=8, output_tokens=2))
    assert [
        *of_type(first, TokenUsageUpdated),
        *of_type(normalise(end, state), TokenUsageUpdated),
    ] == [
        TokenUsageUpdated(usage=Usage(input=5, output=2)),
        TokenUsageUpdated(usage=Usage(input=3)),
    ]


def context(cost: float | None, currency: str = "USD") -> ContextUpdate:
    known = None if cost is None else AcpCost(amount=cost, currency=currency)
    return ContextUpdate(used=10, size=100, cost=known)


def test_the_context_is_reported_when_it_changes(state: AcpState) -> None:
    assert play(state, context(None), context(None)) == [
        SessionStatsUpdated(context_used=10, context_window=100)
    ]


def test_the_cost_of_a_run_is_the_increase_of_that_of_its_session(state: AcpState) -> None:
    events = play(state, context(0.5), context(0.5), context(0.75), context(0.25))
    costs = of_type(events, TokenUsageUpdated)
    assert [each.cost for each in costs] == [0.5, 0.25, 0.25]  # at last it counts anew
    assert {each.provenance for each in costs} == {Provenance.REPORTED}


def test_the_cost_of_tokens_that_is_reported_apart_is_known(state: AcpState) -> None:
    end = PromptEnded(stop_reason="end_turn", usage=AcpUsage(input_tokens=5))
    events = [*play(state, context(0.5)), *normalise(end, state)]
    assert of_type(events, TokenUsageUpdated) == [
        TokenUsageUpdated(usage=Usage(), cost=0.5, provenance=Provenance.REPORTED),
        TokenUsageUpdated(usage=Usage(input=5), cost=0.0, provenance=Provenance.REPORTED),
    ]


def test_the_cost_of_earlier_runs_is_not_counted() -> None:
    state = AcpState(session="s", is_replaying=True, is_resumed=True)
    assert play(state, context(2.0)) == []
    state.is_replaying = False
    begin_turn(state)
    [cost] = of_type(play(state, context(2.5)), TokenUsageUpdated)
    assert cost.cost == 0.5


def test_a_cost_of_unknown_origin_is_partial() -> None:
    state = AcpState(session="s", is_resumed=True)
    begin_turn(state)
    end = PromptEnded(stop_reason="end_turn", usage=AcpUsage(input_tokens=5))
    events = [*play(state, context(2.0), context(2.5)), *normalise(end, state)]
    first, second, last = of_type(events, TokenUsageUpdated)
    assert (first.cost, first.provenance) == (0.0, Provenance.PARTIAL)
    assert (second.cost, last.cost) == (0.5, 0.0)
    costs = [Cost(usd=each.cost, provenance=each.provenance) for each in (first, second, last)]
    assert total_cost(costs) == Cost(usd=0.5, provenance=Provenance.PARTIAL)


def test_a_cost_in_another_currency_is_reported_once(state: AcpState) -> None:
    events = play(state, context(1.0, "EUR"), context(2.0, "EUR"))
    [warning] = of_type(events, ErrorOccurred)
    assert "EUR" in warning.failure.message
    assert of_type(events, TokenUsageUpdated) == []


def test_a_rate_limit_is_reported_when_it_changes(state: AcpState) -> None:
    limit: Json = {
        "status": "allowed_warning",
        "rateLimitType": "five_hour",
        "resetsAt": 1767225600,
        "utilization": 0.9,
    }
    update = ContextUpdate(used=1, size=2, meta={"_player/rateLimit": limit})
    assert of_type(play(state, update, update), RateLimitUpdated) == [
        RateLimitUpdated(
            bucket="five_hour",
            state="allowed_warning",
            resets_at="2026-01-01T00:00:00.000Z",
            utilisation=0.9,
        )
    ]
    odd = ContextUpdate(used=1, size=2, meta={"_claude/rateLimit": {"resetsAt": "soon"}})
    [unknown] = of_type(play(state, odd), RateLimitUpdated)
    assert (unknown.bucket, unknown.state, unknown.resets_at) == ("unknown", "unknown", None)


# --- the session ---------------------------------------------------------------------------------


def test_the_plan_is_reported_whole(state: AcpState) -> None:
    entry = AcpPlanEntry(content="one", status="completed", priority="high")
    assert play(state, AgentPlan(entries=(entry,)), updates.PlanRemoved(plan_id="p")) == [
        PlanUpdated(entries=(PlanEntry(content="one", status="completed", priority="high"),)),
        PlanUpdated(entries=()),
    ]


def test_notices_are_warnings_and_errors(state: AcpState) -> None:
    events = play(
        state,
        updates.NoticeUpdate(severity="warning", title="Low", description="Disk"),
        updates.NoticeUpdate(severity="error", title="Bad"),
        updates.NoticeUpdate(severity="info", title="Hello"),
    )
    errors = of_type(events, ErrorOccurred)
    assert [(each.severity, each.failure.message) for each in errors] == [
        ("warning", "Low: Disk"),
        ("error", "Bad"),
    ]
    assert events[2] == RawReceived(frame={"notice": "Hello", "severity": "info"})


def test_a_compaction_starts_once_and_ends(state: AcpState) -> None:
    def compaction(name: str, status: str, error: str | None = None) -> updates.CompactionUpdate:
        return updates.CompactionUpdate(compaction_id=name, status=status, error=error)

    events = play(
        state,
        *(compaction("a", "in_progress"), compaction("a", "in_progress")),
        updates.CompactionChunk(compaction_id="a", content=text("Summary")),
        *(compaction("a", "completed"), compaction("b", "in_progress")),
        compaction("b", "failed", "too long"),
        *(compaction("c", "cancelled"), compaction("d", "in_progress")),
    )
    assert [each.type for each in events] == [
        *("compaction_started", "compaction_completed", "compaction_started"),
        *("compaction_failed", "error_occurred", "compaction_failed", "compaction_started"),
    ]
    assert of_type(events, CompactionStarted)
    assert of_type(events, CompactionCompleted)
    assert close_turn(state) == [CompactionFailed()]


def test_what_gives_no_event(state: AcpState) -> None:
    assert (
        play(
            state,
            updates.CommandsUpdate(available_commands=({"name": "init"},)),
            updates.SessionInfoUpdate(title="A title"),
            updates.SubagentUpdate(session_id="child", title="A child"),
            updates.SessionMessage(message_id="m"),
        )
        == []
    )
    assert normalise(Acknowledged(method="session/set_mode"), state) == []


def test_what_is_unknown_is_carried(state: AcpState) -> None:
    assert play(state, updates.UnknownUpdate(value={"x": 1})) == [RawReceived(frame={"x": 1})]
    assert normalise(UntypedFrame({"y": 1}, "unknown"), state) == [RawReceived(frame={"y": 1})]


def test_modes_and_options_are_kept(state: AcpState) -> None:
    modes = SessionModes(current="plan", available=(SessionMode(id="plan"),))
    option = updates.ConfigOption(id="mode", category="mode", value="plan")
    opened = SessionOpened(method="session/new", session_id="n", modes=modes, options=(option,))
    state.session = ""
    assert normalise(opened, state) == []
    assert (state.session, state.mode, state.modes) == ("n", "plan", modes)
    assert state.option("mode") == option
    assert state.option("model") is None
    changed = updates.ConfigOption(id="mode", category="mode", value="auto")
    play(state, updates.ModeUpdate(current_mode_id="auto"), session="n")
    play(state, updates.ConfigUpdate(options=(changed,)), session="n")
    assert (state.mode, state.option("mode")) == ("auto", changed)
    normalise(OptionsChanged(options=(option,)), state)
    assert state.option("mode") == option
    normalise(SessionOpened(method="session/load"), state)
    assert (state.session, state.is_resumed, state.option("mode")) == ("n", True, option)


def test_a_replay_gives_no_events(state: AcpState) -> None:
    state.is_replaying = True
    call = ToolCallReport(tool_call_id="c", title="ls", status="in_progress")
    assert play(state, said("Old."), call, updates.ModeUpdate(current_mode_id="plan")) == []
    assert terminal_events("t", "old", state) == []
    assert (state.mode, state.message, state.calls) == ("plan", None, {})


def test_updates_of_a_sub_agent_name_it(state: AcpState) -> None:
    call = ToolCallReport(tool_call_id="c", title="ls", status="in_progress")
    events = play(state, said("Hi."), call, context(0.5), session="child")
    assert {each.parent_tool_call_id for each in events} == {"child"}
    assert [each.type for each in events] == [
        *("message_streamed", "message_received", "tool_call_started", "token_usage_updated"),
    ]
    end = normalise(END, state)
    assert [(each.type, each.parent_tool_call_id == "child") for each in end] == [
        ("tool_call_failed", True),
        ("turn_completed", False),
    ]
    assert state.text == ""


# --- states of version 2 -------------------------------------------------------------------------


def test_an_idle_state_ends_a_turn_that_has_begun(state: AcpState) -> None:
    idle = StateUpdate(
        state="idle",
        stop_reason="end_turn",
        usage=AcpUsage(input_tokens=5),
        background=({"type": "terminal", "terminalId": "t"},),
    )
    assert play(state, idle) == []
    play(state, StateUpdate(state="running"), said("Hi."))
    assert play(state, idle) == [
        MessageReceived(content="Hi."),
        TokenUsageUpdated(usage=Usage(input=5)),
        TurnCompleted(stop_reason="end_turn", open_tasks=1),
    ]
    assert state.turn.end == idle
    assert play(state, idle) == []


def test_a_call_in_the_background_stays_open(state: AcpState) -> None:
    play(state, ToolCallNews(tool_call_id="c", title="sh", status="in_progress", raw_input={}))
    background: tuple[Json, ...] = ({"type": "tool_call", "toolCallId": "c"},)
    play(state, StateUpdate(state="idle", stop_reason="end_turn", background=background))
    assert "c" in state.calls
    [done] = play(state, ToolCallNews(tool_call_id="c", status="completed"))
    assert isinstance(done, ToolCallCompleted)


def test_a_sub_agent_in_the_background_keeps_its_calls(state: AcpState) -> None:
    call = ToolCallNews(tool_call_id="c", title="sh", status="in_progress", raw_input={})
    play(state, StateUpdate(state="running"))
    play(state, call, session="child")
    background: tuple[Json, ...] = ({"type": "subagent", "sessionId": "child"},)
    [end] = play(state, StateUpdate(state="idle", background=background))
    assert isinstance(end, TurnCompleted)
    assert end.open_tasks == 1
    [done] = play(state, ToolCallNews(tool_call_id="c", status="completed"), session="child")
    assert isinstance(done, ToolCallCompleted)
    assert done.parent_tool_call_id == "child"


def test_a_repeated_idle_state_counts_no_usage_again(state: AcpState) -> None:
    idle = StateUpdate(state="idle", stop_reason="end_turn", usage=AcpUsage(input_tokens=5))
    play(state, StateUpdate(state="running"), said("Hi."), idle)
    assert play(state, said("From the background."), idle) == [
        MessageStreamed(delta="From the background."),
    ]


def test_a_state_or_a_message_of_the_user_begins_the_next_turn(state: AcpState) -> None:
    idle, running = StateUpdate(state="idle"), StateUpdate(state="running")
    play(state, running, said("Hi."), idle)
    first = state.turn
    play(state, running, running)
    second = state.turn
    assert (first.end, second.end, second.is_running) == (idle, None, True)
    play(state, idle, updates.UserContent(message_id="m"))
    assert state.turn is not second
    third = state.turn
    play(state, running, idle)
    assert normalise(PromptAccepted(message_id="m"), state) == []
    assert state.turn is third  # the message was in the conversation already
    normalise(PromptAccepted(message_id="n"), state)
    assert state.turn is not third


def test_the_end_of_work_in_the_background_is_noted(state: AcpState) -> None:
    work: Json = {"type": "terminal", "terminalId": "t"}
    able = updates.TerminalNews(terminal_id="t", capabilities={"cancel": {}})
    play(state, StateUpdate(state="running", background=(work,)), able)
    assert state.cancellable_work() == [("t", work)]
    assert state.turn.end is None
    play(state, updates.TerminalNews(terminal_id="t"))
    assert state.cancellable == {"t"}
    play(state, updates.TerminalNews(terminal_id="t", capabilities=None))
    assert state.cancellable_work() == []
    play(state, StateUpdate(state="idle"))
    assert state.turn.has_background_ended
    assert state.background == ()


def test_an_error_of_the_agents_model_marks_the_turn(state: AcpState) -> None:
    meta: Json = {"player": {"threadStatus": {"type": "systemError"}}}
    assert play(state, updates.SessionInfoUpdate(meta=meta)) == []
    assert state.turn.has_error
    begin_turn(state)
    assert not state.turn.has_error
