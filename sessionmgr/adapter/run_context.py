"""Context of one run for its adapter: the request, and the calls that report events and the end."""

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
    """Return whether a value is a valid amount: a finite number, 0 or more."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and 0 <= cast("float", value) < math.inf


class Budget(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Limit on usage: of a run, or of all runs of the session or manager on which it is set."""

    usd: float | None = None
    """US dollars."""
    tokens: int | None = None
    """Tokens of input and output, without those read from the cache."""

    def __post_init__(self) -> None:
        """Refuse a limit that is negative or not finite.

        Raises:
            ValueError: A limit is invalid; the message names it.
        """
        if self.usd is not None and not is_valid_amount(self.usd):
            raise ValueError(f"budget: usd must be finite and 0 or more, not {self.usd!r}")
        if self.tokens is not None and not (is_valid_amount(self.tokens) and self.tokens % 1 == 0):
            raise ValueError(f"budget: tokens must be an integer, 0 or more, not {self.tokens!r}")

    def over(self, outer: Budget) -> Budget:
        """Return this budget; each limit that it does not set is taken from `outer`.

        Args:
            outer: The budget whose limits apply where this one sets none.
        """
        if self.usd is None and self.tokens is None:
            return outer
        return Budget(
            usd=outer.usd if self.usd is None else self.usd,
            tokens=outer.tokens if self.tokens is None else self.tokens,
        )


UNLIMITED_BUDGET: Final = Budget()
"""No limit. Most runs have none, so one object serves for all."""


class RunSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Specification of a run, checked and complete."""

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
    """Directories beside `cwd` in which the agent may work."""
    attended: bool = False
    """Whether requests for approval are answered."""


class StopReason(msgspec.Struct, frozen=True, kw_only=True):
    """Reason for the end of a run: the cause, with the caller's words or the failure."""

    cause: EndCause
    detail: str | None = None
    failure: Failure | None = None

    @classmethod
    def worded(cls, cause: EndCause, detail: str | None) -> StopReason:
        """Return a cause with a caller's own words.

        Raises:
            TypeError: The words are not a string, and so cannot be stored.
        """
        if not (detail is None or isinstance(detail, str)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"the detail of an end must be a string, not {detail!r}")
        return cls(cause=cause, detail=detail)


class EventInbox(Protocol):
    """Queue of the events of a session's runs that wait to be stored."""

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
    """The manager's side of a run, to which its `RunContext` passes all calls."""

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
    def begin_stop(self, stop: StopReason) -> bool: ...  # noqa: D102
    def end(self, stop: StopReason) -> bool: ...  # noqa: D102
    def redact(self, text: str) -> str: ...  # noqa: D102
    async def ask(self, request: ApprovalRequest) -> Decision: ...  # noqa: D102


