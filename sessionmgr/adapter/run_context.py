"""What an adapter is handed for one run: what to do, and where to say what happens."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, cast

import msgspec

from sessionmgr.adapter.options import Options
from sessionmgr.adapter.question import by_mode
from sessionmgr.adapter.run_control import Question, Stop, require_text
from sessionmgr.adapter.validate_events import as_written
from sessionmgr.model import (
    Cause,
    Failure,
    FailureKind,
    Json,
    Permission,
    Reason,
    RunCompleted,
    RunFailed,
    RunRateLimited,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sessionmgr.adapter.question import ApprovalRequest, Decision
    from sessionmgr.adapter.run_control import RunControl
    from sessionmgr.model import Event, Support
    from sessionmgr.otp import DynamicSupervisor
    from sessionmgr.process.launcher import Launcher


LONGEST_MESSAGE: Final = 4000
"""Maximum number of characters of a failure's message, which is stored and printed repeatedly."""


def is_amount(value: object) -> bool:
    """Say whether it is a number that something can come to: 0 or more, and finite."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and 0 <= cast("float", value) < math.inf


class Budget(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A limit on usage: for a run, or for all runs of the session or manager that it is set on."""

    usd: float | None = None
    tokens: int | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be used up.

        Raises:
            ValueError: It says which.
        """
        if self.usd is not None and not is_amount(self.usd):
            raise ValueError(f"a budget cannot be {self.usd!r} usd")
        if self.tokens is not None and not (is_amount(self.tokens) and self.tokens % 1 == 0):
            raise ValueError(f"a budget cannot be {self.tokens!r} tokens")

    def over(self, outer: Budget) -> Budget:
        """Return this budget, with what `outer` says where this says nothing."""
        if self.usd is None and self.tokens is None:
            return outer
        return Budget(
            usd=outer.usd if self.usd is None else self.usd,
            tokens=outer.tokens if self.tokens is None else self.tokens,
        )


UNLIMITED: Final = Budget()
"""No limit; as nearly always, so one object serves for all."""


class RunSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What a run is to do, checked and complete."""

    prompt: str
    cwd: str
    env: Mapping[str, str]
    permission: Permission
    system_prompt: str | None = None
    images: tuple[str, ...] = ()
    model: str | None = None
    options: Options = Options()
    provider_session_id: str | None = None
    resumed_from: str | None = None
    schema: Json = None
    max_turns: int | None = None
    budget: Budget = UNLIMITED
    effort: str | None = None
    tools_allowed: tuple[str, ...] | None = None
    tools_denied: tuple[str, ...] = ()
    directories: tuple[str, ...] = ()
    """Beside `cwd`, where the agent may work."""
    attended: bool = False
    """Whether somebody answers questions."""


