"""The planner of runs: it checks a request and makes its plan, before anything starts."""

from __future__ import annotations

import os
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from sessionmgr.adapter import UNLIMITED_BUDGET, CapabilityMissing, RunSpec, resolve_options
from sessionmgr.adapter.kit import schema_fault
from sessionmgr.manager.errors import (
    BudgetUnenforceable,
    DirectoryMissing,
    ManagerClosing,
    RunRequestInvalid,
    RunRequestUnsupported,
)
from sessionmgr.manager.resume_spec import option_secrets, resume_spec_of
from sessionmgr.manager.run_plan import (
    BUDGET_NEEDS,
    REQUEST_NEEDS,
    RunGrant,
    RunPlan,
    RunRequest,
    effective_budget,
    negotiate_request,
)
from sessionmgr.model import UNSUPPORTED, PermissionMode, encode_json

if TYPE_CHECKING:
    from sessionmgr.adapter import Health, Options, ProviderAdapter
    from sessionmgr.manager.manager_state import ManagerState
    from sessionmgr.model import Capabilities, Negotiation, Session


def parse_permission_mode(name: PermissionMode | str) -> PermissionMode:
    """Return the permission mode with a name.

    Raises:
        ValueError: The name is unknown.
    """
    try:
        return PermissionMode(name)
    except ValueError:
        raise ValueError(
            f"permission_mode: unknown mode {name!r}; {permission_mode_hint(name)}"
        ) from None


def permission_mode_hint(name: str) -> str:
    """Return a hint for an unknown permission mode: the nearest one, and all valid ones."""
    modes = [mode.value for mode in PermissionMode]
    meant = _ELSEWHERE.get(name, name).lower()
    nearest = [mode for mode in modes if meant and mode.startswith(meant)]
    nearest = nearest or get_close_matches(meant, modes, n=1)
    hint = f"did you mean {nearest[0]!r}? " if nearest else ""
    return f"{hint}known: {', '.join(modes)}"


_ELSEWHERE: Final = {"bypassPermissions": PermissionMode.DANGEROUSLY_SKIP_PERMISSIONS.value}
"""Names of permission modes in other programs."""


def plan_run(manager_state: ManagerState, session: Session, wish: RunRequest) -> RunPlan:
    """Make the plan of a request that its session has completed.

    Raises:
        StartRefused: The provider cannot run it, or not in this way; the subclass says why.
        EnvironmentVariableInvalid: A variable must not be given to a child.
    """
    if not manager_state.open:
        raise ManagerClosing
    if manager_state.budget is not UNLIMITED_BUDGET:
        wish = msgspec.structs.replace(wish, manager_budget=manager_state.budget)
    encode_json(wish.metadata)  # raises here: what is not JSON is the caller's mistake
    tree = manager_state.providers[session.provider]
    tree.require_up()
    adapter = tree.adapter_class
    _require_served(adapter, wish)
    model = wish.model or session.model
    options = _run_options(adapter, wish, model)
    offered = tree.capabilities_for(options)
    asked, (wish, negotiation) = wish, _negotiate_or_raise(tree.name, offered, wish, model)
    mode = parse_permission_mode(wish.permission_mode or session.permission_mode)
    permission = adapter.permission_map(options).ask(adapter.name, mode)
    chosen = None if offered.model_choice is UNSUPPORTED else model
    if wish is not asked or chosen != model:  # omitted fields must be omitted from the options, too
        options = _run_options(adapter, wish, chosen)
    directories = tuple(str(Path(session.cwd, each)) for each in wish.directories)
    for directory in (session.cwd, *directories):
        if not os.path.isdir(directory):  # noqa: PTH112  # half the time of a Path
            raise DirectoryMissing(directory)
    environment = tree.environment({**options.variables(), **wish.env}, options)
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
        budget=effective_budget(wish),
        attended=wish.approve is not None,
    )
    clocks = wish.clocks.over(manager_state.clocks)
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


