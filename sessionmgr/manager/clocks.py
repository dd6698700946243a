"""The clocks: how long each kind of silence of a run may last, and which kind applies now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from sessionmgr.adapter import is_valid_amount

if TYPE_CHECKING:
    from sessionmgr.model import Run

MINUTE: Final = 60.0


class Clocks(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Time limits of runs in seconds; 0 disables one, None leaves it to the next outer `Clocks`."""

    start: float | None = None
    """From the dispatch to the first sign of life."""
    store: float | None = None
    """Time for which the store may be unavailable."""
    model: float | None = None
    """Silence while a model call is open."""
    tool: float | None = None
    """Silence while a tool runs; off by default."""
    tool_warning: float | None = None
    """Silence while a tool runs that causes a warning."""
    approval: float | None = None
    """Time that an approval request may wait; then it is denied."""
    idle: float | None = None
    """Silence without an explanation."""
    deadline: float | None = None
    """The whole run, from its dispatch; no sign of life extends it."""
    drain: float | None = None
    """Time after the turn in which background work may still be open."""
    close: float | None = None
    """Time for a graceful end, before it is forced."""

    def __post_init__(self) -> None:
        """Refuse values that are not a valid number of seconds.

        Raises:
            ValueError: A clock has an invalid value; the message names the clock.
        """
        for name in self.__struct_fields__:
            seconds: object = getattr(self, name)
            if seconds is not None and not is_valid_amount(seconds):
                raise ValueError(
                    f"clock {name}: expected a number of seconds (0 disables it), got {seconds!r}"
                )

    def over(self, outer: Clocks) -> Clocks:
        """Return these clocks, with the values of `outer` for those that are None.

        Args:
            outer: The clocks that apply where these set nothing.
        """
        if self == UNSET_CLOCKS:
            return outer  # nearly always: one object serves all sessions and runs
        ours = msgspec.structs.asdict(self)
        said = {name: value for name, value in ours.items() if value is not None}
        return msgspec.structs.replace(outer, **said)

    def of(self, name: str) -> float:
        """Return the seconds of one clock; 0 is disabled.

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
    """The clock that applies to a silence; `warn` and `act` are seconds of silence."""

    clock: str
    warn: float
    act: float


def active_timeout(run: Run, clocks: Clocks, *, seen: bool, in_turn: bool) -> ActiveTimeout | None:
    """Return the clock that applies: the run's state explains the silence, or nothing does.

    `seen` is whether there was any sign of life, `in_turn` whether the agent is working.
    """
    if run.open_approvals:
        return None  # the approval has a timeout of its own
    if not seen:
        return _half_time("start", clocks)
    if run.open_tools:
        warn, act = clocks.of("tool_warning"), clocks.of("tool")
        return _armed(ActiveTimeout("tool", min(warn or act, act / 2) if act else warn, act))
    if in_turn:
        return _half_time("model", clocks)
    return _half_time("drain" if run.open_tasks else "idle", clocks)


def silence_explanation(run: Run, *, seen: bool, in_turn: bool) -> tuple[object, ...]:
    """Return the parts of a run that explain its silence; if they change, the clock may change."""
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
