"""Each broken adapter fails the behaviour that it violates."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from sessionmgr.adapter import (
    EMULATED,
    NATIVE,
    Allow,
    ApprovalRequest,
    Capabilities,
    Options,
    ProviderAdapter,
    RunContext,
)
from sessionmgr.adapter.kit.follow_ups import FollowUps
from sessionmgr.model import (
    Failure,
    FailureKind,
    MessageReceived,
    MessageStreamed,
    RunCompleted,
    RunStarted,
    ToolCallStarted,
)
from sessionmgr.testing.adapter_conformance import ADAPTER_BEHAVIOURS, AdapterCase, Play


class Sound(ProviderAdapter):
    """A correct adapter; the others differ from it in one thing each."""

    name = "sound"
    capabilities = Capabilities(streaming=NATIVE)

    async def run(self, run: RunContext) -> None:
        await run.emit(RunStarted(provider_session_id=run.session_id))
        await self.play(run)

    async def play(self, run: RunContext) -> None:
        match run.prompt:
            case "fail":
                await run.fail(Failure(kind=FailureKind.PROVIDER_ERROR, message="no"))
            case "hang":
                await run.emit(MessageStreamed(delta="half"))
                await trio.sleep_forever()
            case "ask":
                await self.ask(run)
                await run.finish()
            case _:
                await run.emit(MessageReceived(content=run.prompt))
                await run.finish()

    async def ask(self, run: RunContext) -> None:
        decision = await run.ask(ApprovalRequest(tool_name="saw"))
        if isinstance(decision, Allow):
            await run.emit(MessageReceived(content="sawn"))


class Forgetful(Sound):
    async def run(self, run: RunContext) -> None:
        await run.emit(RunStarted())


class Crashing(Sound):
    async def play(self, run: RunContext) -> None:
        if run.prompt == "fail":
            raise ValueError("no")
        await super().play(run)


class Unstarted(Sound):
    async def run(self, run: RunContext) -> None:
        await run.emit(MessageReceived(content=run.prompt))
        await super().run(run)


class Stammering(Sound):
    async def play(self, run: RunContext) -> None:
        await run.emit(MessageStreamed(delta="something else", message_id="m"))
        await run.emit(MessageReceived(content=run.prompt, message_id="m"))
        await run.finish()


class Untidy(Sound):
    async def play(self, run: RunContext) -> None:
        await run.emit(ToolCallStarted(tool_call_id="t", tool_name="saw"))
        await super().play(run)


class Promiscuous(Sound):
    async def run(self, run: RunContext) -> None:
        await run.emit(RunStarted(provider_session_id="always the same"))
        await self.play(run)


class Boastful(Sound):
    capabilities = Capabilities(streaming=NATIVE, interrupt=NATIVE)


class Swallowing(Sound):
    async def play(self, run: RunContext) -> None:
        if run.prompt == "hang":
            await run.emit(MessageStreamed(delta="half"))
            with trio.CancelScope(shield=True):
                await trio.sleep(1000)
        await super().play(run)


class Mixing(Sound):
    said = ""

    async def play(self, run: RunContext) -> None:
        type(self).said += run.prompt
        await trio.sleep(0.1)  # time for other messages
        await run.emit(MessageReceived(content=type(self).said))
        await run.finish()
        type(self).said = ""


class Demanding(Sound):
    class Wants(Options, frozen=True, kw_only=True):
        colour: str

    options = Wants


class Disobedient(Sound):
    async def ask(self, run: RunContext) -> None:
        decision = await run.ask(ApprovalRequest(tool_name="saw"))
        await run.ask(ApprovalRequest(tool_name="saw"))
        assert decision is not None


class Complete(Sound):
    """Reports its completion as a plain event, which is allowed."""

    async def play(self, run: RunContext) -> None:
        if run.prompt != "hi":
            await super().play(run)
            return
        await run.emit(MessageReceived(content="hi"), RunCompleted())


class Slow(Sound):
    """Pauses in the middle of a word."""

    async def play(self, run: RunContext) -> None:
        if run.prompt != "hang":
            await super().play(run)
            return
        await run.emit(MessageStreamed(delta="ha"))
        await trio.sleep(1)
        await run.emit(MessageStreamed(delta="lf"))
        await trio.sleep_forever()


class Queueing(Sound):
    """Accepts a message for a further turn, and starts no further turn."""

    capabilities = Capabilities(streaming=NATIVE, steer=EMULATED)

    async def play(self, run: RunContext) -> None:
        if run.prompt != "hang":
            await super().play(run)
            return
        self.messages = FollowUps(run)
        await run.emit(MessageStreamed(delta="half"))
        try:
            await trio.sleep_forever()
        finally:
            self.messages.end()

    async def append(self, run: RunContext, content: str, message_id: str) -> bool:
        if run.prompt != "hang":
            await trio.lowlevel.checkpoint()
            return False
        return await self.messages.offer(message_id, content, partial(self.queue, message_id))

    async def queue(self, message_id: str) -> None:
        await trio.lowlevel.checkpoint()
        self.messages.accept(message_id)


class Losing(Queueing):
    """Reports a message as read when it is only queued."""

    async def queue(self, message_id: str) -> None:
        await trio.lowlevel.checkpoint()
        self.messages.mark_heard(message_id)


class Obedient(Sound):
    """Opens a session before the prompt, and ends at once when interrupted."""

    capabilities = Capabilities(streaming=NATIVE, interrupt=NATIVE)

    def __init__(self) -> None:
        super().__init__()
        self.turns: dict[str, trio.CancelScope] = {}

    async def play(self, run: RunContext) -> None:
        for _ in range(20):
            await trio.lowlevel.checkpoint()
        if self.may_ask(run):
            with trio.CancelScope() as self.turns[run.run_id]:
                await super().play(run)

    def may_ask(self, run: RunContext) -> bool:
        return run.cancelling is None

    async def interrupt(self, run: RunContext) -> None:
        await trio.lowlevel.checkpoint()
        if run.run_id in self.turns:
            self.turns[run.run_id].cancel()


class Hasty(Obedient):
    """Forgets an interrupt that comes before its session is open."""

    def may_ask(self, run: RunContext) -> bool:
        return True


class Dropping(Sound):
    """Loses the second half of a word."""

    async def play(self, run: RunContext) -> None:
        if run.prompt == "hang":
            await run.emit(MessageStreamed(delta="ha"))
            await trio.sleep_forever()
        await super().play(run)


class Endless(Sound):
    """Reports its start, and nothing else."""

    async def play(self, run: RunContext) -> None:
        await trio.sleep_forever()


async def broken(adapter: type[ProviderAdapter], place: Path) -> set[str]:
    """Return the behaviours that an adapter violates."""
    case = AdapterCase(
        adapter=adapter,
        answers=Play(prompt="hi", text="hi"),
        fails=Play(prompt="fail"),
        hangs=Play(prompt="hang", text="half"),
        asks=Play(prompt="ask"),
        virtual=True,
    )

    @asynccontextmanager
    async def open_case(_: Path) -> AsyncGenerator[AdapterCase, None]:
        yield case

    found: set[str] = set()
    for behaviour in ADAPTER_BEHAVIOURS:
        if behaviour.left_out(case) is None:
            try:
                await behaviour(open_case, place)
            except (Exception, BaseExceptionGroup):  # noqa: BLE001  # however it breaks
                found.add(behaviour.name)
    return found


@pytest.mark.parametrize("adapter", [Sound, Complete, Slow, Queueing, Obedient])
async def test_what_breaks_no_law_is_not_blamed(
    autojump_clock: MockClock, tmp_path: Path, adapter: type[ProviderAdapter]
) -> None:
    assert await broken(adapter, tmp_path) == set()


@pytest.mark.parametrize(
    ("adapter", "law"),
    [
        (Forgetful, "a_run_has_one_start_and_one_end"),
        (Crashing, "a_failed_run_reports_its_failure"),
        (Unstarted, "a_run_has_one_start_and_one_end"),
        (Stammering, "what_is_streamed_is_what_is_received"),
        (Untidy, "a_run_has_one_start_and_one_end"),
        (Promiscuous, "runs_at_the_same_time_do_not_mix"),
        (Boastful, "its_methods_match_its_declared_capabilities"),
        (Swallowing, "a_cancelled_run_ends_in_time_and_keeps_its_text"),
        (Dropping, "a_cancelled_run_ends_in_time_and_keeps_its_text"),
        (Mixing, "runs_at_the_same_time_do_not_mix"),
        (Demanding, "its_options_are_a_frozen_struct_without_unknown_fields"),
        (Disobedient, "an_allowed_call_is_made"),
        (Losing, "a_message_that_waits_in_the_adapter_is_dropped_by_a_cancel"),
        (Hasty, "a_cancel_at_any_step_takes_effect"),
    ],
)
async def test_what_breaks_a_law_is_found_out(
    autojump_clock: MockClock, tmp_path: Path, adapter: type[ProviderAdapter], law: str
) -> None:
    assert law in await broken(adapter, tmp_path)


async def test_of_a_run_that_does_not_end_it_is_said_what_was_told(
    autojump_clock: MockClock, tmp_path: Path
) -> None:
    case = AdapterCase(adapter=Endless, answers=Play(prompt="hi", text="hi"), virtual=True)

    @asynccontextmanager
    async def open_case(_: Path) -> AsyncGenerator[AdapterCase, None]:
        yield case

    (law,) = (
        each for each in ADAPTER_BEHAVIOURS if each.name == "what_is_streamed_is_what_is_received"
    )
    with pytest.raises(AssertionError, match=r"has not ended after 90 s; events: .*'run_started'"):
        await law(open_case, tmp_path)


async def test_of_a_hanging_run_that_sends_no_text_it_is_said_what_was_expected(
    autojump_clock: MockClock, tmp_path: Path
) -> None:
    case = AdapterCase(
        adapter=Endless,
        answers=Play(prompt="hi", text="hi"),
        hangs=Play(prompt="hang"),
        virtual=True,
    )

    @asynccontextmanager
    async def open_case(_: Path) -> AsyncGenerator[AdapterCase, None]:
        yield case

    (law,) = (
        each
        for each in ADAPTER_BEHAVIOURS
        if each.name == "a_cancelled_run_ends_in_time_and_keeps_its_text"
    )
    with pytest.raises(AssertionError, match=r"expected any text, got '' in 90 s"):
        await law(open_case, tmp_path)
