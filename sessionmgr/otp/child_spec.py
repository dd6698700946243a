"""Specification of a child, as a value."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, Generic, Literal, NamedTuple, TypeVar

import msgspec

A = TypeVar("A", covariant=True)

RestartPolicy = Literal["permanent", "transient", "temporary"]
ChildKind = Literal["actor", "function", "supervisor"]
ShutdownTime = float | Literal["brutal_kill"]

DEFAULT_SHUTDOWN: Final = 5.0


class Backoff(NamedTuple):
    """Delays before restarts that follow each other closely.

    The first delay is `minimum` seconds, each further one is doubled, up to `maximum`; a
    child that then stays up for `maximum` starts again from `minimum`. `jitter` is the share
    by which each delay is lengthened or shortened at random.
    """

    minimum: float
    maximum: float
    jitter: float = 0.0

    def delay(self, strike: int, draw: float) -> float:
        """Return the delay before a restart.

        Args:
            strike: The number of the restart, from 0.
            draw: A random number in [0, 1).
        """
        # Past 2**64 the ceiling has long been reached; the bound keeps the power finite.
        delay = min(self.minimum * 2.0 ** min(strike, 64), self.maximum)
        return delay * (1.0 + self.jitter * (2.0 * draw - 1.0))


class ChildSpec(msgspec.Struct, Generic[A], frozen=True, kw_only=True):
    """Specification of a child: what runs, and the restart policy. Made by `child(...)`."""

    kind: ChildKind
    target: Callable[..., object]
    """An actor's class, a function, or a supervisor's `run`."""
    args: tuple[object, ...] = ()
    label: str
    """The base of the generated id of a child without one."""
    body: Callable[..., Awaitable[None]]
    """The function that runs the child; its argument is the `ChildTask`."""
    prepare: Callable[..., None] | None = None
    """The synchronous part of the start, run before `body`."""
    id: str | None = None
    restart: RestartPolicy = "permanent"
    shutdown: ShutdownTime = DEFAULT_SHUTDOWN
    significant: bool = False
    backoff: Backoff | None = None
    actor: type[object] | None = None
    """The class of a child that is an actor."""
    bound: int | None = None
    """Maximum number of queued messages; None for a child without a mailbox."""
    supervisor: object = None
    """The supervisor object of a child that is one."""

    @property
    def is_supervisor(self) -> bool:
        """Whether the child has children of its own."""
        return self.kind == "supervisor"

    @property
    def role(self) -> str:
        """The kind, as `which_children` returns it."""
        return "supervisor" if self.is_supervisor else "worker"

    @property
    def stop_timeout(self) -> float:
        """Seconds between a stop and a kill."""
        return 0.0 if self.shutdown == "brutal_kill" else self.shutdown

    @property
    def terminate_timeout(self) -> float:
        """Maximum seconds of `terminate` when the actor ends by itself."""
        return DEFAULT_SHUTDOWN if self.shutdown == "brutal_kill" else self.shutdown
