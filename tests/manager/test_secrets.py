"""Secrets in a run's environment are not stored, whichever run of the session prints them."""

from collections.abc import Callable, Iterable
from itertools import combinations, pairwise

import pytest
import trio
from hypothesis import given, strategies as st
from trio.testing import MockClock

from sessionmgr.manager import Clocks
from sessionmgr.manager.delta_redaction import RunStreams, StreamKey, stream_key
from sessionmgr.model import (
    Event,
    MessageReceived,
    MessageStreamed,
    OutputReceived,
    ProviderSessionUpdated,
    ReasoningReceived,
    ReasoningStreamed,
    RetryScheduled,
    RunCompleted,
    ToolCallCompleted,
    ToolCallUpdated,
    TurnCompleted,
)
from sessionmgr.process import EnvironmentVariableInvalid
from sessionmgr.store.redaction import REDACTED, Redactor
from sessionmgr.testing.scripted_provider import Fail, Hang, Say, Tool
from tests.manager.harness import ManagerHarness, events, open_harness, run_scripted

SECRET = "hunter2-and-more"
REDACTOR = Redactor([SECRET])


async def bodies(house: ManagerHarness, session_id: str) -> bytes:
    page = await house.store.events(session_id)
    return b"".join(row.body for row in page.rows)


async def test_what_a_run_was_given_is_hidden_in_what_follows_it(
    autojump_clock: MockClock,
) -> None:
    async with open_harness() as house:
        session = await house.manager.open_session("actor")
        run = await session.submit(run_scripted(Say(text=SECRET)), env={"MY_API_KEY": SECRET})
        await run.result()
        await trio.sleep(60)  # the session sleeps, and has no runs in memory
        follow_up = await run.append(run_scripted(Say(text=SECRET)))
        await follow_up.run.result()
        assert SECRET.encode() not in await bodies(house, session.id)


async def test_a_secret_is_in_no_result_and_in_no_event_of_who_follows_a_run(
    autojump_clock: MockClock,
) -> None:
    async with open_harness() as house:
        session = await house.manager.open_session("actor")
        script = run_scripted(
            Say(text=f"key {SECRET}"), Tool(name=SECRET), Fail(message=f"no {SECRET}")
        )
        run = await session.submit(script, env={"MY_API_KEY": SECRET})
        result = await run.result()
        assert (result.failure and result.failure.message) == f"no {REDACTED}"
        assert result.text == f"key {REDACTED}"
        told = [*await events(run), result, *await house.manager.settled(session.id)]
        assert SECRET not in str(told)
        assert SECRET not in str(await house.manager.result(run.id))


async def test_variables_among_the_options_are_hidden_and_refused_as_others_are() -> None:
    async with open_harness() as house:
        session = await house.manager.open_session("shell", permission_mode="full_auto")
        run = await session.submit(
            "printenv MY_API_KEY MY_OTHER_KEY",
            env={"MY_API_KEY": SECRET},
            options={"env": {"MY_API_KEY": "not this", "MY_OTHER_KEY": SECRET[::-1]}},
        )
        result = await run.result()
        assert result.text == "[redacted]\n[redacted]\n"
        with pytest.raises(EnvironmentVariableInvalid, match="CLAUDECODE"):
            await session.submit("env", options={"env": {"CLAUDECODE": "1"}})


async def joined(house: ManagerHarness, run_id: str, name: str = "message_streamed") -> str:
    """Return the joined deltas of a run."""
    pieces = [event async for event in house.manager.events(run_id) if event.type == name]
    return "".join(
        getattr(each, "delta", "") or getattr(each, "output_delta", "") for each in pieces
    )


@pytest.mark.parametrize("deltas", [2, 3, 5, 9, 30])
async def test_a_secret_that_is_streamed_in_pieces_is_nowhere_when_its_run_is_cut(
    autojump_clock: MockClock, deltas: int
) -> None:
    said = f"The key is {SECRET} indeed"
    async with open_harness(clocks=Clocks(deadline=5)) as house:
        session = await house.manager.open_session("actor")
        script = run_scripted(Say(text=said, deltas=deltas, whole=False), Hang())
        run = await session.submit(script, env={"MY_API_KEY": SECRET})
        seen = "".join([getattr(event, "delta", "") async for event in run])
        assert seen == (await run.result()).text == "The key is [redacted] indeed"
        assert await joined(house, run.id) == seen
        assert (await house.manager.result(run.id)).text == seen


async def test_what_is_held_back_when_a_run_is_cut_is_stored_before_its_end(
    autojump_clock: MockClock,
) -> None:
    async with open_harness(clocks=Clocks(deadline=5)) as house:
        session = await house.manager.open_session("actor")
        script = run_scripted(Say(text=f"It is {SECRET[:7]}", deltas=3, whole=False), Hang())
        run = await session.submit(script, env={"MY_API_KEY": SECRET})
        await trio.sleep(1)
        assert await joined(house, run.id) == "It is "
        assert (await run.result()).text == f"It is {SECRET[:7]}"
        assert await joined(house, run.id) == f"It is {SECRET[:7]}"
        names = [event.type async for event in run]
        assert names[-3:] == ["message_streamed", "turn_completed", "run_timed_out"]