def run_grant(manager_state: ManagerState, session: Session, wish: RunRequest) -> RunGrant:
    """Return the grant of a run in a session, without starting or storing anything.

    Raises:
        StartRefused: The run would be refused or could never succeed.
        EnvironmentVariableInvalid: A child may not get a variable.
    """
    plan = plan_run(manager_state, session, wish)
    check_run_content(manager_state, session.provider, plan.spec)
    return RunGrant(plan.negotiation, plan.spec.permission)


def run_readiness(manager_state: ManagerState, session: Session, wish: RunRequest) -> Health:
    """Check whether the program of a run could start now, and has a login.

    Raises:
        StartRefused: The run would be refused.
        EnvironmentVariableInvalid: A child may not get a variable.
    """
    spec = plan_run(manager_state, session, wish).spec
    adapter = manager_state.providers[session.provider].adapter_class
    return adapter.readiness(spec.options, spec.env, spec.cwd)


def check_run_content(manager_state: ManagerState, provider: str, spec: RunSpec) -> None:
    """Check the content that a provider gets, before the run would find a fault itself.

    Raises:
        RunRequestInvalid: The run could never succeed.
    """
    schema = schema_fault(spec.schema)
    fault = manager_state.providers[provider].adapter_class.fault(spec)
    if schema is not None:
        fault = f"schema: {schema}"
    if fault is not None:
        raise RunRequestInvalid(provider, fault)


def _require_served(adapter: type[ProviderAdapter], wish: RunRequest) -> None:
    asked = {
        "tools_allowed": wish.tools_allowed is not None,  # an empty list allows none
        "tools_denied": bool(wish.tools_denied),
        "directories": bool(wish.directories),
    }
    for field, is_asked in asked.items():
        if is_asked and field not in adapter.serves:
            raise RunRequestUnsupported(adapter.name, field)


def _run_options(adapter: type[ProviderAdapter], wish: RunRequest, model: str | None) -> Options:
    normalised = {"model": model, "max_turns": wish.max_turns, "effort": wish.effort}
    return resolve_options(adapter.name, adapter.options, wish.options, normalised)


def _missing_capability_error(
    provider: str, negotiation: Negotiation, wish: RunRequest
) -> CapabilityMissing:
    """Return the error for missing capabilities: about the budget if only the budget needs them."""
    for limit, need in BUDGET_NEEDS.items():
        amount = getattr(effective_budget(wish), limit)
        if amount is not None and negotiation.missing == (need,) and need not in wish.require:
            return BudgetUnenforceable(provider, negotiation, limit, amount)
    return CapabilityMissing(provider, negotiation)


def _negotiate_or_raise(
    provider: str, offered: Capabilities, wish: RunRequest, model: str | None
) -> tuple[RunRequest, Negotiation]:
    """Negotiate, and omit what the request only prefers and the provider lacks."""
    negotiation = negotiate_request(offered, wish, model)
    if negotiation.missing:
        raise _missing_capability_error(provider, negotiation, wish)
    if not wish.prefer:
        return wish, negotiation
    preferred = set(wish.prefer)
    default = RunRequest(prompt=wish.prompt)
    lacking = {
        field: getattr(default, field)
        for field, need in REQUEST_NEEDS.items()
        if need in preferred and offered.support(need) is UNSUPPORTED
    }
    return msgspec.structs.replace(wish, **lacking) if lacking else wish, negotiation


def absolute_path(path: str | Path) -> str:
    """Return an absolute path; a relative one starts at the working directory."""
    # Sessions share few directories, and making a `Path` costs more than opening a session.
    return _joined_path("" if os.path.isabs(path) else os.getcwd(), os.fspath(path))  # noqa: PTH109, PTH117


@lru_cache(maxsize=256)
def _joined_path(base: str, path: str) -> str:
    return str(Path(base, path))
