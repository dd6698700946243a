"""The course of one run: who ended it first, and how it is wound down.

Whoever wants a run to end claims it; the first claim stands, whatever else comes, and it is made in
one step, past every queue. The claims of others make no difference any more, not even the
provider's own "done".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

import msgspec
import trio

from sessionmgr.adapter.adapter import Interrupt
from sessionmgr.adapter.lazy_event import Latch
from sessionmgr.adapter.validate_events import checked, checked_blobs, size_of_text
from sessionmgr.errors import MailboxFull, OtpError, RunCancelled, RunCrashed
from sessionmgr.model import Cause, Failure, Kind, StallSuspected, new_id
from sessionmgr.otp import Run

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sessionmgr.adapter.adapter import ProviderAdapter
    from sessionmgr.adapter.inbox import Intake
    from sessionmgr.adapter.question import ApprovalRequest, Decision
    from sessionmgr.adapter.run_context import RunContext
    from sessionmgr.model import Event, Json
    from sessionmgr.otp import TaskSupervisor


class Stop(msgspec.Struct, frozen=True, kw_only=True):
    """Why a run ends, and what is to be said about it."""

    cause: Cause
    detail: str | None = None
    failure: Failure | None = None


def require_text(detail: object) -> None:
    """Make sure that what a caller says of an end can be written down.

    Raises:
        TypeError: It is no text.
    """
    if not (detail is None or isinstance(detail, str)):
        raise TypeError(f"the detail of an end is a text, and not {detail!r}")


class Arrived(msgspec.Struct, frozen=True):
    """Events that an adapter has brought, in their order."""

    course: Course
    events: tuple[Event, ...]
    size: int
    at: float
    blobs: tuple[bytes, ...] = ()
    """The images that these events name, to be stored with them."""


class Stopped(msgspec.Struct, frozen=True):
    """A run has been claimed by somebody other than its provider."""

    course: Course


class TaskEnded(msgspec.Struct, frozen=True):
    """An adapter's `run` is over: it returned, was cut, or raised `error`."""

    course: Course
    error: BaseException | None = None


class Question:
    """A question that waits for its answer; `ruled` is what the permission mode says to it."""

    __slots__ = ("answered", "decision", "request", "ruled", "scope")

    def __init__(self, request: ApprovalRequest, ruled: Decision | None = None) -> None:
        self.request = request
        self.ruled = ruled
        self.answered = trio.Event()
        self.decision: Decision | None = None
        self.scope = trio.CancelScope()
        """Around whoever is thinking about it."""


class Asked(msgspec.Struct, frozen=True):
    """The provider has a question."""

    course: Course
    question: Question


class Withdrawn(msgspec.Struct, frozen=True):
    """The provider no longer wants to know."""

    course: Course
    question: Question


