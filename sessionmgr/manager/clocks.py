"""How long each kind of silence may last, and which kind a run is in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from sessionmgr.adapter import is_valid_amount

if TYPE_CHECKING:
    from sessionmgr.model import Run

MINUTE: Final = 60.0


class Clocks(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Seconds; 0 switches a timeout off, None leaves it to the next outer `Clocks`."""

    start: float | None = None
    """From the dispatch to the first sign of life."""
    store: float | None = None
    """The store is down."""
    model: float | None = None
    """Silence while a model call is open."""
    tool: float | None = None
    """Silence while a tool runs; off by default."""
    tool_warning: float | None = None
    """When to warn of that."""
    approval: float | None = None
    """A question waits; then it is denied."""
    idle: float | None = None
    """Silence that nothing explains."""
    deadline: float | None = None
    """The whole run, from its dispatch; nothing sets it back."""
    drain: float | None = None
    """The turn is over, and work in the background still open."""
    close: float | None = None
    """For a graceful end, before it is forced."""

    def __post_init__(self) -> None:
        """Refuse what no clock could show.

        Raises:
            ValueError: It names the clock.
        """
        for name in self.__struct_fields__:
            seconds: object = getattr(self, name)
            if seconds is not None and not is_valid_amount(seconds):
                raise ValueError(
                    f"the clock {name} cannot be {seconds!r}: it takes seconds, and 0 is off"
                )

    def over(self, outer: Clocks) -> Clocks:
        """Return these clocks, with those of `outer` where these say nothing.

        Args:
            outer: The clocks that apply where these set nothing.
        """
        if self == UNSET_CLOCKS:
            return outer  # as nearly always: one object serves for all sessions and runs
        ours = msgspec.structs.asdict(self)
        said = {name: value for name, value in ours.items() if value is not None}
        return msgspec.structs.replace(outer, **said)

    def of(self, name: str) -> float:
        """Return the seconds of one clock; 0 is off.

        Args:
            name: The name of the clock, such as "deadline".
        """
        return getattr(self, name) or 0.0


UNSET_CLOCKS: Final = Clocks()
DEFAULT_CLOCKS: Final = Clocks(
    start=MINUTE,
    store=MINUTE,
    model=30 * MINUTE,
    tool=0.0,
    tool_warning=10 * MINUTE,
    approval=2 * MINUTE,
    idle=30 * MINUTE,
    deadline=0.0,
    drain=MINUTE,
    close=5.0,
)


class ActiveTimeout(NamedTuple):
    """Which clock runs while it is silent like this; `warn` and `act` are seconds of silence."""

    clock: str
    warn: float
    act: float


def active_timeout(run: Run, clocks: Clocks, *, seen: bool, in_turn: bool) -> ActiveTimeout | None:
    """Say which clock runs: the state explains the silence, or nothing does.

    `seen` says whether there ever was a sign of life, `in_turn` whether the agent is at work.
    """
    if run.open_approvals:
        return None  # its own clock runs where the answer is awaited
    if not seen:
        return _half_time("start", clocks)
    if run.open_tools:
        warn, act = clocks.of("tool_warning"), clocks.of("tool")
        return _armed(ActiveTimeout("tool", min(warn or act, act / 2) if act else warn, act))
    if in_turn:
        return _half_time("model", clocks)
    return _half_time("drain" if run.open_tasks else "idle", clocks)


def silence_explanation(run: Run, *, seen: bool, in_turn: bool) -> tuple[object, ...]:
    """Return what of a run says why it is silent: with that, the clock that runs may change."""
    return (
        seen,
        in_turn,
        bool(run.open_tools),
        bool(run.open_approvals),
        bool(run.open_tasks),
        run.turns,
    )


def _half_time(clock: str, clocks: Clocks) -> ActiveTimeout | None:
    limit = clocks.of(clock)
    return _armed(ActiveTimeout(clock, limit / 2, limit))


def _armed(watched: ActiveTimeout) -> ActiveTimeout | None:
    return watched if watched.warn or watched.act else None