class RunContext:
    """One run, as its adapter sees it."""

    __slots__ = (
        "_connections",
        "_control",
        "_launcher",
        "_narrow",
        "_redact",
        "_spec",
    )

    def __init__(
        self,
        control: RunControl,
        spec: RunSpec,
        launcher: Launcher,
        connections: DynamicSupervisor | None = None,
        narrow: Callable[[Mapping[str, Support]], None] | None = None,
        redact: Callable[[str], str] | None = None,
    ) -> None:
        self._control = control
        self._spec = spec
        self._launcher = launcher
        self._connections = connections
        self._narrow = narrow
        self._redact = redact

    @property
    def run_id(self) -> str:
        """Our name for the run."""
        return self._control.run_id

    @property
    def session_id(self) -> str:
        """Our name for the session."""
        return self._control.session_id

    @property
    def prompt(self) -> str:
        """What the agent is asked."""
        return self._spec.prompt

    @property
    def system_prompt(self) -> str | None:
        """What it is told beforehand."""
        return self._spec.system_prompt

    @property
    def images(self) -> tuple[str, ...]:
        """Files of images that go with the prompt."""
        return self._spec.images

    @property
    def cwd(self) -> str:
        """Where it starts."""
        return self._spec.cwd

    @property
    def env(self) -> Mapping[str, str]:
        """The complete environment."""
        return self._spec.env

    @property
    def model(self) -> str | None:
        """Which model to use; None leaves it to the provider."""
        return self._spec.model

    @property
    def effort(self) -> str | None:
        """How hard to think; None leaves it to the provider."""
        return self._spec.effort

    @property
    def tools_allowed(self) -> tuple[str, ...] | None:
        """The only tools it may use; None leaves it to the provider."""
        return self._spec.tools_allowed

    @property
    def tools_denied(self) -> tuple[str, ...]:
        """Tools it may not use."""
        return self._spec.tools_denied

    @property
    def directories(self) -> tuple[str, ...]:
        """Where it may work beside `cwd`."""
        return self._spec.directories

    @property
    def attended(self) -> bool:
        """Whether somebody answers what is asked; otherwise it is denied, or ruled by the mode."""
        return self._spec.attended

    @property
    def permission(self) -> Permission:
        """What it may do, in the provider's own word."""
        return self._spec.permission

    @property
    def provider_session_id(self) -> str | None:
        """The provider's session to go on with."""
        return self._spec.provider_session_id

    @property
    def resumed_from(self) -> str | None:
        """The run that is resumed."""
        return self._spec.resumed_from

    @property
    def schema(self) -> Json:
        """What structured output has to look like, as JSON Schema."""
        return self._spec.schema

    @property
    def max_turns(self) -> int | None:
        """How many turns it may take."""
        return self._spec.max_turns

    @property
    def budget(self) -> Budget:
        """What it may use up."""
        return self._spec.budget

    @property
    def options(self) -> Options:
        """The provider's own options, of the class that the adapter names."""
        return self._spec.options

    @property
    def launcher(self) -> Launcher:
        """What starts child processes, and owns all that comes of them."""
        return self._launcher

    @property
    def connections(self) -> DynamicSupervisor:
        """Who owns what is kept alive between runs: the parent of a pool's connections."""
        assert self._connections is not None, "this run's branch has no connections"
        return self._connections

    @property
    def grace(self) -> float:
        """How many seconds it has to end by itself, once it is to end."""
        return self._control.grace

    @property
    def cancelling(self) -> Stop | None:
        """Why the run is to end, once it is."""
        return self._control.stop

    @property
    def was_silent(self) -> bool:
        """Whether it is ended because the agent was silent: such an agent is not used again."""
        return self.cancelling is not None and self.cancelling.cause is Cause.SILENCE

    def alive(self) -> None:
        """Give a sign of life where there is nothing to tell."""
        self._control.alive()

    def narrow(self, live: Mapping[str, Support]) -> None:
        """Tell what the provider itself says of its capabilities, by their names.

        That counts from now on, where it is less than what the adapter is said to have: for runs
        that are started later, and for this one. If it requires what is missing, it ends here, as
        `capability_missing`. Best told before `run_started`, which then says it, too.
        """
        if self._narrow is not None:
            self._narrow(live)

    def emit_nowait(
        self, *events: Event, size: int | None = None, blobs: Sequence[bytes] = ()
    ) -> None:
        """Tell what happened, without waiting for room: for what reads, and waits between reads.

        `size` is the number of bytes that were read for it, if that is known. `blobs` are the
        images that the events name by their sha256: they are stored before any of these events is
        visible.
        """
        self._control.arrive(events, size, blobs)

    async def room(self) -> None:
        """Wait until what was told has nearly all been stored."""
        await self._control.intake.room()

    async def emit(self, *events: Event, blobs: Sequence[bytes] = ()) -> None:
        """Tell what happened, in this order; `blobs` are the images that it names."""
        self._control.arrive(events, None, blobs)
        await self._control.intake.room()

    async def recorded(self) -> None:
        """Wait until what was told is stored: before an act that must not be repeated unknowingly.

        Whatever kills this process then, the record shows the act.
        """
        await self._control.intake.recorded()

    async def finish(self, *, stop_reason: str | None = None, structured: Json = None) -> None:
        """Tell that the run is done, and well. What has been claimed by others stays theirs."""
        self._end(
            Stop(cause=Cause.PROVIDER),
            RunCompleted(stop_reason=stop_reason, structured=structured),
        )
        await self.room()

    async def fail(self, failure: Failure, *, stop_reason: str | None = None) -> None:
        """Tell that the run went wrong. A rate limit that nobody waits for is such an end, too."""
        if len(failure.message) > LONGEST_MESSAGE:
            message = f"{failure.message[:LONGEST_MESSAGE]}…"
            failure = msgspec.structs.replace(failure, message=message)
        if failure.kind == FailureKind.RATE_LIMITED:
            stop = Stop(cause=Cause.RATE_LIMIT, failure=failure)
            self._end(stop, RunRateLimited(failure=failure, stop_reason=stop_reason))
        else:
            stop = Stop(cause=Cause.PROVIDER_ERROR, failure=failure)
            is_spent = failure.kind == FailureKind.BUDGET_EXCEEDED
            reason = Reason.BUDGET if is_spent else None
            self._end(stop, RunFailed(failure=failure, stop_reason=stop_reason, reason=reason))
        await self.room()

    def _end(self, stop: Stop, event: Event) -> None:
        self._control.arrive((event,))  # first: what cannot be written is no end
        self._control.claim(stop)

    def time_out(self, detail: str) -> None:
        """Have the run end because a deadline of the provider's own has passed.

        As with a cancel, `interrupt` is called, and what has been claimed by others stays theirs.
        """
        require_text(detail)
        self._control.end(Stop(cause=Cause.DEADLINE, detail=detail))

    def redact(self, text: str) -> str:
        """Return a text without the run's secrets.

        They are also removed from all events. Use this for a text that is cut before it is told:
        a part of a secret is not recognized.
        """
        return text if self._redact is None else self._redact(text)

    async def ask(self, request: ApprovalRequest) -> Decision:
        """Ask whether the agent may do something, and wait for the answer, which has been stored.

        To be cancelled here means that the provider no longer wants to know.
        """
        request = msgspec.structs.replace(
            as_written(request),
            approval_id=self._control.free_approval_id(request.approval_id),
            session_id=self.session_id,
            run_id=self.run_id,
            provider=self._control.provider,
            cwd=self.cwd,
        )
        directories = (self.cwd, *self._spec.directories)
        question = Question(request, by_mode(self.permission.asked, request, directories))
        self._control.ask(question)
        try:
            await question.answered.wait()
        finally:
            self._control.withdraw(question)
        assert question.decision is not None
        return question.decision
