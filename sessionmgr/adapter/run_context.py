"""What an adapter is handed for one run: what to do, and where to say what happens."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Protocol, cast

import msgspec

from sessionmgr.adapter.options import Options
from sessionmgr.model import (
    EndCause,
    EndReason,
    Failure,
    FailureKind,
    Json,
    Permission,
    RunCompleted,
    RunFailed,
    RunRateLimited,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sessionmgr.adapter.approval import ApprovalRequest, Decision
    from sessionmgr.model import Event, Support
    from sessionmgr.otp import DynamicSupervisor
    from sessionmgr.process import Launcher


LONGEST_MESSAGE: Final = 4000
"""Maximum number of characters of a failure's message, which is stored and printed repeatedly."""


def is_valid_amount(value: object) -> bool:
    """Say whether it is a number that something can come to: 0 or more, and finite."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and 0 <= cast("float", value) < math.inf


class Budget(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A limit on usage: for a run, or for all runs of the session or manager that it is set on."""

    usd: float | None = None
    """US dollars."""
    tokens: int | None = None
    """Tokens of input and output, without those read from the cache."""

    def __post_init__(self) -> None:
        """Refuse what cannot be used up.

        Raises:
            ValueError: It says which.
        """
        if self.usd is not None and not is_valid_amount(self.usd):
            raise ValueError(f"a budget cannot be {self.usd!r} usd")
        if self.tokens is not None and not (is_valid_amount(self.tokens) and self.tokens % 1 == 0):
            raise ValueError(f"a budget cannot be {self.tokens!r} tokens")

    def over(self, outer: Budget) -> Budget:
        """Return this budget, with what `outer` says where this says nothing.

        Args:
            outer: The budget that applies where this one sets nothing.
        """
        if self.usd is None and self.tokens is None:
            return outer
        return Budget(
            usd=outer.usd if self.usd is None else self.usd,
            tokens=outer.tokens if self.tokens is None else self.tokens,
        )


UNLIMITED_BUDGET: Final = Budget()
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
    budget: Budget = UNLIMITED_BUDGET
    effort: str | None = None
    tools_allowed: tuple[str, ...] | None = None
    tools_denied: tuple[str, ...] = ()
    directories: tuple[str, ...] = ()
    """Beside `cwd`, where the agent may work."""
    attended: bool = False
    """Whether somebody answers questions."""


class StopReason(msgspec.Struct, frozen=True, kw_only=True):
    """Why a run ends: the cause, and the caller's own words or the failure beside it."""

    cause: EndCause
    detail: str | None = None
    failure: Failure | None = None

    @classmethod
    def worded(cls, cause: EndCause, detail: str | None) -> StopReason:
        """Return a cause with a caller's own words.

        Raises:
            TypeError: They are no text, and so cannot be stored.
        """
        if not (detail is None or isinstance(detail, str)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"the detail of an end is a text, and not {detail!r}")
        return cls(cause=cause, detail=detail)


class EventInbox(Protocol):
    """Where the events of a session's runs wait to be stored."""

    def put_events(
        self,
        run: RunControl,
        events: tuple[Event, ...],
        size: int | None = None,
        blobs: Sequence[bytes] = (),
    ) -> None:
        """Add events; see `RunContext.emit_nowait`."""

    async def room(self) -> None:
        """Wait until there is room for more."""

    async def recorded(self) -> None:
        """Wait until all events are stored."""


class RunControl(Protocol):
    """The manager's side of a run, to which its `RunContext` passes everything on."""

    stop: StopReason | None

    @property
    def run_id(self) -> str: ...  # noqa: D102
    @property
    def session_id(self) -> str: ...  # noqa: D102
    @property
    def grace(self) -> float: ...  # noqa: D102
    @property
    def inbox(self) -> EventInbox: ...  # noqa: D102
    def note_activity(self) -> None: ...  # noqa: D102
    def claim(self, stop: StopReason) -> bool: ...  # noqa: D102
    def end(self, stop: StopReason) -> bool: ...  # noqa: D102
    def redact(self, text: str) -> str: ...  # noqa: D102
    async def ask(self, request: ApprovalRequest) -> Decision: ...  # noqa: D102


