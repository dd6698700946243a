"""The runner of scripts: each step becomes events, waits and ends of one run."""

from __future__ import annotations

from collections import deque
from itertools import count
from typing import TYPE_CHECKING, Final

import trio
from msgspec import UnsetType

from sessionmgr.adapter import Allow, ApprovalRequest
from sessionmgr.model import (
    ErrorOccurred,
    Failure,
    FailureKind,
    MessageReceived,
    MessageStreamed,
    RateLimitUpdated,
    ReasoningReceived,
    ReasoningStreamed,
    RunEnded,
    RunStarted,
    TokenUsageUpdated,
    ToolCallCompleted,
    ToolCallFailed,
    ToolCallStarted,
    ToolCallUpdated,
    TurnCompleted,
    Usage,
)
from sessionmgr.testing import script as say
from sessionmgr.trio_util_types import RepeatedEvent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sessionmgr.adapter import Decision, RunContext
    from sessionmgr.testing.script import Script, Step

SLOW: Final = 10.0


class ScriptedCrash(Exception):
    """The exception of a script's `crash` step."""


class ScriptRunner:
    """One run of a script."""

    def __init__(
        self,
        run: RunContext,
        script: Script,
        *,
        crash_adapter: Callable[[str], None],
        take_note: Callable[[str], None],
    ) -> None:
        self.script: Final = script
        self.deaf = False
        self._run: Final = run
        self._crash_adapter: Final = crash_adapter
        self._take_note: Final = take_note
        self._numbers: Final = count(1)
        self._has_ended = False
        self._messages: Final[deque[str]] = deque()
        self._has_heard: RepeatedEvent | None = None
        """Created only for a script that waits for messages: few do, and it is expensive."""
        self._playing: Final = trio.CancelScope()

    async def run(self) -> None:
        """Play the script to its last step, or until an interrupt."""
        run = self._run
        with self._playing:
            if self.script.starts:
                await run.emit(RunStarted(provider_session_id=self._provider_session()))
            await self._run_steps(self.script.steps)
            if not self._has_ended:
                await run.finish(stop_reason="end_turn")
        if self._playing.cancelled_caught:
            await trio.sleep(self.script.unwinds)
            await run.emit(TurnCompleted(stop_reason="interrupted"))
            if self.script.interrupt == "done":
                await run.finish(stop_reason="end_turn")

    async def interrupt(self) -> None:
        """React to an interrupt as the script specifies."""
        await trio.lowlevel.checkpoint()
        match self.script.interrupt:
            case "crash":
                raise ScriptedCrash("the script refuses the interrupt")
            case "hang":
                await trio.sleep_forever()
            case "end" | "done" if not self.deaf:
                self._playing.cancel()
            case _:
                pass

    async def append(self, content: str) -> bool:
        """Handle a message as the script specifies; return whether it was accepted."""
        await trio.lowlevel.checkpoint()
        match self.script.append:
            case "refuse":
                return False
            case "crash":
                raise ScriptedCrash("the script refuses the message")
            case "hang":
                await trio.sleep_forever()
            case "slow":
                await trio.sleep(SLOW)
            case "lost":
                self._queue_message(content)
                await trio.sleep_forever()
            case "accept":
                pass
        self._queue_message(content)
        return True

    def _queue_message(self, content: str) -> None:
        self._take_note(content)
        self._messages.append(content)
        if self._has_heard is not None:
            self._has_heard.set()

    def _provider_session(self) -> str:
        run = self._run
        return self.script.provider_session_id or run.provider_session_id or f"of-{run.session_id}"

    async def _run_steps(self, steps: Sequence[Step]) -> None:
        await trio.lowlevel.checkpoint()
        for step in steps:
            await self._run_step(step)

    async def _run_step(self, step: Step) -> None:  # one line per step
        run = self._run
        match step:
            case say.Say() | say.Think():
                await self._send_text(step)
            case say.Tool():
                await self._use_tool(step, self._new_id())
            case say.Ask():
                await self._ask(step)
            case say.Wait(seconds=seconds):
                await trio.sleep(seconds)
            case say.Hang():
                await trio.sleep_forever()
            case say.Alive(every=every, times=times):
                for _ in range(times):
                    await trio.sleep(every)
                    run.alive()
            case say.Flood(events=events, size=size):
                for _ in range(events):
                    await run.emit(MessageStreamed(delta="x" * size, message_id="flood"))
            case say.Deaf(seconds=seconds):
                await self._resist_cancel(seconds)
            case say.Hear():
                await self._repeat_message()
            case say.Crash(message=message, depth=depth):
                await _crash(message, depth)
            case say.CrashAdapter(message=message):
                self._crash_adapter(message)
                await trio.lowlevel.checkpoint()
            case say.Repeat(steps=steps, times=times):
                for _ in range(times):
                    await self._run_steps(steps)
            case say.Together(parts=parts):
                async with trio.open_nursery() as nursery:
                    for part in parts:
                        nursery.start_soon(self._run_steps, part)
            case _:
                await self._emit_step(step)

    async def _emit_step(
        self,
        step: say.Use
        | say.Error
        | say.Emit
        | say.TurnEnd
        | say.Finish
        | say.Fail
        | say.RateLimited
        | say.Leave,
    ) -> None:
        run = self._run
        match step:
            case say.Use():
                await run.emit(_usage_event(step))
            case say.Error(message=message, kind=kind, severity=severity):
                failure = Failure(kind=kind, message=message)
                await run.emit(ErrorOccurred(failure=failure, severity=severity))
            case say.Emit(event=event, blobs=blobs):
                self._has_ended = self._has_ended or isinstance(event, RunEnded)
                await run.emit(event, blobs=blobs)
            case say.TurnEnd(stop_reason=stop_reason, open_tasks=open_tasks):
                await run.emit(TurnCompleted(stop_reason=stop_reason, open_tasks=open_tasks))
            case say.Finish(stop_reason=stop_reason, structured=structured):
                self._has_ended = True
                await run.finish(stop_reason=stop_reason, structured=structured)
            case say.Fail():
                self._has_ended = True
                await run.fail(
                    Failure(
                        kind=step.kind,
                        message=step.message,
                        retryable=step.retryable,
                        resumable=step.resumable,
                    )
                )
            case say.RateLimited(bucket=bucket, resets_at=resets_at):
                self._has_ended = True
                await self._fail_rate_limited(bucket, resets_at)
            case say.Leave():
                self._has_ended = True
                await trio.lowlevel.checkpoint()

    def _new_id(self) -> str:
        return f"call-{next(self._numbers)}"

    async def _send_text(self, step: say.Say | say.Think) -> None:
        run, name = self._run, f"message-{next(self._numbers)}"
        for delta in _pieces(step.text, step.deltas):
            if isinstance(step, say.Think):
                await run.emit(ReasoningStreamed(delta=delta))
            else:
                await trio.sleep(step.pause)
                await run.emit(MessageStreamed(delta=delta, message_id=name))
        if isinstance(step, say.Think):
            await run.emit(ReasoningReceived(content=step.text))
        elif step.whole:
            await run.emit(MessageReceived(content=step.text, message_id=name))

    async def _use_tool(self, step: say.Tool, name: str) -> None:
        run = self._run
        await run.emit(
            ToolCallStarted(tool_call_id=name, tool_name=step.name, tool_input=step.input)
        )
        for delta in step.prints:
            await run.emit(ToolCallUpdated(tool_call_id=name, output_delta=delta))
        await trio.sleep(step.takes)
        of = ToolCallFailed if step.fails else ToolCallCompleted
        await run.emit(
            of(
                tool_call_id=name,
                tool_name=step.name,
                tool_input=step.input,
                tool_output=step.output,
            )
        )

    async def _ask(self, step: say.Ask) -> None:
        name = self._new_id()
        request = ApprovalRequest(
            tool_name=step.tool,
            tool_input=step.input,
            tool_call_id=name,
            reason=step.reason,
            effect=step.effect,
            paths=step.paths,
            approval_id=step.id,
        )
        patience = float("inf") if step.withdraw_after is None else step.withdraw_after
        with trio.move_on_after(patience):
            decision = await self._run.ask(request)
            await self._use_tool(_answered_tool_call(step, decision), name)

    async def _fail_rate_limited(self, bucket: str, resets_at: str | None) -> None:
        run = self._run
        await run.emit(RateLimitUpdated(bucket=bucket, state="exceeded", resets_at=resets_at))
        message = f"too many {bucket}"
        await run.fail(
            Failure(
                kind=FailureKind.RATE_LIMITED, message=message, retryable=True, retry_at=resets_at
            )
        )

    async def _resist_cancel(self, seconds: float) -> None:
        self.deaf = True
        try:
            with trio.CancelScope(shield=True):
                await trio.sleep(seconds)
        finally:
            self.deaf = False

    async def _repeat_message(self) -> None:
        await trio.lowlevel.checkpoint()
        while not self._messages:
            if self._has_heard is None:
                self._has_heard = RepeatedEvent()
            await self._has_heard.wait()
        await self._send_text(say.Say(text=self._messages.popleft()))


def _answered_tool_call(step: say.Ask, decision: Decision) -> say.Tool:
    """Return the tool call that follows from a decision."""
    if not isinstance(decision, Allow):
        return say.Tool(name=step.tool, input=step.input, output=decision.reason, fails=True)
    changed = decision.tool_input
    given = step.input if isinstance(changed, UnsetType) else changed
    return say.Tool(name=step.tool, input=given, output=step.output)


def _usage_event(step: say.Use) -> TokenUsageUpdated:
    usage = Usage(
        input=step.input,
        cached_input=step.cached_input,
        cache_write=step.cache_write,
        output=step.output,
        reasoning=step.reasoning,
    )
    return TokenUsageUpdated(usage=usage, cost=step.usd, provenance=step.provenance)


def _pieces(text: str, number: int) -> Iterator[str]:
    """Cut `text` into `number` pieces of nearly equal length."""
    for place in range(number):
        yield text[place * len(text) // number : (place + 1) * len(text) // number]


async def _crash(message: str, depth: int) -> None:
    await trio.lowlevel.checkpoint()
    if not depth:
        raise ScriptedCrash(message)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_crash, message, depth - 1)
