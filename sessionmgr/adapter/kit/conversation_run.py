"""Base class of a driver: one run's side of a conversation whose frames are pushed.

The connection's reader calls `feed`, which passes the frames of one read to the subclass and emits
the events of that read together. Work that must wait (an approval, a request of ours) runs in tasks
of the driver's own nursery, which `run_conversation` opens and which is cancelled when the
conversation is over. A crash of the subclass fails this run alone: `run_conversation` raises it.

    class EchoDriver(ConversationRun[Outgoing, Frame]):
        async def begin(self) -> None:
            await self.conversation.send(Say(self.run.prompt))

        def handle_frames(self, frames: Sequence[Frame]) -> None:
            for frame in frames:
                self.emit(*normalise(frame, self._state))
                if isinstance(frame, TurnEnded):
                    self.finish()
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Final, Generic, TypeAlias, TypeVar

import trio

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessionmgr.adapter import Conversation, RunContext
    from sessionmgr.model import Event

Outgoing = TypeVar("Outgoing")
Frame = TypeVar("Frame")
Phase = TypeVar("Phase", bound=Enum)
Step = TypeVar("Step", bound=Enum)
Task: TypeAlias = Callable[..., Awaitable[None]]


class ConversationRun(Generic[Outgoing, Frame]):
    """Driver of one run. A subclass implements the start of the turn and the handling of frames."""

    def __init__(self, run: RunContext) -> None:
        self.run: Final = run
        self.is_broken = False
        """Whether the frames ended before the conversation was over."""
        self._conversation: Conversation[Outgoing] | None = None
        self._has_begun = False
        self._nursery: trio.Nursery | None = None
        self._deferred: Final[list[tuple[Task, tuple[object, ...]]]] = []
        self._events: list[Event] | None = None
        """The events of the read that is being handled; None between reads."""
        self._blobs: Final[list[bytes]] = []
        self._over: Final = trio.Event()
        self._crash: Exception | None = None

    # --- what a subclass implements --------------------------------------------------------------

    async def begin(self) -> None:
        """Send the prompt, and anything that must precede it. It runs concurrently with the reader.

        It is not called for a run that was asked to end before.
        """
        raise NotImplementedError

    def handle_frames(self, frames: Sequence[Frame]) -> None:
        """Emit the events of one read, start tasks, detect the end; it must not wait."""
        raise NotImplementedError

    async def interrupt(self) -> None:
        """Ask the provider to end the turn; frames are handled until it has ended.

        Before the prompt is sent it ends the conversation; once that is over it does nothing.
        """
        await trio.lowlevel.checkpoint()
        if not self._has_begun:
            self.finish()
        elif not self.is_over:
            await self.conversation.interrupt()

    async def add(self, content: str, message_id: str) -> bool:
        """Send another message to the turn, and return whether it was accepted; see `FollowUps`."""
        await trio.lowlevel.checkpoint()
        return False

    def on_connection_lost(self) -> None:
        """Handle the end of the frames before the conversation was over."""
        self.finish()

    def on_leave(self) -> None:
        """Release the tasks that wait for this conversation, as it is over or cancelled."""
        return

    def keeps_session(self) -> bool:
        """Whether the provider may keep the session loaded for the next run."""
        return False

    # --- for a subclass --------------------------------------------------------------------------

    @property
    def conversation(self) -> Conversation[Outgoing]:
        """The conversation; available once `run_conversation` was called."""
        assert self._conversation is not None, "`run_conversation` was not called yet"
        return self._conversation

    @property
    def is_over(self) -> bool:
        """Whether the conversation is over; later frames are ignored."""
        return self._over.is_set()

    def finish(self) -> None:
        """End the conversation: its tasks are cancelled, and `run_conversation` returns."""
        self._over.set()
        if self._nursery is not None:  # here: `run_conversation` would do so one turn later
            self._nursery.cancel_scope.cancel()

    def emit(self, *events: Event, blobs: Sequence[bytes] = ()) -> None:
        """Emit events: at once, or, during a read, together with that read's other events.

        `blobs` are the images that the events name by their sha256.
        """
        if self._events is None:
            self.run.emit_nowait(*events, blobs=blobs)
        else:
            self._events.extend(events)
            self._blobs.extend(blobs)

    def start(self, task: Task, *args: object) -> None:
        """Start a task in the driver's nursery, which `run_conversation` opens."""
        if self._nursery is not None:
            self._nursery.start_soon(task, *args)
        elif not self.is_over:
            self._deferred.append((task, args))

    async def run_conversation(self, conversation: Conversation[Outgoing]) -> None:
        """Run the conversation from its start to its end, and close it.

        Raises:
            Exception: The exception that the subclass raised, here or in `feed`.
        """
        self._conversation = conversation
        try:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                nursery.start_soon(self._begin)
                for task, args in self._deferred:
                    nursery.start_soon(task, *args)
                await self._over.wait()
                nursery.cancel_scope.cancel()  # do not wait for open requests
        finally:
            self._nursery = None
            self._over.set()
            try:
                self.on_leave()
            finally:
                conversation.close(keep=self.keeps_session())
        if self._crash is not None:
            raise self._crash

    async def _begin(self) -> None:
        await trio.lowlevel.checkpoint()
        if self.is_over:  # the frames that came meanwhile may have ended it
            return
        if self.run.cancelling is not None:  # it was interrupted before its prompt was sent
            self.finish()
            return
        self._has_begun = True
        await self.begin()

    # --- the connection's side -------------------------------------------------------------------

    def feed(self, frames: Sequence[Frame], size: int) -> None:
        """Handle the frames of one read, and emit its events together."""
        if self.is_over:
            return
        try:
            self._handle_frames(frames, size)
        except Exception as error:  # noqa: BLE001  # raised by `run_conversation`
            self.crash(error)

    def _handle_frames(self, frames: Sequence[Frame], size: int) -> None:
        events = self._events = []
        try:
            self.handle_frames(frames)
        finally:
            self._events = None
            if events or self._blobs:
                self.run.emit_nowait(*events, size=size, blobs=self._blobs)
            else:
                self.run.alive()
            self._blobs.clear()

    def crash(self, error: Exception) -> None:
        """Fail the run with an error about its own frames: `run_conversation` raises it."""
        self._crash = error
        self._over.set()

    def end(self) -> None:
        """Handle the end of the frames."""
        if not self.is_over:
            self.is_broken = True
            try:
                self.on_connection_lost()
            except Exception as error:  # noqa: BLE001  # as in `feed`
                self.crash(error)

    async def room(self) -> None:
        """Wait until nearly all emitted events are stored."""
        await self.run.room()


class PhasedConversationRun(
    ConversationRun[Outgoing, Frame], Generic[Outgoing, Frame, Phase, Step]
):
    """Driver whose life cycle is a table of phases and the steps between them."""

    def __init__(
        self,
        run: RunContext,
        transitions: Mapping[Phase, Mapping[Step, Phase]],
        first: Phase,
        *,
        lost: Step,
        minor: frozenset[Step] = frozenset(),
    ) -> None:
        """`lost` is the step taken when the frames end before the conversation is over.

        `minor` steps change nothing in a phase for which the table does not name them.
        """
        super().__init__(run)
        self.phase = first
        self._transitions: Final = transitions
        self._lost: Final = lost
        self._minor: Final = minor

    def on_connection_lost(self) -> None:
        """Take the step `lost`, as the frames ended before the conversation was over."""
        self.take_step(self._lost)

    def take_step(self, step: Step) -> None:
        """Move to the phase that follows a step; a phase without steps ends the conversation.

        Steps after the end change nothing.

        Raises:
            KeyError: The table has no such step for this phase.
        """
        steps = self._transitions[self.phase]
        if self.is_over or (step in self._minor and step not in steps):
            return
        self.phase = steps[step]
        if not self._transitions[self.phase]:
            self.finish()