class RunContext:
    """Context of one run, as its adapter sees it."""

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
        """Our id of the run."""
        self.session_id: Final = control.session_id
        """Our id of the session."""
        self.grace: Final = control.grace
        """Seconds that the run has to end by itself after it was asked to."""
        self.launcher: Final = launcher
        """Starts child processes, and owns all their descendants."""
        self.prompt: Final = spec.prompt
        """The prompt."""
        self.system_prompt: Final = spec.system_prompt
        """The system prompt."""
        self.images: Final = spec.images
        """Paths of the images that belong to the prompt."""
        self.cwd: Final = spec.cwd
        """The working directory."""
        self.directories: Final = spec.directories
        """Directories beside `cwd` in which the agent may work."""
        self.env: Final = spec.env
        """The complete environment."""
        self.model: Final = spec.model
        """The model; None leaves the choice to the provider."""
        self.effort: Final = spec.effort
        """The reasoning effort; None leaves the choice to the provider."""
        self.tools_allowed: Final = spec.tools_allowed
        """The only tools that the agent may use; None leaves the choice to the provider."""
        self.tools_denied: Final = spec.tools_denied
        """Tools that the agent may not use."""
        self.permission: Final = spec.permission
        """The permission mode, with the provider's own name for it."""
        self.attended: Final = spec.attended
        """Whether requests for approval are answered; otherwise they are denied, or decided by the
        mode.
        """
        self.provider_session_id: Final = spec.provider_session_id
        """The id of the provider's session to continue; None for a new session."""
        self.resumed_from: Final = spec.resumed_from
        """The run that is resumed."""
        self.schema: Final = spec.schema
        """The JSON Schema of the structured output."""
        self.max_turns: Final = spec.max_turns
        """Maximum number of turns."""
        self.budget: Final = spec.budget
        """The limit on usage."""
        self.options: Final = spec.options
        """The provider's own options, of the class that the adapter names."""

    @property
    def connections(self) -> DynamicSupervisor:
        """The supervisor of resources kept between runs, such as a pool's connections."""
        assert self._connections is not None, "this run's branch has no connections"
        return self._connections

    @property
    def cancelling(self) -> StopReason | None:
        """The reason why the run was asked to end; None until then."""
        return self._control.stop

    @property
    def was_silent(self) -> bool:
        """Whether the run ends because the agent was silent: such an agent is not used again."""
        return self.cancelling is not None and self.cancelling.cause is EndCause.SILENCE

    def alive(self) -> None:
        """Report a sign of life that has no event."""
        self._control.note_activity()

    def narrow(self, live: Mapping[str, Support]) -> None:
        """Report capabilities that the provider itself says it lacks, by their names.

        They count from now on where they are less than the adapter declares: for later runs, and
        for this one. If this run requires a missing one, it ends here as `capability_missing`. Call
        it before `run_started` is emitted if possible, because that event lists the capabilities.

        Args:
            live: The support of each capability, by its name.
        """
        if self._narrow is not None:
            self._narrow(live)

    def emit_nowait(
        self, *events: Event, size: int | None = None, blobs: Sequence[bytes] = ()
    ) -> None:
        """Report events without waiting for room: for readers, which wait between two reads.

        `size` is the number of bytes that were read for them, if known. `blobs` are the images that
        the events name by their sha256: they are stored before any of these events is visible.

        Args:
            events: The events, in their order.
            size: The number of bytes that were read for them, if known.
            blobs: The images that the events name by their hashes.
        """
        self._control.note_activity()
        if events or blobs:
            self._inbox.put_events(self._control, events, size, blobs)

    async def room(self) -> None:
        """Wait until nearly all reported events are stored."""
        await self._inbox.room()

    async def emit(self, *events: Event, blobs: Sequence[bytes] = ()) -> None:
        """Report events in this order, and wait for room.

        Args:
            events: The events, in their order.
            blobs: The images that the events name by their hashes.
        """
        self.emit_nowait(*events, blobs=blobs)
        await self._inbox.room()

    async def recorded(self) -> None:
        """Wait until all reported events are stored.

        Call it before an act that must not be repeated unawares.
        If this process is killed afterwards, the record shows the act.
        """
        await self._inbox.recorded()

    async def finish(self, *, stop_reason: str | None = None, structured: Json = None) -> None:
        """Report that the run has succeeded; an earlier cause of its end stays in force.

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
        """Report that the run has failed. A rate limit that no retry waits for is a failure, too.

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
        self.emit_nowait(event)  # first: an event that cannot be encoded must not end the run
        self._control.begin_stop(stop)

    def time_out(self, detail: str) -> None:
        """End the run because a deadline of the provider itself has passed.

        As with a cancel, `interrupt` is called. If another cause has ended the run first, that one
        stays.

        Args:
            detail: The deadline that has passed.
        """
        self._control.end(StopReason.worded(EndCause.DEADLINE, detail))

    def redact(self, text: str) -> str:
        """Return a text without the run's secrets.

        They are also removed from all events. Use this for a text that is truncated before it is
        reported: part of a secret is not recognized.

        Args:
            text: The text.
        """
        return self._control.redact(text)

    async def ask(self, request: ApprovalRequest) -> Decision:
        """Ask whether the agent may do something, and wait for the decision, which is then stored.

        Cancelling this call means that the provider no longer waits for the answer.

        Args:
            request: The request.
        """
        return await self._control.ask(request)
