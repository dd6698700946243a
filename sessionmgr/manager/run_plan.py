"""What a run is to do, checked before anything is started or stored."""

from __future__ import annotations

import os
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypedDict

import msgspec

from sessionmgr.adapter import UNLIMITED_BUDGET, Budget, CapabilityMissing, RunSpec, resolve_options
from sessionmgr.adapter.kit import schema_fault
from sessionmgr.manager.budget import minimum_budget
from sessionmgr.manager.clocks import Clocks
from sessionmgr.manager.errors import (
    BudgetUnenforceable,
    DirectoryMissing,
    ManagerClosing,
    RunRequestInvalid,
    RunRequestUnsupported,
)
from sessionmgr.manager.resume_spec import option_secrets, resume_spec_of
from sessionmgr.model import (
    UNSUPPORTED,
    Json,
    Negotiation,
    Permission,
    PermissionMode,
    encode_json,
    negotiate,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from sessionmgr.adapter import Approve, Health, Options, ProviderAdapter
    from sessionmgr.manager.manager_state import ManagerState
    from sessionmgr.model import Capabilities, PermissionModeName, Session


def parse_permission_mode(name: PermissionMode | str) -> PermissionMode:
    """Return the permission mode of that name.

    Raises:
        ValueError: There is none.
    """
    try:
        return PermissionMode(name)
    except ValueError:
        raise ValueError(
            f"there is no permission mode {name!r}; {permission_mode_hint(name)}"
        ) from None


def permission_mode_hint(name: str) -> str:
    """Return a hint for an unknown permission mode: the nearest one, and all that exist."""
    modes = [mode.value for mode in PermissionMode]
    meant = _ELSEWHERE.get(name, name).lower()
    nearest = get_close_matches(meant, modes, n=1)
    hint = f"did you mean {nearest[0]!r}? " if nearest else ""
    return f"{hint}there are: {', '.join(modes)}"


_ELSEWHERE: Final = {"bypassPermissions": PermissionMode.DANGEROUSLY_SKIP_PERMISSIONS.value}
"""The name that a provider uses for a mode."""


class RunRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a caller asks for when a run is started; None leaves it to the session."""

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
    """For all runs of the session; this manager and the next one apply it."""
    manager_budget: Budget = UNLIMITED_BUDGET
    """For all runs of the manager."""
    clocks: Clocks = Clocks()
    env: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    approve: Approve | None = None
    metadata: dict[str, Json] = msgspec.field(default_factory=dict[str, Json])
    provider_session_id: str | None = None
    resumed_from: str | None = None


class CommonWishes(TypedDict, total=False):
    """The keyword arguments of a run that do not depend on the event loop of its caller.

    They accept any kind of collection, mapping and path; `plain_wishes` converts them.
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
    """The fields of a `RunWish` beside the prompt, as keyword arguments."""

    approve: Approve | None
    """Function that answers the agent's requests; the default is that of the session."""


class RunPlan(msgspec.Struct, frozen=True):
    """A run that may be started."""

    spec: RunSpec
    negotiation: Negotiation
    clocks: Clocks
    wish: RunRequest
    """With the clocks of the caller, else of the session, and the outer budgets."""
    secrets: tuple[str, ...]
    """The secrets of its environment and options, which must not be stored or shown."""
    asked: dict[str, Json]
    """The part of the wish that is stored for a follow-up."""


class RunGrant(msgspec.Struct, frozen=True):
    """What a run would be granted, if it were started."""

    negotiation: Negotiation
    permission: Permission


def plan_run(tables: ManagerState, session: Session, wish: RunRequest) -> RunPlan:
    """Make a plan of a wish that says all that its session has to say.

    Raises:
        StartRefused: The provider cannot do it, or not so; which of its kinds says why.
        VariableRefused: A variable may not be given to a child.
    """
    if not tables.open:
        raise ManagerClosing
    if tables.budget is not UNLIMITED_BUDGET:
        wish = msgspec.structs.replace(wish, manager_budget=tables.budget)
    encode_json(wish.metadata)  # what is no JSON is the caller's mistake, here and now
    tree = tables.providers[session.provider]
    tree.require_up()
    adapter = tree.adapter_class
    _require_served(adapter, wish)
    model = wish.model or session.model
    options = _run_options(adapter, wish, model)
    offered = tree.capabilities_for(options)
    asked, (wish, negotiation) = wish, _negotiate_or_raise(tree.name, offered, wish, model)
    mode = parse_permission_mode(wish.permission_mode or session.permission_mode)
    permission = adapter.permissions.ask(adapter.name, mode)
    chosen = None if offered.model_choice is UNSUPPORTED else model
    if wish is not asked or chosen != model:  # what was left out is left out of the options, too
        options = _run_options(adapter, wish, chosen)
    directories = tuple(str(Path(session.cwd, each)) for each in wish.directories)
    for directory in (session.cwd, *directories):
        if not os.path.isdir(directory):  # noqa: PTH112  # half the time of a Path
            raise DirectoryMissing(directory)
    environment = tree.environment({**options.variables(), **wish.env})
    spec = RunSpec(
        prompt=wish.prompt,
        cwd=session.cwd,
        env=environment.variables,
        permission=permission,
        system_prompt=wish.system_prompt,
        images=wish.images,
        model=chosen,
        options=options,
        provider_session_id=wish.provider_session_id,
        resumed_from=wish.resumed_from,
        schema=wish.schema,
        max_turns=wish.max_turns,
        effort=wish.effort,
        tools_allowed=None if wish.tools_allowed is None else tuple(wish.tools_allowed),
        tools_denied=tuple(wish.tools_denied),
        directories=directories,
        budget=_effective_budget(wish),
        attended=wish.approve is not None,
    )
    clocks = wish.clocks.over(tables.clocks)
    secrets = (*environment.secrets, *option_secrets(wish.options))
    return RunPlan(
        spec=spec,
        negotiation=negotiation,
        clocks=clocks,
        wish=asked,
        secrets=secrets,
        asked=resume_spec_of(
            asked, secrets
        ),  # raises here: an unstorable wish is the caller's mistake
    )


def run_grant(tables: ManagerState, session: Session, wish: RunRequest) -> RunGrant:
    """Return the grant of a run in a session, without starting or storing anything.

    Raises:
        StartRefused: The run would be refused or could never succeed.
        VariableRefused: A child may not get a variable.
    """
    plan = plan_run(tables, session, wish)
    check_run_content(tables, session.provider, plan.spec)
    return RunGrant(plan.negotiation, plan.spec.permission)


def run_readiness(tables: ManagerState, session: Session, wish: RunRequest) -> Health:
    """Check whether the program of a run could start now, and has a login.

    Raises:
        StartRefused: The run would be refused.
        VariableRefused: A child may not get a variable.
    """
    spec = plan_run(tables, session, wish).spec
    adapter = tables.providers[session.provider].adapter_class
    return adapter.readiness(spec.options, spec.env, spec.cwd)


def check_run_content(tables: ManagerState, provider: str, spec: RunSpec) -> None:
    """Look at what is said to a provider, too: a run would find out for itself.

    Raises:
        WishInvalid: It could never go well.
    """
    schema = schema_fault(spec.schema)
    fault = tables.providers[provider].adapter_class.fault(spec)
    if schema is not None:
        fault = f"schema: {schema}"
    if fault is not None:
        raise RunRequestInvalid(provider, fault)


EMPTY_NEGOTIATION: Final = Negotiation()
# What a wish takes of the provider by its mere being there.
_NEEDS: Final = {
    "system_prompt": "system_prompt",
    "images": "images_in",
    "schema": "structured_output",
    "max_turns": "max_turns",
    "effort": "effort",
}
# What a provider has to tell of, or else the budget of a run would be spent unseen.
_BUDGET_NEEDS: Final = {"usd": "cost", "tokens": "usage"}


def _require_served(adapter: type[ProviderAdapter], wish: RunRequest) -> None:
    asked = {
        "tools_allowed": wish.tools_allowed is not None,  # an empty list allows none
        "tools_denied": bool(wish.tools_denied),
        "directories": bool(wish.directories),
    }
    for field, is_asked in asked.items():
        if is_asked and field not in adapter.serves:
            raise RunRequestUnsupported(adapter.name, field)


def negotiate_request(offered: Capabilities, wish: RunRequest, model: str | None) -> Negotiation:
    """Ask for what the wish names, and for what it takes to grant the rest of it."""
    takes = [need for field, need in _NEEDS.items() if _is_requested(wish, field)]
    budget = _effective_budget(wish)
    takes += [need for limit, need in _BUDGET_NEEDS.items() if getattr(budget, limit) is not None]
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


def _effective_budget(wish: RunRequest) -> Budget:
    return minimum_budget((wish.budget, wish.session_budget, wish.manager_budget))


def _is_requested(wish: RunRequest, field: str) -> bool:
    said = getattr(wish, field)
    return said is not None and said not in ("", ())


def _run_options(adapter: type[ProviderAdapter], wish: RunRequest, model: str | None) -> Options:
    normalised = {"model": model, "max_turns": wish.max_turns, "effort": wish.effort}
    return resolve_options(adapter.name, adapter.options, wish.options, normalised)


def _missing_capability_error(
    provider: str, negotiation: Negotiation, wish: RunRequest
) -> CapabilityMissing:
    """Return the error for missing capabilities: about the budget if only the budget needs them."""
    for limit, need in _BUDGET_NEEDS.items():
        amount = getattr(_effective_budget(wish), limit)
        if amount is not None and negotiation.missing == (need,) and need not in wish.require:
            return BudgetUnenforceable(provider, negotiation, limit, amount)
    return CapabilityMissing(provider, negotiation)


def _negotiate_or_raise(
    provider: str, offered: Capabilities, wish: RunRequest, model: str | None
) -> tuple[RunRequest, Negotiation]:
    """Negotiate; what the caller only prefers, and the provider lacks, is left out of the wish."""
    negotiation = negotiate_request(offered, wish, model)
    if negotiation.missing:
        raise _missing_capability_error(provider, negotiation, wish)
    if not wish.prefer:
        return wish, negotiation
    preferred = set(wish.prefer)
    default = RunRequest(prompt=wish.prompt)
    lacking = {
        field: getattr(default, field)
        for field, need in _NEEDS.items()
        if need in preferred and offered.support(need) is UNSUPPORTED
    }
    return msgspec.structs.replace(wish, **lacking) if lacking else wish, negotiation


def absolute_path(path: str | Path) -> str:
    """Return an absolute path; a relative one is seen from the working directory."""
    # Sessions share few directories, and a `Path` costs more than all else of opening one.
    return _joined_path("" if os.path.isabs(path) else os.getcwd(), os.fspath(path))  # noqa: PTH109, PTH117


@lru_cache(maxsize=256)
def _joined_path(base: str, path: str) -> str:
    return str(Path(base, path))
