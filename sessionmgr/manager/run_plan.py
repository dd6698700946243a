"""The values of a run before its start: request, arguments, plan, negotiation and budgets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypedDict

import msgspec

from sessionmgr.adapter import UNLIMITED_BUDGET, Budget, RunSpec
from sessionmgr.manager.budget import minimum_budget
from sessionmgr.manager.clocks import Clocks
from sessionmgr.model import Json, Negotiation, Permission, PermissionMode, negotiate

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

    from sessionmgr.adapter import Approve
    from sessionmgr.manager.budget import UsageAccount
    from sessionmgr.model import Capabilities, PermissionModeName


class RunRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The request of a run; None leaves a field to the session."""

    prompt: str
    system_prompt: str | None = None
    images: tuple[str, ...] = ()
    model: str | None = None
    permission_mode: PermissionMode | str | None = None
    options: Mapping[str, Json] | msgspec.Struct = msgspec.field(default_factory=dict[str, Json])
    require: Collection[str] = ()
    prefer: Collection[str] = ()
    require_native: Collection[str] = ()
    schema: Json = None
    max_turns: int | None = None
    effort: str | None = None
    tools_allowed: Collection[str] | None = None
    tools_denied: Collection[str] = ()
    directories: Collection[str] = ()
    budget: Budget = UNLIMITED_BUDGET
    session_budget: Budget = UNLIMITED_BUDGET
    """The budget of all runs of the session; later managers apply it, too."""
    manager_budget: Budget = UNLIMITED_BUDGET
    """The budget of all runs of the manager."""
    clocks: Clocks = Clocks()
    env: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    approve: Approve | None = None
    metadata: dict[str, Json] = msgspec.field(default_factory=dict[str, Json])
    provider_session_id: str | None = None
    resumed_from: str | None = None


class CommonWishes(TypedDict, total=False):
    """The keyword arguments of a run that do not depend on the event loop of its caller.

    They accept any kind of collection, mapping and path; `checked_run_arguments` converts them.
    """

    system_prompt: str | None
    """The system prompt."""
    images: Collection[str | Path]
    """Image files that belong to the prompt."""
    model: str | None
    """The model; the default is that of the session, else the agent's own."""
    permission_mode: PermissionMode | PermissionModeName | None
    """What the agent may do without asking; the default is that of the session."""
    options: Mapping[str, object] | msgspec.Struct
    """Options of the provider."""
    require: Collection[str]
    """Capabilities without which the run is refused."""
    prefer: Collection[str]
    """Capabilities that the run uses if they are available."""
    require_native: Collection[str]
    """Required capabilities that must not be emulated."""
    schema: Mapping[str, object] | Json
    """JSON Schema of the structured output."""
    max_turns: int | None
    """Maximum number of turns."""
    effort: str | None
    """Reasoning effort, such as `low`, `medium` or `high`."""
    tools_allowed: Collection[str] | None
    """The only tools that the agent may use."""
    tools_denied: Collection[str]
    """Tools that the agent may not use."""
    directories: Collection[str | Path]
    """Further directories in which the agent may work."""
    budget: Budget
    """Limit on the usage of this run."""
    clocks: Clocks
    """Time limits; a field that is None is that of the session or manager."""
    env: Mapping[str, str]
    """Environment variables of the agent; their values are not stored."""
    metadata: Mapping[str, object]
    """The caller's metadata; results and `run_started` contain it."""


class RunArguments(CommonWishes, total=False):
    """The fields of a `RunRequest` beside the prompt, as keyword arguments."""

    approve: Approve | None
    """Function that answers the agent's requests; the default is that of the session."""


class RunPlan(msgspec.Struct, frozen=True):
    """The plan of a run that may be started."""

    spec: RunSpec
    negotiation: Negotiation
    clocks: Clocks
    wish: RunRequest
    """The request, with the clocks of the caller, else of the session, and the outer budgets."""
    secrets: tuple[str, ...]
    """The secrets of its environment and options, which must not be stored or shown."""
    asked: dict[str, Json]
    """The part of the request that is stored for a follow-up."""


class RunGrant(msgspec.Struct, frozen=True):
    """The grant of a run: what it would get if it were started."""

    negotiation: Negotiation
    permission: Permission


EMPTY_NEGOTIATION: Final = Negotiation()
# The capability that each field of a request needs, if it is set.
REQUEST_NEEDS: Final = {
    "system_prompt": "system_prompt",
    "images": "images_in",
    "schema": "structured_output",
    "max_turns": "max_turns",
    "effort": "effort",
}
# The capability that each limit of a budget needs: the provider must report that figure.
BUDGET_NEEDS: Final = {"usd": "cost", "tokens": "usage"}


def negotiate_request(offered: Capabilities, wish: RunRequest, model: str | None) -> Negotiation:
    """Negotiate the capabilities that the request names and those that its fields need."""
    takes = [need for field, need in REQUEST_NEEDS.items() if _is_requested(wish, field)]
    budget = effective_budget(wish)
    takes += [need for limit, need in BUDGET_NEEDS.items() if getattr(budget, limit) is not None]
    if model is not None:
        takes.append("model_choice")
    if not (takes or wish.require or wish.prefer or wish.require_native):
        return EMPTY_NEGOTIATION
    preferred = set(wish.prefer)
    return negotiate(
        offered,
        require=[*wish.require, *(need for need in takes if need not in preferred)],
        prefer=wish.prefer,
        require_native=wish.require_native,
    )


def effective_budget(wish: RunRequest) -> Budget:
    """Return the lowest limits of a request's own and outer budgets."""
    return minimum_budget((wish.budget, wish.session_budget, wish.manager_budget))


def _is_requested(wish: RunRequest, field: str) -> bool:
    said = getattr(wish, field)
    return said is not None and said not in ("", ())


def spent_budget_reason(
    wish: RunRequest, session: UsageAccount, manager: UsageAccount
) -> str | None:
    """Return a message if a budget of the session or the manager is used up."""
    return session.spent_reason(wish.session_budget, "session") or manager.spent_reason(
        wish.manager_budget, "manager"
    )


def remaining_budget(wish: RunRequest, session: UsageAccount, manager: UsageAccount) -> Budget:
    """Return the budget of a run that starts now: its own, limited by the others' remainders."""
    of_session = session.remaining(wish.session_budget)
    return minimum_budget((wish.budget, of_session, manager.remaining(wish.manager_budget)))
