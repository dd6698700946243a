"""What the adapter of a run may do to it: emit events, ask, and end it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

import msgspec
import trio

from sessionmgr.adapter.inbox import Inbox, Urgency
from sessionmgr.adapter.validate_events import checked, checked_blobs, size_of_text
from sessionmgr.model import Cause, Failure, Kind, new_id

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessionmgr.adapter.adapter import ProviderAdapter
    from sessionmgr.adapter.question import ApprovalRequest, Decision
    from sessionmgr.adapter.run_context import RunContext
    from sessionmgr.model import Event
    from sessionmgr.otp import Run, TaskSupervisor


class Stop(msgspec.Struct, frozen=True, kw_only=True):
    """Why a run ends: the cause, and the caller's own words or the failure beside it."""

    cause: Cause
    detail: str | None = None
    failure: Failure | None = None


def require_text(detail: object) -> None:
    """Make sure that a caller's own words about an end can be stored.

    Raises:
        TypeError: They are no text.
    """
    if not (detail is None or isinstance(detail, str)):
        raise TypeError(f"the detail of an end is a text, and not {detail!r}")


class Arrived(msgspec.Struct, frozen=True, gc=False):
    """Events that an adapter has emitted, in their order.

    The garbage collector need not know it: an inbox is emptied when it is closed.
    """

    run: RunControl
    events: tuple[Event, ...]
    size: int
    blobs: tuple[bytes, ...] = ()
    """The images that these events name, to be stored with them."""
    is_text: bool = False
    """Whether they are pieces of text and nothing else."""


class Question:
    """A provider's question that waits for its answer."""

    __slots__ = ("answered", "decision", "request", "ruled", "scope")

    def __init__(self, request: ApprovalRequest, ruled: Decision | None = None) -> None:
        self.request = request
        self.ruled = ruled
        """The answer of the permission mode, if it has one."""
        self.answered = trio.Event()
        self.decision: Decision | None = None
        self.scope = trio.CancelScope()
        """The scope of the task that finds the answer."""


class RunControl:
    """A run as far as its adapter can act on it. The manager's `RunState` is one."""

    __slots__ = (
        "grace",
        "intake",
        "last_sign",
        "provider",
        "questions",
        "run_id",
        "seen",
        "session_id",
        "stop",
        "stopped_at",
    )

    def __init__(
        self, *, run_id: str, session_id: str, provider: str, intake: Inbox[object], grace: float
    ) -> None:
        self.run_id: Final = run_id
        self.session_id: Final = session_id
        self.provider: Final = provider
        self.intake: Final = intake
        self.grace: Final = grace
        """How many seconds a provider has to end by itself when it is interrupted."""
        self.stop: Stop | None = None
        """Why the run ends: the first reason wins."""
        self.stopped_at = 0.0
        """When that was said, by trio's clock."""
        self.questions: Final[dict[str, Question]] = {}
        self.last_sign = 0.0
        """When there was the last sign of life, by trio's clock."""
        self.seen = False
        """Whether there ever was a sign of life."""

    def arrive(
        self, events: tuple[Event, ...], size: int | None = None, blobs: Sequence[bytes] = ()
    ) -> None:
        """Send events and the images that they name to the recorder; a sign of life, too.

        Raises:
            TypeError: An adapter may not emit this.
        """
        self.alive()
        if not (events or blobs):
            return
        events, written = checked(events)
        if blobs:
            blobs = checked_blobs(blobs)
        if size is None:
            size = size_of_text(events) if written is None else written
            size += sum(map(len, blobs))
        is_text = written is None and bool(events)
        if self.stop is not None:
            urgency = Urgency.WITH_END
        else:
            urgency = Urgency.LATER if is_text else Urgency.SOON
        batch = Arrived(self, events, size, tuple(blobs), is_text)
        self.intake.put_events(batch, size, urgency)

    def alive(self) -> None:
        """Note a sign of life."""
        self.last_sign = trio.current_time()
        self.seen = True

    def free_approval_id(self, wanted: str) -> str:
        """Return `wanted`, or another id if an open question has it: providers reuse theirs."""
        return new_id(Kind.APPROVAL) if not wanted or wanted in self.questions else wanted

    def ask(self, question: Question) -> None:
        """Have a question answered."""
        self.alive()
        self.questions[question.request.approval_id] = question

    def withdraw(self, question: Question) -> None:
        """Forget a question; one without an answer needs none any more."""
        self.questions.pop(question.request.approval_id, None)
        if not question.answered.is_set():
            question.scope.cancel()

    def claim(self, stop: Stop) -> bool:
        """Give the reason of the run's end, in one step; False if there is one already."""
        if self.stop is not None:
            return False
        self.stop, self.stopped_at = stop, trio.current_time()
        return True

    def end(self, stop: Stop) -> bool:
        """Have the run end, by an interrupt first if possible; False if it is ending already."""
        return self.claim(stop)


class RunTask(Protocol):
    """A run's task: the adapter starts it, and its interruption, in the nursery of run tasks."""

    context: RunContext | None
    """The run as the adapter to which its start was sent sees it."""

    async def play(
        self, adapter: ProviderAdapter, context: RunContext, beside: TaskSupervisor
    ) -> None:
        """Be the task: call the adapter's `run`."""

    def launched(self, task: Run[None]) -> None:
        """Note that the adapter has started it."""

    def interrupt(self) -> None:
        """Start a task that asks the provider to end the run, if the run is still on."""
