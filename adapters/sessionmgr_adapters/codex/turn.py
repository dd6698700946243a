"""A run's time with a thread of Codex's: it is opened, brought to what is wanted, and heard out.

One task reads; what must wait for answers goes on in tasks beside it. A run is over when its turn
is, when each message that was added to it was heard, and nothing that it has started runs any more:
agents that it has called are waited for, and commands in the background are ended.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec
import trio

from sessionmgr.adapter.kit.failures import config_invalid
from sessionmgr.model import (
    Failure,
    FailureKind,
    Json,
    MessageSent,
    PolicyViolation,
)
from sessionmgr_adapters.codex.calling import DEADLINE, Caller, refused
from sessionmgr_adapters.codex.cleanup import CLEANING, Leavings
from sessionmgr_adapters.codex.configured import ConfigUnreadableError, told
from sessionmgr_adapters.codex.conversation import CodexConversation
from sessionmgr_adapters.codex.decode import decoded
from sessionmgr_adapters.codex.failures import unreadable
from sessionmgr_adapters.codex.frames import (
    Answer,
    Asking,
    Delta,
    Hello,
    Resolved,
    Settings,
    SettingsChanged,
    TurnEnded,
    TurnStarted,
)
from sessionmgr_adapters.codex.functions import unoffered
from sessionmgr_adapters.codex.initialize import credential_of
from sessionmgr_adapters.codex.launch import OPENING, opening, text_input, turn_params
from sessionmgr_adapters.codex.normalise import normalise, started
from sessionmgr_adapters.codex.policy import (
    FULL,
    POLICIES,
    REVIEWER,
    Bounds,
    InForce,
    fits,
    in_force,
    too_wide,
)
from sessionmgr_adapters.codex.prompts import Prompts, said_anew
from sessionmgr_adapters.codex.request_handler import Host
from sessionmgr_adapters.codex.state import State
from sessionmgr_adapters.codex.version import too_old, version_in

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from sessionmgr.adapter import RunContext
    from sessionmgr.adapter.connections import PulledConversation as Conversation
    from sessionmgr.model import Event
    from sessionmgr_adapters.codex.frames import Frame, Turn as TurnFrame
    from sessionmgr_adapters.codex.options import CodexOptions
    from sessionmgr_adapters.codex.outgoing import Told
    from sessionmgr_adapters.codex.policy import Policy

    Talk: TypeAlias = Conversation[Told, Frame]

log: Final = logging.getLogger("sessionmgr.codex")


class Asked(msgspec.Struct, frozen=True):
    """What a turn is begun with."""

    limits: Bounds
    content: list[Json]
    prompts: Prompts
    """The system prompts of all threads."""
    warned: set[str]
    """Warnings that concern no thread and were already reported."""


class Turn:
    """A run on its way. It is read by one task, and asked for things by others."""

    def __init__(
        self, run: RunContext, conversation: Talk, options: CodexOptions, asked: Asked
    ) -> None:
        self.state: Final = State()
        self.state.warned = asked.warned
        self.state.is_resumed = run.provider_session_id is not None
        self.end: TurnFrame | None = None
        """How the last turn has ended."""
        self.failure: Failure | None = None
        """Why it comes to nothing, whatever Codex says."""
        self.is_kept = False
        """Whether its thread stays loaded for the next run."""
        self.is_asked = False
        """Whether the prompt was sent."""
        self.is_broken = False
        """Whether its events ended before it did."""
        self._run: Final = run
        self._conversation: Final = conversation
        self._options: Final = options
        self._asked: Final = asked
        self._policy: Final[Policy] = POLICIES[run.permission.effective]
        self._caller: Final = Caller(conversation)
        self._host: Final = Host(run, conversation, options, self.state)
        self._leavings: Final = Leavings(conversation, self._caller, self.state)
        self._hello: Final = trio.Event()
        self._greeting = Hello()
        self._found: InForce | None = None
        self._settled: Settings | None = None
        self._settings_told = trio.Event()
        self._over: Final = trio.Event()
        self._nursery: trio.Nursery | None = None
        self._offered: Final[dict[str, trio.Event]] = {}
        self._taken: Final[dict[str, str]] = {}
        self._is_interrupted = False
        self._leaves_work = False

    @property
    def is_over(self) -> bool:
        """Whether nothing more is done in it."""
        return self._over.is_set()

    @property
    def is_deaf(self) -> bool:
        """Whether a call was not answered in time."""
        return self._caller.is_deaf

    @property
    def _is_well(self) -> bool:
        """Whether nothing of it is in a state that nobody knows.

        As long as a thread is loaded, an agent that it has called may do what it might do when it
        was called, whatever the thread itself may do since.
        """
        ended = self.end is not None and self.end.status == "completed"
        is_odd = self.is_broken or self.is_deaf or self._leaves_work
        return ended and not (is_odd or self.state.agents.were_called)

    # --- its course ------------------------------------------------------------------------------

    async def play(self) -> None:
        """Have the prompt answered, and tell what happens, until all is done."""
        try:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                nursery.start_soon(self._read)
                nursery.start_soon(self._ask)
                await self._over.wait()
                nursery.cancel_scope.cancel()  # who still asks is not waited for
        finally:
            if self.state.early:  # it has never begun
                self._run.emit_nowait(*self.state.early)
            self._tell_of_the_dropped()
            self._nursery = None
            self._over.set()
            if isinstance(self._conversation, CodexConversation):  # a mock has no end to listen to
                self.is_kept = self._options.keep and self._is_well
                self._conversation.close(keep=self.is_kept)

    async def _ask(self) -> None:
        await self._hello.wait()
        failure = await self._prepare()
        if failure is not None or self._run.cancelling is not None or self.is_over:
            self.failure = self.failure or failure
            self._over.set()
            return
        await self._begin(self._asked.content, f"prompt of {self._run.run_id}")

    async def _begin(self, content: list[Json], message_id: str) -> None:
        self.is_asked = True
        params = turn_params(self._run, self.state.thread, content, message_id)
        answer = await self._caller.call("turn/start", params)
        if answer.refusal is not None:
            self.failure = refused(answer)
            self._over.set()

    async def _prepare(self) -> Failure | None:
        """Open the thread and have its permissions in force; return why it must not be asked."""
        if self._greeting.refusal is not None:
            return refused(Answer(0, "initialize", refusal=self._greeting.refusal))
        self.state.version = version_in(self._greeting.user_agent)
        failure = too_old(self.state.version)
        if failure is not None:
            return failure
        self.state.credential = credential_of(self._greeting)
        thread, tools = self._run.provider_session_id, self._options.tools
        failure = await unoffered(self._caller, thread, tools) if thread and tools else None
        if failure is not None:
            return failure
        answer = await self._caller.call("config/read", {"cwd": self._run.cwd})
        if answer.refusal is not None:
            return refused(answer)
        configured = told(answer.result)
        if configured is None:
            return unreadable(answer.method)
        try:
            method, params = opening(self._run, self._options, self._asked.limits, configured)
        except ConfigUnreadableError as error:
            return config_invalid(str(error))
        answer = await self._caller.call(method, params)
        if answer.refusal is not None:
            return refused(answer)
        if self._found is None:
            return unreadable(answer.method)
        return await self._permit(self._found) or await self._instruct()

    async def _permit(self, found: InForce) -> Failure | None:
        """Give the thread its sandbox; return the failure if more is in force than was asked."""
        wanted = self._policy.sandbox_policy(self._asked.limits)
        if not fits(self._policy, wanted, found):
            params: dict[str, Json] = {
                "threadId": self.state.thread,
                "approvalPolicy": self._policy.approval,
                "sandboxPolicy": wanted,
            }
            self._settings_told = trio.Event()  # what was told before is not about this
            answer = await self._caller.call("thread/settings/update", params)
            if answer.refusal is not None:
                return refused(answer, FailureKind.PERMISSION_REFUSED)
            with trio.move_on_after(DEADLINE):
                await self._settings_told.wait()
            if self._settled is not None and self._settings_told.is_set():
                found = in_force(self._settled)
        failure = too_wide(self._policy, wanted, found)
        if failure is not None:
            self._run.emit_nowait(PolicyViolation(rule="permission_mode", detail=failure.message))
        return failure

    async def _instruct(self) -> Failure | None:
        """Have the model told a system prompt that its thread was not begun with."""
        run, prompts, thread = self._run, self._asked.prompts, self.state.thread
        before, text = run.provider_session_id, run.system_prompt
        if before is None:
            prompts.note(thread, text)
        elif text is None or prompts.has(before, text):
            prompts.fork(before, thread)
        else:
            answer = await self._caller.call("thread/inject_items", said_anew(thread, text))
            if answer.refusal is not None:
                return refused(answer)
            prompts.note(thread, text)
        return None

    # --- what comes ------------------------------------------------------------------------------

    async def _read(self) -> None:
        async for frames in self._conversation.events():
            self._take(frames)
            await self._run.room()
        self.is_broken = not self.is_over
        self._over.set()

    def _take(self, frames: Sequence[Frame]) -> None:
        events: list[Event] = []
        for frame in frames:
            events += normalise(frame, self.state)
            if not isinstance(frame, Delta):
                events += self._heed(frame)
        if events:
            self._run.emit_nowait(*events)
        else:
            self._run.alive()
        self._leavings.note()

    def _heed(self, frame: Frame) -> list[Event]:
        match frame:
            case Hello():
                self._greeting = frame
                self._hello.set()
            case Answer():
                return self._answered(frame)
            case Asking():
                self._start(self._host.serve, frame)
            case Resolved(request_id=id_):
                self._host.withdraw(id_)
            case SettingsChanged(thread_id=self.state.thread, thread_settings=settings):
                self._settled = settings
                self._settings_told.set()
            case TurnStarted(thread_id=self.state.thread, turn=turn):
                self.state.turn = turn.id
            case TurnEnded(thread_id=self.state.thread, turn=turn) if turn.id == self.state.turn:
                is_first, self.end = self.end is None, turn
                if is_first:
                    self._start(self._wind_up)
            case _:
                pass
        return []

    def _answered(self, answer: Answer) -> list[Event]:
        # At once, and not by who waits: what comes next may be about the same thread and turn.
        self._caller.settle(answer)
        if answer.refusal is None:
            if answer.method in OPENING:
                self._open(answer)
            elif answer.method == "turn/start":
                return self._begun(answer)
        return []

    def _open(self, answer: Answer) -> None:
        opened = decoded(answer.result, _Opened)
        if opened is not None:
            state = self.state
            state.thread, state.model, state.cwd = opened.thread.id, opened.model, opened.cwd
            self._found = InForce(opened.approval_policy, opened.sandbox, opened.approvals_reviewer)

    def _begun(self, answer: Answer) -> list[Event]:
        begun = decoded(answer.result, _Begun)
        if begun is not None:
            self.state.turn = begun.turn.id
        return [] if self.state.started else started(self.state)

    def _start(self, task: Callable[..., Awaitable[None]], *args: object) -> None:
        assert self._nursery is not None
        self._nursery.start_soon(task, *args)

    # --- its end ---------------------------------------------------------------------------------

    async def _wind_up(self) -> None:
        """Go on with what was added and not answered; or end what still runs, and be over."""
        assert self.end is not None
        with trio.move_on_after(CLEANING):
            await trio.lowlevel.checkpoint()
            for offer in list(self._offered.values()):  # it may have been taken in the last moment
                await offer.wait()
        unheard = self._unheard()
        # What Codex took in the last moment is in the thread already, and is not said again.
        is_open = bool(unheard) or not self.state.unanswered.isdisjoint(self._taken)
        if is_open and self.end.status == "completed" and not self._is_interrupted:
            self.end = None
            self._taken.clear()
            content = [text_input(each) for each in unheard.values()]
            await self._begin(content, f"more of {self._run.run_id}")
            return
        if self.end.status == "completed":
            await self._leavings.agents_are_done()
        await self._leavings.end()
        if self._policy.sandbox == FULL and self._is_cut_short:
            await self._leavings.clear_away()
        await self._leavings.give_back()
        self._leaves_work = self._leavings.is_there
        self._run.emit_nowait(*self._leavings.told())
        self._over.set()

    def _unheard(self) -> dict[str, str]:
        """Return what Codex has taken and its model has not heard, by our names."""
        return {name: text for name, text in self._taken.items() if name not in self.state.heard}

    def _tell_of_the_dropped(self) -> None:
        for name, text in self._unheard().items():
            self._run.emit_nowait(
                MessageSent(message_id=name, content=text, follow_up=True, state="dropped")
            )

    @property
    def _is_cut_short(self) -> bool:
        """Whether something of it did not come to an end of its own."""
        return self._is_interrupted or self.end is None or self.end.status != "completed"

    async def interrupt(self) -> None:
        """Ask Codex to end the turn; whoever reads finds out when it has."""
        self._is_interrupted = True
        self._leavings.give_up()
        await trio.lowlevel.checkpoint()
        if not self.is_asked:
            self._over.set()
        elif self.end is None or self.state.is_turning:
            await self._conversation.interrupt()

    # --- messages meanwhile ----------------------------------------------------------------------

    async def add(self, content: str, message_id: str) -> bool:
        """Offer another message, and say whether it is a matter of this run now."""
        await trio.lowlevel.checkpoint()
        is_late = self.is_over or self.end is not None or self._is_interrupted
        if is_late or not self.state.turn or self._options.follow_up == "later":
            return False
        offer = self._offered[message_id] = trio.Event()
        params: dict[str, Json] = {
            "threadId": self.state.thread,
            "expectedTurnId": self.state.turn,
            "clientUserMessageId": message_id,
            "input": [text_input(content)],
        }
        try:
            taken = await self._offer(params)
            if taken:
                self._taken[message_id] = content
            return taken
        finally:
            offer.set()
            del self._offered[message_id]

    async def _offer(self, params: dict[str, Json]) -> bool:
        """Say something to the turn; False if it was over before that was heard of."""
        answers: list[Answer] = []
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_cancel_when, self._over, nursery.cancel_scope)
            answers.append(await self._caller.call("turn/steer", params))
            nursery.cancel_scope.cancel()
        return bool(answers) and answers[0].refusal is None


async def _cancel_when(event: trio.Event, scope: trio.CancelScope) -> None:
    await event.wait()
    scope.cancel()


class _Thread(msgspec.Struct):
    id: str


class _Opened(msgspec.Struct, rename="camel"):
    thread: _Thread
    model: str | None = None
    cwd: str | None = None
    approval_policy: Json = None
    approvals_reviewer: str = REVIEWER
    sandbox: Json = None


class _Begun(msgspec.Struct):
    turn: _Thread
