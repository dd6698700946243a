"""What a supervisor knows of a child before it lives, as a value."""

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
    """How long to wait before restarts that follow each other closely.

    The first waits `minimum` seconds, each further one twice as long, up to `maximum`; a
    child that then stays up for `maximum` starts again from `minimum`. `jitter` is the share
    by which each wait is lengthened or shortened at random.
    """

    minimum: float
    maximum: float
    jitter: float = 0.0

    def delay(self, strike: int, draw: float) -> float:
        """Give the wait before the restart number `strike` (from 0), `draw` being in [0, 1).

        Args:
            strike: The number of the restart, from 0.
            draw: A random number in [0, 1).
        """
        # Past 2**64 the ceiling has long been reached; the bound keeps the power finite.
        delay = min(self.minimum * 2.0 ** min(strike, 64), self.maximum)
        return delay * (1.0 + self.jitter * (2.0 * draw - 1.0))


class ChildSpec(msgspec.Struct, Generic[A], frozen=True, kw_only=True):
    """A child to be: what runs, and what to do about its end. Made by `child(...)`."""

    kind: ChildKind
    target: Callable[..., object]
    """An actor's class, a function, or what runs a supervisor."""
    args: tuple[object, ...] = ()
    label: str
    """What a child without an id is called after."""
    body: Callable[..., Awaitable[None]]
    """The function that runs the child; its argument is the `ChildTask`."""
    prepare: Callable[..., None] | None = None
    """What is to be done before `body`, where that can be done without waiting."""
    id: str | None = None
    restart: RestartPolicy = "permanent"
    shutdown: ShutdownTime = DEFAULT_SHUTDOWN
    significant: bool = False
    backoff: Backoff | None = None
    actor: type[object] | None = None
    """The class, of a child that is an actor."""
    bound: int | None = None
    """How many messages it lets wait."""
    supervisor: object = None
    """The supervisor that a child of this kind is."""

    @property
    def is_supervisor(self) -> bool:
        """Whether the child has children of its own."""
        return self.kind == "supervisor"

    @property
    def role(self) -> str:
        """What `which_children` calls its kind."""
        return "supervisor" if self.is_supervisor else "worker"

    @property
    def stop_timeout(self) -> float:
        """For how long a stop waits before it becomes a kill."""
        return 0.0 if self.shutdown == "brutal_kill" else self.shutdown

    @property
    def terminate_timeout(self) -> float:
        """How long `terminate` may take when the actor ends by itself."""
        return DEFAULT_SHUTDOWN if self.shutdown == "brutal_kill" else self.shutdown