DELTAS: dict[str, Callable[[str], Event]] = {
    "message": lambda text: MessageStreamed(delta=text, message_id="m"),
    "reasoning": lambda text: ReasoningStreamed(delta=text),
    "tool": lambda text: ToolCallUpdated(tool_call_id="t", output_delta=text),
    "another tool": lambda text: ToolCallUpdated(tool_call_id="u", output_delta=text),
    "a sub-agent": lambda text: MessageStreamed(delta=text, parent_tool_call_id="t"),
    "stderr": lambda text: OutputReceived(stream="stderr", text=text),
}
ENDS: tuple[Event, ...] = (
    MessageReceived(content="all of it", message_id="m"),
    ReasoningReceived(content="all of it"),
    ToolCallCompleted(tool_call_id="t", tool_name="sh"),
    MessageReceived(content="all of it", parent_tool_call_id="t"),
    MessageReceived(content="without a name"),
    RetryScheduled(attempt=1, delay=1.0, by="provider"),
    TurnCompleted(),
    RunCompleted(),
    ProviderSessionUpdated(provider_session_id="p"),
)
TEXT = st.lists(
    st.sampled_from([SECRET, SECRET[:6], SECRET[6:], "hunter", "h", " ", "sk-", "and"]), max_size=3
).map("".join)


DELTA = st.tuples(st.sampled_from(sorted(DELTAS)), TEXT)
CUTS = st.lists(st.integers(1, 12), max_size=4)


@given(said=st.lists(DELTA, max_size=12), cuts=CUTS)
def test_of_streams_that_come_in_turn_each_is_redacted_as_a_whole(
    said: list[tuple[str, str]], cuts: list[int]
) -> None:
    events = [*(DELTAS[name](text) for name, text in said), RunCompleted()]
    found = redacted(events, cuts)
    for key in filter(None, map(stream_key, events)):
        assert text_of(found, key) == REDACTOR.text.redact(text_of(events, key))
        assert SECRET not in text_of(found, key)


def test_a_private_key_on_stderr_is_nowhere_though_its_lines_come_apart() -> None:
    lines = ("-----BEGIN PRIVATE KEY-----\n", "MIIE\n", "-----END PRIVATE KEY-----\n", "after\n")
    events = [*map(DELTAS["stderr"], lines), RunCompleted()]
    found = redacted(events, [1, 2, 3, 4])
    assert text_of(found, (OutputReceived, None, "stderr")) == "[redacted]\nafter\n"


@given(said=st.lists(DELTA | st.sampled_from(ENDS), max_size=12), cuts=CUTS)
def test_nothing_is_lost_where_streams_end(
    said: list[Event | tuple[str, str]], cuts: list[int]
) -> None:
    events = [DELTAS[each[0]](each[1]) if isinstance(each, tuple) else each for each in said]
    events.append(RunCompleted())
    found = redacted(events, cuts)
    ends = [each for each in found if stream_key(each) is None]
    assert ends == [each for each in events if stream_key(each) is None]
    for key in filter(None, map(stream_key, events)):
        if all(REDACTOR.text.redact(text) == text for text in texts_in_a_row(events, key)):
            assert text_of(found, key) == text_of(events, key)


def redacted(events: list[Event], cuts: list[int]) -> list[Event]:
    """Return a run's stored events after these reads."""
    streams, found = RunStreams(), list[Event]()
    places = sorted({0, len(events), *(each for each in cuts if each < len(events))})
    for begin, end in pairwise(places):
        some = events[begin:end]
        found += streams.redact(some, set(map(type, some)), REDACTOR)
    assert len(streams) == 0
    return found


def text_of(events: Iterable[Event], key: StreamKey) -> str:
    deltas = [each for each in events if stream_key(each) == key]
    fields = ("delta", "output_delta", "text")
    return "".join(getattr(each, field, "") for each in deltas for field in fields)


def texts_in_a_row(events: Iterable[Event], key: StreamKey) -> list[str]:
    """Return the joined texts of a stream's deltas."""
    deltas = [text_of([each], key) for each in events if stream_key(each) == key]
    return ["".join(deltas[begin:end]) for begin, end in combinations(range(len(deltas) + 1), 2)]


async def test_text_that_begins_no_secret_is_stored_as_it_comes(
    autojump_clock: MockClock,
) -> None:
    async with open_harness() as house:
        session = await house.manager.open_session("actor")
        script = run_scripted(Say(text="one two six", deltas=3, whole=False), Hang())
        run = await session.submit(script, env={"MY_API_KEY": SECRET})
        await trio.sleep(1)
        assert await joined(house, run.id) == "one two six"
        run.cancel()
