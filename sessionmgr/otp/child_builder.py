"""Builder of child specifications: `child(...)`."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Awaitable, Callable
from typing import TypeVar, cast, overload

from sessionmgr.otp.actor import Actor, prepare_actor, run_actor
from sessionmgr.otp.base_supervisor import BaseSupervisor
from sessionmgr.otp.child_spec import Backoff, ChildSpec, RestartPolicy, ShutdownTime
from sessionmgr.otp.function_child import run_function, run_with_status

A = TypeVar("A", bound=Actor)

# The default options.
PLAIN = (None, "permanent", None, False)
RESTARTS = ("permanent", "transient", "temporary")


@overload
def child(
    target: Callable[..., A],
    *args: object,
    id: str | None = None,
    restart: RestartPolicy = "permanent",
    shutdown: ShutdownTime | None = None,
    significant: bool = False,
    backoff: Backoff | tuple[float, float, float] | None = None,
) -> ChildSpec[A]: ...
@overload
def child(
    target: BaseSupervisor | Callable[..., Awaitable[object]],
    *args: object,
    id: str | None = None,
    restart: RestartPolicy = "permanent",
    shutdown: ShutdownTime | None = None,
    significant: bool = False,
    backoff: Backoff | tuple[float, float, float] | None = None,
) -> ChildSpec[Actor]: ...
def child(
    target: Callable[..., object] | BaseSupervisor,
    *args: object,
    id: str | None = None,
    restart: RestartPolicy = "permanent",
    shutdown: ShutdownTime | None = None,
    significant: bool = False,
    backoff: Backoff | tuple[float, float, float] | None = None,
) -> ChildSpec[Actor]:
    """Describe a child for a supervisor.

    A function with a parameter `task_status` has started when it calls `task_status.started()`; any
    other function has started at once.

    Args:
        target: A class of actors, an async function, or another supervisor.
        args: The arguments of the class or function; `functools.partial` adds keywords.
        id: Its id among its siblings; by default a generated one, for a supervisor its name.
        restart: "permanent" (the default) restarts it after every end, "transient" unless it ended
            with `Normal` or `Shutdown`, "temporary" never; a temporary child is then forgotten.
        shutdown: Seconds between a stop and a kill (by default 5, for a supervisor `math.inf`), or
            "brutal_kill".
        significant: Whether its end may end the supervisor (see its `auto_shutdown`); by default
            it does not.
        backoff: The delays before restarts, see `Backoff`; by default there are none.

    Raises:
        TypeError: `target` is none of the three.
        ValueError: An option is invalid.
    """
    if restart not in RESTARTS:
        raise ValueError(f"restart={restart!r}: must be one of {', '.join(RESTARTS)}")
    if shutdown is not None and shutdown != "brutal_kill" and not _is_duration(shutdown):
        raise ValueError(f"shutdown={shutdown!r}: must be seconds, math.inf or 'brutal_kill'")
    if id is not None and not isinstance(id, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"id={id!r}: must be a string")
    if significant and restart == "permanent":
        raise ValueError(
            "significant=True with restart='permanent': a child that is always restarted "
            "never ends its supervisor; make it transient or temporary"
        )
    plan = Backoff(*backoff) if backoff is not None else None
    if plan is not None and not (0 <= plan.minimum <= plan.maximum and 0 <= plan.jitter <= 1):
        raise ValueError(f"backoff={plan}: requires 0 <= minimum <= maximum and 0 <= jitter <= 1")
    what = _describe(target)
    if not args and plan is None and (id, restart, shutdown, significant) == PLAIN:
        return what
    return ChildSpec(
        kind=what.kind,
        target=what.target,
        args=args,
        label=what.label,
        body=what.body,
        prepare=what.prepare,
        id=what.id if id is None else id,
        restart=restart,
        shutdown=what.shutdown if shutdown is None else shutdown,
        significant=significant,
        backoff=plan,
        actor=what.actor,
        bound=what.bound,
        supervisor=what.supervisor,
    )


def as_spec(what: ChildSpec[A] | Callable[..., object] | BaseSupervisor) -> ChildSpec[Actor]:
    """Return the specification of a child that is given as one, or as a bare target."""
    return what if isinstance(what, ChildSpec) else child(what)  # type: ignore[arg-type]


def _is_duration(value: object) -> bool:
    return isinstance(value, int | float) and not math.isnan(value) and value >= 0


def _describe(target: Callable[..., object] | BaseSupervisor) -> ChildSpec[Actor]:
    plain: object = target
    if inspect.isclass(plain) and issubclass(plain, Actor):
        return _describe_actor(plain, plain)
    if isinstance(target, BaseSupervisor):
        return ChildSpec(
            kind="supervisor",
            target=target.run,
            label=target.name,
            id=target.given_name,
            body=target.run,
            shutdown=math.inf,
            supervisor=target,
        )
    if isinstance(plain, functools.partial):
        plain = cast("functools.partial[object]", plain).func
    label = getattr(plain, "__name__", type(plain).__name__)
    if inspect.isclass(plain) and issubclass(plain, Actor):
        return _describe_actor(target, plain)
    if inspect.iscoroutinefunction(plain) or inspect.iscoroutinefunction(_call_text(plain)):
        wants_status = "task_status" in inspect.signature(target).parameters
        return ChildSpec(
            kind="function",
            target=target,
            label=label,
            body=run_with_status if wants_status else run_function,
        )
    raise TypeError(
        f"a child must be a class of actors, an async function or a supervisor, not {target!r}"
    )


def _describe_actor(target: Callable[..., object], actor: type[Actor]) -> ChildSpec[Actor]:
    if actor.mailbox < 1:
        raise ValueError(f"{actor.__name__}.mailbox={actor.mailbox}: must be at least 1")
    return ChildSpec(
        kind="actor",
        target=target,
        label=actor.__name__,
        body=run_actor,
        # An `init` of its own may have to be cancelled, so it needs the scope of `body`.
        prepare=prepare_actor if actor.init is Actor.init else None,
        actor=actor,
        bound=actor.mailbox,
    )


def _call_text(target: object) -> object:
    return getattr(target, "__call__", None)  # noqa: B004  # its kind matters, not that it is