class Course:
    """One run on its way from its dispatch to its end."""

    __slots__ = (
        "_farewell",
        "_played",
        "_scope",
        "claimed_at",
        "context",
        "dispatched_at",
        "grace",
        "intake",
        "last_sign",
        "moved",
        "over",
        "provider",
        "questions",
        "recall",
        "run_id",
        "seen",
        "session_id",
        "stop",
    )

    def __init__(
        self, *, run_id: str, session_id: str, provider: str, intake: Intake[object], grace: float
    ) -> None:
        self.run_id = run_id
        self.session_id = session_id
        self.provider = provider
        self.intake: Final = intake
        self.grace = grace
        """How long a provider has to end by itself when it is asked to."""
        self.stop: Stop | None = None
        self.claimed_at = 0.0
        """When that was said."""
        self.questions: dict[str, Question] = {}
        self.dispatched_at: float | None = None
        """When its task was started, by trio's clock."""
        self.last_sign = 0.0
        self.seen = False
        """Whether there ever was a sign of life."""
        self.over: Final = Latch()
        self.context: RunContext | None = None
        """The run as the adapter to which its start was sent sees it."""
        self.recall: Callable[[], None] | None = None
        """Takes its start back; None once the adapter has launched its task."""
        self._scope = trio.CancelScope()
        self.moved: Callable[[str], None] = _stand_still
        """Hears which step of the run's phase table was taken."""
        self._played: tuple[ProviderAdapter, RunContext, TaskSupervisor] | None = None
        self._farewell: Run[None] | None = None

    def arrive(
        self, events: tuple[Event, ...], size: int | None = None, blobs: Sequence[bytes] = ()
    ) -> None:
        """Take in events and the images that they name; a sign of life, too.

        Raises:
            TypeError: No adapter may tell this.
        """
        self.alive()
        events, written = checked(events)
        if blobs:
            blobs = checked_blobs(blobs)
        if size is None:
            size = size_of_text(events) if written is None else written
            size += sum(map(len, blobs))
        self.intake.put(Arrived(self, events, size, self.last_sign, tuple(blobs)), size)

    def alive(self) -> None:
        """Note a sign of life."""
        self.last_sign = trio.current_time()
        self.seen = True

    def free_approval_id(self, wanted: str) -> str:
        """Return `wanted`, or another id if an open question has it: providers reuse theirs."""
        return new_id(Kind.APPROVAL) if not wanted or wanted in self.questions else wanted

    def ask(self, question: Question) -> None:
        """Take in a question."""
        self.alive()
        self.questions[question.request.approval_id] = question
        self.intake.put(Asked(self, question))

    def unask(self, question: Question) -> None:
        """Forget a question; one without an answer is withdrawn."""
        self.questions.pop(question.request.approval_id, None)
        if not question.answered.is_set():
            question.scope.cancel()
            self.intake.put(Withdrawn(self, question))

    def claim(self, stop: Stop) -> bool:
        """Say why the run ends; False if it has been said already."""
        if self.stop is not None:
            return False
        self.stop, self.claimed_at = stop, trio.current_time()
        if not self.over.is_set():
            self.moved("stop")
        return True

    def end(self, stop: Stop) -> bool:
        """Have the run end, politely at first; False if it is ending already."""
        if not self.claim(stop):
            return False
        self.intake.put(Stopped(self))
        recall, self.recall = self.recall, None
        if recall is None:
            self._say_farewell()
        else:
            recall()
        return True

    @property
    def was_asked_to_end(self) -> bool:
        """Whether its provider has been asked, politely, to end it."""
        return self._farewell is not None

    def cut(self) -> None:
        """Have the run end now."""
        was_cut = self.is_cut
        self._scope.cancel()
        if not was_cut:
            self.moved("grace_over")

    @property
    def is_cut(self) -> bool:
        """Whether its task was cancelled."""
        return self._scope.cancel_called

    def end_task(self) -> None:
        """Note that its task has ended, or will never begin."""
        if not self.over.is_set():
            self.over.set()
            self.moved("task_over")

    async def play(
        self, adapter: ProviderAdapter, context: RunContext, beside: TaskSupervisor
    ) -> None:
        """Be the run's task, from the dispatch on. What the adapter raises goes on its way.

        `beside` is where a task is started that ends the run politely: few runs need one, and a
        nursery for it would be a tenth of what a run costs.
        """
        self._played = (adapter, context, beside)
        if self.stop is not None:  # claimed while it was on its way here
            self._say_farewell()
        try:
            await self._play(adapter, context)
        except BaseException as error:
            self._leave(_the_one(error))
            raise
        self._leave(None)

    async def _play(self, adapter: ProviderAdapter, context: RunContext) -> None:
        try:
            with self._scope:
                await adapter.run(context)
        except BaseException:
            await self._call_off()  # shielded  # noqa: ASYNC102
            raise
        crash = await self._call_off()
        if crash is not None:
            raise crash

    def _leave(self, error: BaseException | None) -> None:
        self.end_task()
        self.intake.put(TaskEnded(self, error))

    def _say_farewell(self) -> None:
        """Have the adapter interrupt the run if it is on and there is a way; else cut it."""
        if self._played is None:
            return
        adapter = self._played[0]
        if adapter.can_interrupt() and adapter.ref.alive:
            try:
                adapter.ref.cast(Interrupt(self))
            except MailboxFull:
                self.cut()
        else:  # or its branch of the tree is going down, and takes the run with it
            self.cut()

    def ask_to_end(self) -> None:
        """Start the task that asks the provider, if the run is still on."""
        if self._played is None:
            return
        adapter, context, beside = self._played
        try:
            self._farewell = beside.launch(Run(self._end_politely, (adapter, context), None))
        except OtpError:
            self.cut()

    async def _call_off(self) -> BaseException | None:
        """Let nothing go on beside the run when it is over; return what went wrong there."""
        self._played = None  # nobody is to start anything any more
        if self._farewell is None:
            return None
        self._farewell.cancel()
        with trio.CancelScope(shield=True):  # noqa: ASYNC912  # its errors are waited for as well
            try:
                await self._farewell.result()
            except RunCancelled:
                return None
            except RunCrashed as crash:
                return crash.__cause__
        return None

    async def _end_politely(self, adapter: ProviderAdapter, context: RunContext) -> None:
        try:
            with trio.move_on_after(self.grace) as scope:
                await adapter.interrupt(context)
                await trio.sleep_forever()  # it reads on, and returns when it is done
            if scope.cancelled_caught:
                self._note_grace()
        finally:
            self.cut()

    def _note_grace(self) -> None:
        """Put on record that it has not ended by itself in its time, and is cut for that."""
        assert self.stop is not None
        evidence: dict[str, Json] = {
            "clock": "close",
            "limit": self.grace,
            "ending": self.stop.cause.value,
        }
        silent = round(trio.current_time() - self.last_sign, 3)
        stalled = StallSuspected(
            state="close", silent_for=silent, evidence=evidence, synthetic=True
        )
        self.intake.put(Arrived(self, (stalled,), 0, self.last_sign))


def _stand_still(_step: str) -> None:
    pass


def _the_one(error: BaseException) -> BaseException:
    """Return the exception itself where a group holds only one, however deeply wrapped."""
    if isinstance(error, BaseExceptionGroup):
        inner = list(cast("BaseExceptionGroup[BaseException]", error).exceptions)
        if len(inner) == 1:
            return _the_one(inner[0])
        return cast("BaseException", error)
    return error
