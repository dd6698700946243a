"""A run's text is read in pieces, and each character comes once."""

import pytest
from trio.testing import MockClock

from sessionmgr.model import KnownEvent, MessageReceived, MessageStreamed, RetryScheduled
from sessionmgr.testing.scripted_provider import Emit, Say, Step
from tests.manager.harness import open_harness, run_scripted


def streamed(*deltas: str, id: str | None = None) -> list[KnownEvent]:
    return [MessageStreamed(delta=delta, message_id=id) for delta in deltas]


async def text(*steps: Step) -> list[str]:
    async with open_harness() as house:
        session = await house.manager.open_session("actor")
        async with session.start(run_scripted(*steps)) as run:
            pieces = [piece async for piece in run.text()]
            assert pieces == [piece async for piece in run.text()]
        return pieces


@pytest.mark.parametrize(
    ("events", "pieces"),
    [
        (streamed("a", "b"), ["a", "b"]),
        ([*streamed("a", "b"), MessageReceived(content="ab")], ["a", "b"]),
        ([MessageReceived(content="ab")], ["ab"]),
        ([*streamed("a"), MessageReceived(content="abc")], ["a", "bc"]),
        ([*streamed("a"), MessageReceived(content="x")], ["a"]),
        ([MessageReceived(content="a"), MessageReceived(content="b")], ["a", "\n\nb"]),
        ([*streamed("a", id="1"), *streamed("b", "c", id="2")], ["a", "\n\nb", "c"]),
        ([MessageReceived(content=""), MessageReceived(content="b")], ["b"]),
        ([*streamed("", "a")], ["a"]),
        ([MessageReceived(content="mine", role="user")], []),
        ([MessageReceived(content="its", parent_tool_call_id="t1")], []),
        ([MessageStreamed(delta="its", parent_tool_call_id="t1")], []),
        (
            [*streamed("a"), RetryScheduled(by="provider", attempt=1), *streamed("a")],
            ["a", "\n\na"],
        ),
    ],
)
async def test_each_character_comes_once(
    autojump_clock: MockClock, events: list[KnownEvent], pieces: list[str]
) -> None:
    assert await text(*[Emit(event=event) for event in events]) == pieces


async def test_text_comes_as_it_is_streamed(autojump_clock: MockClock) -> None:
    async with open_harness() as house:
        session = await house.manager.open_session("actor")
        async with session.start(run_scripted(Say(text="one two", deltas=2, pause=60))) as run:
            pieces = run.text()
            assert await anext(pieces) == "one"
            assert not run.status.startswith("completed")
            await pieces.aclose()
            assert [piece async for piece in pieces] == []
