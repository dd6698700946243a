"""The base class of a driver: one run's side of a conversation whose frames are pushed.

The connection's reader calls `feed`, which hands the frames of one read to the subclass and emits
the events of that read in one go. What has to wait (an approval, a request of ours) runs in tasks
of the driver's own nursery, which `play` opens and which is cancelled when the conversation is
over. A crash of the subclass ends this run alone: `play` raises it.

    class EchoDriver(ConversationRun[Outgoing, Frame]):
        async def begin(self) -> None:
            await self.conversation.send(Say(self.run.prompt))

        def take(self, frames: Sequence[Frame]) -> None:
            for frame in frames:
                self.emit(*normalise(frame, self._state))
                if isinstance(frame, TurnEnded):
                    self.over()
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
    """One run's side of a conversation. A subclass says how it begins, and what frames mean."""

    def __init__(self, run: RunContext) -> None:
        self.run: Final = run
        self.is_broken = False
        """Whether the frames ended before the conversation was over."""
        self._conversation: Conversation[Outgoing] | None = None
        self._has_begun = False
        self._nursery: trio.Nursery | None = None
        self._deferred: Final[list[tuple[Task, tuple[object, ...]]]] = []
        self._events: list[Event] | None = None
        """The events of the read that is being taken."""
        self._blobs: Final[list[bytes]] = []
        self._over: Final = trio.Event()
        self._crash: Exception | None = None

    # --- what a subclass implements --------------------------------------------------------------

    async def begin(self) -> None:
        """Send the prompt, and whatever comes before it. It runs beside the reading.

        A run that is to end already does not begin.
        """
        raise NotImplementedError

    def handle_frames(self, frames: Sequence[Frame]) -> None:
        """Take the frames of one read: emit events, start tasks, note the end. It never waits."""
        raise NotImplementedError

    async def interrupt(self) -> None:
        """Ask the provider to end the turn; frames are taken until it has.

        Before the prompt is sent it ends the conversation; afterwards, when it is over, nothing.
        """
        await trio.lowlevel.checkpoint()
        if not self._has_begun:
            self.finish()
        elif not self.is_over:
            await self.conversation.interrupt()

    async def add(self, content: str, message_id: str) -> bool:
        """Give another message to the turn, and say whether it was taken; see `FollowUps`."""
        await trio.lowlevel.checkpoint()
        return False

    def on_connection_lost(self) -> None:
        """Note that the frames ended before the conversation was over."""
        self.finish()

    def on_leave(self) -> None:
        """Release all who wait for this conversation; it is over, or its run is cancelled."""
        return

    def keeps_session(self) -> bool:
        """Whether the provider may keep the session loaded for the next run."""
        return False

    # --- what it has ----------------------------------------------------------------------------

    @property
    def conversation(self) -> Conversation[Outgoing]:
        """The conversation, once `play` has it."""
        assert self._conversation is not None, "it is not played yet"
        return self._conversation

    @property
    def is_over(self) -> bool:
        """Whether the conversation is over: what comes now is not taken any more."""
        return self._over.is_set()

    def finish(self) -> None:
        """End the conversation: the tasks that are left are cancelled, and `play` returns."""
        self._over.set()
        if self._nursery is not None:  # here, and not in `play`: that would be one turn later
            self._nursery.cancel_scope.cancel()

    def emit(self, *events: Event, blobs: Sequence[bytes] = ()) -> None:
        """Emit events: at once, or, while a read is taken, together with that read's others.

        `blobs` are the images that the events name by their sha256.
        """
        if self._events is None:
            self.run.emit_nowait(*events, blobs=blobs)
        else:
            self._events.extend(events)
            self._blobs.extend(blobs)

    def start(self, task: Task, *args: object) -> None:
        """Run a task beside the reading; one that is started before `play` begins with it."""
        if self._nursery is not None:
            self._nursery.start_soon(task, *args)
        elif not self.is_over:
            self._deferred.append((task, args))

    async def run_conversation(self, conversation: Conversation[Outgoing]) -> None:
        """Have the run's prompt answered, to the end of the conversation, and close it.

        Raises:
            Exception: What the subclass has raised, here or in `feed`.
        """
        self._conversation = conversation
        try:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                nursery.start_soon(self._begin)
                for task, args in self._deferred:
                    nursery.start_soon(task, *args)
                await self._over.wait()
                nursery.cancel_scope.cancel()  # who still asks is not waited for
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
        if self.is_over:  # what has come meanwhile may have ended it
            return
        if self.run.cancelling is not None:  # it was interrupted before it was asked anything
            self.finish()
            return
        self._has_begun = True
        await self.begin()

    # --- the connection's side -------------------------------------------------------------------

    def feed(self, frames: Sequence[Frame], size: int) -> None:
        """Take the frames of one read, and emit the events of it in one go."""
        if self.is_over:
            return
        try:
            self._handle_frames(frames, size)
        except Exception as error:  # noqa: BLE001  # of this run and not of the reader: see `play`
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
        """End the run with an error of its own frames: `play` raises it."""
        self._crash = error
        self._over.set()

    def end(self) -> None:
        """Note that no more frames will come."""
        if not self.is_over:
            self.is_broken = True
            try:
                self.on_connection_lost()
            except Exception as error:  # noqa: BLE001  # as in `feed`: others are told after us
                self.crash(error)

    async def room(self) -> None:
        """Wait until nearly all that was emitted is stored."""
        await self.run.room()


class PhasedConversationRun(
    ConversationRun[Outgoing, Frame], Generic[Outgoing, Frame, Phase, Step]
):
    """A conversation whose life cycle is a table of phases, and of the steps between them."""

    def __init__(
        self,
        run: RunContext,
        transitions: Mapping[Phase, Mapping[Step, Phase]],
        first: Phase,
        *,
        lost: Step,
        minor: frozenset[Step] = frozenset(),
    ) -> None:
        """`lost` is the step when the frames end before the conversation is over.

        `minor` steps change nothing in a phase in which the table does not name them.
        """
        super().__init__(run)
        self.phase = first
        self._transitions: Final = transitions
        self._lost: Final = lost
        self._minor: Final = minor

    def on_connection_lost(self) -> None:
        """Note that the frames ended before the conversation was over."""
        self.take_step(self._lost)

    def take_step(self, step: Step) -> None:
        """Go on to another phase; one without further steps is the end of the conversation.

        What comes after the end changes nothing.

        Raises:
            KeyError: The step is impossible in this phase.
        """
        steps = self._transitions[self.phase]
        if self.is_over or (step in self._minor and step not in steps):
            return
        self.phase = steps[step]
        if not self._transitions[self.phase]:
            self.finish()
