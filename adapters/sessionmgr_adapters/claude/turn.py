"""A run's time with a Claude Code: it is brought to what the run wants, asked, and heard out.

One task reads; questions are answered by tasks beside it. What was sent is over when each message
has its answer, the agent says that it is idle, and nothing goes on in the background. `idle` alone
is not it, because a shell in the background does not keep the agent busy; a result alone is not it
either, because another message may be next.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, Final, TypeAlias

import trio

from sessionmgr.model import ErrorOccurred, ImageReceived, PolicyViolation
from sessionmgr.wire.noise import Noise
from sessionmgr_adapters.claude.frames import (
    ControlReply,
    HostRequest,
    HostRequestWithdrawn,
    Lifecycle,
    Result,
    System,
    User,
)
from sessionmgr_adapters.claude.host import Host
from sessionmgr_adapters.claude.literal import not_literal
from sessionmgr_adapters.claude.mail import Mail
from sessionmgr_adapters.claude.normalise import normalise
from sessionmgr_adapters.claude.orders import Request
from sessionmgr_adapters.claude.preparing import prepare
from sessionmgr_adapters.claude.sdk import ClaudeConversation
from sessionmgr_adapters.claude.seat import too_wide
from sessionmgr_adapters.claude.session_file import SILENCE, SessionFile, path_of
from sessionmgr_adapters.claude.state import State
from sessionmgr_adapters.claude.waiting import Asked

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from sessionmgr.adapter import RunContext
    from sessionmgr.adapter.connections import PulledConversation as Conversation
    from sessionmgr.model import Failure, Json
    from sessionmgr.wire import NoFrame
    from sessionmgr_adapters.claude.frames import Frame, Reply
    from sessionmgr_adapters.claude.options import ClaudeOptions
    from sessionmgr_adapters.claude.orders import Told
    from sessionmgr_adapters.claude.seat import Seat

    Talk: TypeAlias = Conversation[Told, Frame | NoFrame]

LAST_WORD: Final = 2.0
"""Seconds for it to say that it is idle, when all is answered; and to take up work again, when
something in the background has ended."""


class Doing(Enum):
    """What the agent does, as far as it says."""

    WORKING = auto()
    TURN_ENDED = auto()
    IDLE = auto()


class Turn:
    """A run on its way. It is read by one task, and asked for things by others."""

    def __init__(
        self,
        run: RunContext,
        seat: Seat,
        conversation: Talk,
        options: ClaudeOptions,
        notes: list[ErrorOccurred],
        patience: float,
    ) -> None:
        self.seat: Final = seat
        self.state: Final = State(seat.spending)
        self.state.session_id = seat.spec.session
        self.result: Result | None = None
        """The last result."""
        self.failure: Failure | None = None
        """Why it is to come to nothing, whatever the agent says."""
        self.is_asked = False
        """Whether the prompt was sent."""
        self.is_heard = False
        """Whether anything came after that."""
        self.is_broken = False
        """Whether its events ended before it did."""
        self.is_deaf = False
        """Whether it was given up on because the agent did not say a word."""
        self._run: Final = run
        self._conversation: Final = conversation
        self._options: Final = options
        self._mail: Final = Mail(run, conversation, options, self.state)
        self._requests: Final[dict[str, Asked]] = {}
        self._host: Final = Host(run, seat, conversation)
        self._over: Final = trio.Event()
        self._nursery: trio.Nursery | None = None
        self._doing = Doing.WORKING
        self._had_tasks = False
        self._news = 0
        """Counts what makes a silence mean nothing."""
        self._speaks = self._is_noisy = False
        self._has_spoken = False
        self._notes: Final = notes
        self._patience: Final = patience
        self._heard: Final = trio.Event()
        self._is_interrupted = False

    @property
    def is_over(self) -> bool:
        """Whether nothing more is done in it."""
        return self._over.is_set()

    @property
    def leaves_work(self) -> bool:
        """Whether the agent is left in the middle of something.

        What a tool has started may outlive the interrupt that ends the tool, whoever it obeys.
        """
        stopped = self._is_interrupted and self.state.used_tools
        return stopped or bool(self._requests) or bool(self.state.tasks) or self._mail.is_open

    @property
    def hears_noise_alone(self) -> bool:
        """Whether something was heard, and none of it a frame."""
        return self._is_noisy and not self._speaks

    # --- its course ------------------------------------------------------------------------------

    async def play(self, prompt: Json) -> None:
        """Have the prompt answered, and tell what happens, until all is done."""
        try:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                nursery.start_soon(self._read)
                nursery.start_soon(self._ask, prompt)
                nursery.start_soon(self._watch_file)
                await self._over.wait()
                nursery.cancel_scope.cancel()  # who still asks is not waited for
        finally:
            self._nursery = None
            self._over.set()
            if isinstance(self._conversation, ClaudeConversation):  # a mock has no end to listen to
                self._conversation.close()
            self._mail.end()

    async def _ask(self, prompt: Json) -> None:
        with trio.move_on_after(self._patience) as scope:
            self.failure = await prepare(self, self._run, self.seat, self._options)
        if scope.cancelled_caught:
            self._give_up()
            return
        if self.failure is not None or self._run.cancelling is not None or self.is_over:
            self._over.set()
            return
        self.tell_notes()
        hello = self.seat.hello
        assert hello is not None
        self.state.credential, self.state.version = hello.credential, hello.version
        self.seat.runs += 1
        self.is_asked = True
        await self._mail.send_prompt(prompt)
        with trio.move_on_after(self._patience):
            await self._heard.wait()
            return
        self._give_up()

    def tell_notes(self) -> None:
        """Tell how it has come to this child: once that is of use, for it is a sign of life."""
        if self._notes:
            self._run.emit_nowait(*self._notes)
            self._notes.clear()

    def _give_up(self) -> None:
        self.is_deaf = True
        self._over.set()

    async def _read(self) -> None:
        async for frames in self._conversation.events():
            self._take(frames)
            await self._keep_pictures()
            await self._mail.send_held()
            self._look_whether_over()
            await self._run.room()
        self.is_broken = not self.is_over
        self._over.set()

    async def _keep_pictures(self) -> None:
        fresh = self.state.gallery.fresh
        while fresh:
            picture = fresh.pop(0)
            blob = await self._run.keep_blob(picture.data)
            shown = ImageReceived(media_type=picture.media_type, blob=blob, bytes=len(picture.data))
            self._run.emit_nowait(shown)

    async def _watch_file(self) -> None:
        """Tell of tools what the session's own record says while the agent is silent."""
        await trio.lowlevel.checkpoint()
        spec = self.seat.spec
        path = path_of(spec.session, spec.command.cwd, spec.command.env)
        if path is None:
            return
        file = SessionFile(path)
        while True:
            self._has_spoken = False
            await trio.sleep(SILENCE)
            if self._has_spoken or not self.is_asked:
                continue
            events = [each for frame in await file.news() for each in normalise(frame, self.state)]
            if events:
                self._hear()
                self._run.emit_nowait(*events)
                await self._keep_pictures()
                await self._run.room()

    def _hear(self) -> None:
        self._has_spoken = True
        if self.is_asked and not self.is_heard:
            self.is_heard = True
            self._heard.set()

    def _take(self, frames: Sequence[Frame | NoFrame]) -> None:
        self._hear()
        for frame in frames:
            if isinstance(frame, Noise):
                self._is_noisy = True
            else:
                self._speaks = True
            events = normalise(frame, self.state)
            if events:
                self._run.emit_nowait(*events)
            else:
                self._run.alive()
            self._heed(frame)

    def _heed(self, frame: Frame | NoFrame) -> None:
        if isinstance(frame, System) and frame.permission_mode is not None:
            self.seat.mode = frame.permission_mode
        match frame:
            case System(subtype="session_state_changed", state=state):
                self._note(Doing.IDLE if state == "idle" else Doing.WORKING)
            case System(subtype="init"):
                self._begin(frame)
            case Lifecycle(command_uuid=name, state=state):
                self._mail.live(name, state)
            case User(is_replay=True, uuid=name):
                self._mail.echo(name)
            case Result():
                self._end_turn(frame)
            case ControlReply(response=reply) if reply.request_id in self._requests:
                self._requests.pop(reply.request_id).settle(reply)
            case HostRequest():
                self._start(self._host.serve, frame)
            case HostRequestWithdrawn(request_id=request_id):
                self._host.withdraw(request_id)
            case _:
                pass

    def _start(self, task: Callable[..., Awaitable[None]], *args: object) -> None:
        assert self._nursery is not None
        self._nursery.start_soon(task, *args)

    def _begin(self, init: System) -> None:
        self._note(Doing.WORKING)
        if self._is_interrupted:  # older ones go on with what was queued
            self._start(self._conversation.interrupt)
        self._mail.begin(init.capabilities)
        wide = too_wide(self._run.permission.effective, init.permission_mode)
        if wide is not None and self.failure is None:
            self.failure = wide
            self._run.emit_nowait(PolicyViolation(rule="permission_mode", detail=wide.message))
            self._start(self.interrupt)

    def _end_turn(self, result: Result) -> None:
        self._note(Doing.TURN_ENDED)
        self.result = result
        self._mail.settle(result)
        failure = self.state.failure
        if failure is not None and self._mail.is_open:
            self._run.emit_nowait(ErrorOccurred(failure=failure))  # and there is more to come

    # --- when it is over -------------------------------------------------------------------------

    def _note(self, doing: Doing) -> None:
        self._doing = doing
        if doing is Doing.WORKING:
            self._had_tasks = False
            self._news += 1

    def _look_whether_over(self) -> None:
        if self.is_over or not self.is_asked or self._mail.is_open:
            return
        if self._is_interrupted:
            if self._doing is Doing.IDLE:
                self._over.set()
        elif self.state.tasks:
            self._had_tasks = True
        elif self.result is None or self._doing is Doing.WORKING:
            pass
        elif self._doing is Doing.IDLE and not self._had_tasks:
            self._over.set()
            return
        if self._doing is not Doing.WORKING and not self.state.tasks:
            self._start(self._listen_for_more, self._news)

    async def _listen_for_more(self, news: int) -> None:
        """Give it some time to say that it is idle, or to begin with what a task has come to."""
        await trio.sleep(LAST_WORD)
        if news == self._news and not self._mail.is_open and not self.state.tasks:
            self._over.set()

    async def interrupt(self) -> None:
        """Ask the agent to end what it does; whoever reads finds out when it has."""
        self._is_interrupted = True
        self._mail.drop_held()
        if self.is_asked:
            await self._conversation.interrupt()
            self._look_whether_over()
        else:
            self._over.set()
            await trio.lowlevel.checkpoint()

    # --- messages meanwhile ----------------------------------------------------------------------

    async def add(self, content: str, message_id: str) -> bool:
        """Offer another message, and say whether it is a matter of this run now."""
        await trio.lowlevel.checkpoint()
        if self.is_over or not self.is_asked or self._is_interrupted:
            return False
        if not self._options.slash_commands and self._not_literal(content) is not None:
            return False  # as a run of its own it is told why
        self._news += 1
        return await self._mail.add(content, message_id)

    def _not_literal(self, content: str) -> Failure | None:
        hello = self.seat.hello
        return not_literal(content, hello.version if hello else None)

    # --- requests of ours ------------------------------------------------------------------------

    async def request(self, subtype: str, **fields: Json) -> Reply:
        """Ask Claude Code for something, and wait for its answer."""
        self.seat.requests += 1
        id_ = f"{subtype}-{self.seat.requests}"
        asked = self._requests[id_] = Asked()
        await self._conversation.send(Request(id=id_, subtype=subtype, fields=fields))
        return await asked.reply()