class RunContext:
    """One run, as its adapter sees it."""

    __slots__ = (
        *("_connections", "_control", "_inbox", "_narrow", "attended", "budget", "cwd"),
        *("directories", "effort", "env", "grace", "images", "launcher", "max_turns", "model"),
        *("options", "permission", "prompt", "provider_session_id", "resumed_from", "run_id"),
        *("schema", "session_id", "system_prompt", "tools_allowed", "tools_denied"),
    )

    def __init__(
        self,
        control: RunControl,
        spec: RunSpec,
        launcher: Launcher,
        connections: DynamicSupervisor | None = None,
        narrow: Callable[[Mapping[str, Support]], None] | None = None,
    ) -> None:
        self._control: Final = control
        self._inbox: Final = control.inbox
        self._connections: Final = connections
        self._narrow: Final = narrow
        self.run_id: Final = control.run_id
        """Our name for the run."""
        self.session_id: Final = control.session_id
        """Our name for the session."""
        self.grace: Final = control.grace
        """How many seconds it has to end by itself, once it is to end."""
        self.launcher: Final = launcher
        """What starts child processes, and owns all that comes of them."""
        self.prompt: Final = spec.prompt
        """What the agent is asked."""
        self.system_prompt: Final = spec.system_prompt
        """What it is told beforehand."""
        self.images: Final = spec.images
        """Files of images that go with the prompt."""
        self.cwd: Final = spec.cwd
        """Where it starts."""
        self.directories: Final = spec.directories
        """Where it may work beside `cwd`."""
        self.env: Final = spec.env
        """The complete environment."""
        self.model: Final = spec.model
        """Which model to use; None leaves it to the provider."""
        self.effort: Final = spec.effort
        """How hard to think; None leaves it to the provider."""
        self.tools_allowed: Final = spec.tools_allowed
        """The only tools it may use; None leaves it to the provider."""
        self.tools_denied: Final = spec.tools_denied
        """Tools it may not use."""
        self.permission: Final = spec.permission
        """What it may do, in the provider's own word."""
        self.attended: Final = spec.attended
        """Whether a question may be answered; otherwise it is denied, or ruled by the mode."""
        self.provider_session_id: Final = spec.provider_session_id
        """The provider's session to go on with."""
        self.resumed_from: Final = spec.resumed_from
        """The run that is resumed."""
        self.schema: Final = spec.schema
        """What structured output has to look like, as JSON Schema."""
        self.max_turns: Final = spec.max_turns
        """How many turns it may take."""
        self.budget: Final = spec.budget
        """What it may use up."""
        self.options: Final = spec.options
        """The provider's own options, of the class that the adapter names."""

    @property
    def connections(self) -> DynamicSupervisor:
        """Who owns what is kept alive between runs: the parent of a pool's connections."""
        assert self._connections is not None, "this run's branch has no connections"
        return self._connections

    @property
    def cancelling(self) -> StopReason | None:
        """Why the run is to end, once it is."""
        return self._control.stop

    @property
    def was_silent(self) -> bool:
        """Whether it is ended because the agent was silent: such an agent is not used again."""
        return self.cancelling is not None and self.cancelling.cause is EndCause.SILENCE

    def alive(self) -> None:
        """Give a sign of life where there is nothing to tell."""
        self._control.note_activity()

    def narrow(self, live: Mapping[str, Support]) -> None:
        """Tell what the provider itself says of its capabilities, by their names.

        That counts from now on, where it is less than what the adapter is said to have: for runs
        that are started later, and for this one. If it requires what is missing, it ends here, as
        `capability_missing`. Best told before `run_started`, which then says it, too.

        Args:
            live: The support of each capability, by its name.
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

        Args:
            events: The events, in their order.
            size: The number of bytes that were read for them, if known.
            blobs: The images that the events name by their hashes.
        """
        self._control.note_activity()
        if events or blobs:
            self._inbox.put_events(self._control, events, size, blobs)

    async def room(self) -> None:
        """Wait until what was told has nearly all been stored."""
        await self._inbox.room()

    async def emit(self, *events: Event, blobs: Sequence[bytes] = ()) -> None:
        """Tell what happened, in this order; `blobs` are the images that it names.

        Args:
            events: The events, in their order.
            blobs: The images that the events name by their hashes.
        """
        self.emit_nowait(*events, blobs=blobs)
        await self._inbox.room()

    async def recorded(self) -> None:
        """Wait until what was told is stored: before an act that must not be repeated unknowingly.

        Whatever kills this process then, the record shows the act.
        """
        await self._inbox.recorded()

    async def finish(self, *, stop_reason: str | None = None, structured: Json = None) -> None:
        """Tell that the run is done, and well. What has been claimed by others stays theirs.

        Args:
            stop_reason: The provider's own reason, if it names one.
            structured: The structured output, if the run asked for it.
        """
        self._end(
            StopReason(cause=EndCause.PROVIDER),
            RunCompleted(stop_reason=stop_reason, structured=structured),
        )
        await self.room()

    async def fail(self, failure: Failure, *, stop_reason: str | None = None) -> None:
        """Tell that the run went wrong. A rate limit that nobody waits for is such an end, too.

        Args:
            failure: The failure.
            stop_reason: The provider's own reason, if it names one.
        """
        if len(failure.message) > LONGEST_MESSAGE:
            message = f"{failure.message[:LONGEST_MESSAGE]}…"
            failure = msgspec.structs.replace(failure, message=message)
        if failure.kind == FailureKind.RATE_LIMITED:
            stop = StopReason(cause=EndCause.RATE_LIMIT, failure=failure)
            self._end(stop, RunRateLimited(failure=failure, stop_reason=stop_reason))
        else:
            stop = StopReason(cause=EndCause.PROVIDER_ERROR, failure=failure)
            is_spent = failure.kind == FailureKind.BUDGET_EXCEEDED
            reason = EndReason.BUDGET if is_spent else None
            self._end(stop, RunFailed(failure=failure, stop_reason=stop_reason, reason=reason))
        await self.room()

    def _end(self, stop: StopReason, event: Event) -> None:
        self.emit_nowait(event)  # first: what cannot be written is no end
        self._control.claim(stop)

    def time_out(self, detail: str) -> None:
        """Have the run end because a deadline of the provider's own has passed.

        As with a cancel, `interrupt` is called, and what has been claimed by others stays theirs.

        Args:
            detail: The deadline that has passed.
        """
        self._control.end(StopReason.worded(EndCause.DEADLINE, detail))

    def redact(self, text: str) -> str:
        """Return a text without the run's secrets.

        They are also removed from all events. Use this for a text that is cut before it is told:
        a part of a secret is not recognized.

        Args:
            text: The text.
        """
        return self._control.redact(text)

    async def ask(self, request: ApprovalRequest) -> Decision:
        """Ask whether the agent may do something, and wait for the answer, which has been stored.

        To be cancelled here means that the provider no longer wants to know.

        Args:
            request: The question.
        """
        return await self._control.ask(request)
