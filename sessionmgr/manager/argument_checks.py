"""Checks of the arguments of the library's calls, by name, type and value.

A wrong argument is the caller's mistake. The call itself raises, before it starts a session, a run
or an agent, and the message contains the name, the value and the valid values.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Collection, Mapping
from difflib import get_close_matches
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, cast

import msgspec

from sessionmgr.adapter import Budget
from sessionmgr.manager.clocks import Clocks
from sessionmgr.manager.errors import ArgumentTypeInvalid, ArgumentValueInvalid
from sessionmgr.manager.run_plan import RunRequest
from sessionmgr.manager.run_planner import permission_mode_hint
from sessionmgr.model import PermissionMode, Snapshot

if TYPE_CHECKING:
    from collections.abc import Callable

    from sessionmgr.manager.run_plan import RunArguments

_MODES: Final = [mode.value for mode in PermissionMode]


class ArgumentKind(NamedTuple):
    """A kind of argument: `fits` checks its type, `fault` its value, and `wanted` describes it."""

    fits: Callable[[object], bool]
    wanted: str
    fault: Callable[[object], str | None] = lambda value: None
    is_required: bool = False
    """Whether None is invalid."""


def require_arguments(
    call: str, kinds: Mapping[str, ArgumentKind], given: Mapping[str, object]
) -> None:
    """Check the arguments of a call; None leaves out those that are not required.

    Raises:
        ArgumentTypeInvalid: An argument has a wrong type.
        ArgumentValueInvalid: An argument has an invalid value.
    """
    for name, value in given.items():
        kind = kinds.get(name)
        if kind is None or (value is None and not kind.is_required):
            continue
        if not kind.fits(value):
            shown = type(value) if name in _VARIABLES else value
            raise ArgumentTypeInvalid(call, name, shown, kind.wanted)
        fault = kind.fault(value)
        if fault is not None:
            raise ArgumentValueInvalid(call, name, value, fault)
        if name in _VARIABLES:  # other values may be secret and are not shown
            for key, text in cast("Mapping[str, object]", value).items():
                if not isinstance(text, str):
                    raise ArgumentTypeInvalid(call, f"{name}[{key!r}]", text, "a str")


def request_of_arguments(call: str, prompt: str, wishes: RunArguments) -> RunRequest:
    """Return the run request that a call's arguments describe.

    Raises:
        ArgumentTypeInvalid: An argument has a wrong type or an unknown name.
        ArgumentValueInvalid: An argument has an invalid value.
    """
    wishes = checked_run_arguments(call, wishes)
    require_arguments(call, _PROMPT, {"prompt": prompt})
    return msgspec.structs.replace(RunRequest(prompt=prompt), **wishes)


def checked_run_arguments(call: str, wishes: RunArguments) -> RunArguments:
    """Check the arguments of a run except its prompt; return them with plain paths and mappings.

    Raises:
        ArgumentTypeInvalid: An argument has a wrong type or an unknown name.
        ArgumentValueInvalid: An argument has an invalid value.
    """
    for name in wishes:
        if name not in RUN_ARGUMENTS:
            nearest = get_close_matches(name, RUN_ARGUMENTS, n=1)
            hint = f"; did you mean {nearest[0]!r}?" if nearest else ""
            raise TypeError(f"{call}: unknown argument {name!r}{hint}")
    require_arguments(call, RUN_ARGUMENTS, wishes)
    return cast("RunArguments", {name: _plain(name, value) for name, value in wishes.items()})


def _plain(name: str, value: object) -> object:
    """Return an argument as the type that `RunRequest` declares."""
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, object]", value))
    if name in _PATHS:
        return tuple(map(os.fspath, cast("Collection[str]", value)))
    return value


# --- valid values -------------------------------------------------------------------------


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_path(value: object) -> bool:
    return isinstance(value, str | PathLike)


def _is_names(value: object) -> bool:
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Collection):
        return False
    return all(map(_is_path, cast("Collection[object]", value)))


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_object(value: object) -> bool:
    if not isinstance(value, Mapping):
        return False
    return all(map(_is_text, cast("Mapping[object, object]", value)))


def _is_async(value: object) -> bool:
    while isinstance(value, partial):
        value = value.func
    if inspect.iscoroutinefunction(value):
        return True
    return callable(value) and inspect.iscoroutinefunction(type(value).__call__)


def _text_fault(value: object) -> str | None:
    return None if str(value).strip() else "it is empty; write what the agent should do"


def _count_fault(value: object) -> str | None:
    return None if isinstance(value, int) and value >= 1 else "it must be 1 or more"


def _json_fault(value: object) -> str | None:
    try:
        msgspec.json.encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        return f"it is not JSON: {error}"
    return None


def _of_state(value: object) -> str | None:
    return None if value in ("open", "closed") else "it must be 'open' or 'closed'"


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


def _is_store(value: object) -> bool:
    return isinstance(value, str | Path) or hasattr(value, "sessions")


def _is_struct(value: object) -> bool:
    return isinstance(value, msgspec.Struct)


def _is_snapshot(value: object) -> bool:
    return isinstance(value, str | Snapshot)


def _is_classes(value: object) -> bool:
    return _is_object(value) and all(map(_is_class, cast("Mapping[str, object]", value).values()))


def _is_class(value: object) -> bool:
    return isinstance(value, type)


def _is_counts(value: object) -> bool:
    return _is_object(value) and all(map(_is_count, cast("Mapping[str, object]", value).values()))


def _is_clocks(value: object) -> bool:
    return isinstance(value, Clocks)


def _is_budget(value: object) -> bool:
    return isinstance(value, Budget)


def _is_options(value: object) -> bool:
    return isinstance(value, msgspec.Struct) or _is_object(value)


def _is_schema(value: object) -> bool:
    return isinstance(value, bool) or _is_object(value)


def _mode_fault(value: object) -> str | None:
    return None if value in _MODES else f"unknown mode; {permission_mode_hint(str(value))}"


_TEXT: Final = ArgumentKind(_is_text, "a str")
_NAMES: Final = ArgumentKind(_is_names, "a list of str, such as ['resume']")
_JSON: Final = ArgumentKind(_is_object, "a dict with str keys", _json_fault)
_APPROVE: Final = ArgumentKind(
    _is_async, "an async function (async def) that takes a request and returns Allow() or Deny()"
)
_CLOCKS: Final = ArgumentKind(_is_clocks, "Clocks, such as Clocks(deadline=600)")
_BUDGET: Final = ArgumentKind(_is_budget, "Budget, such as Budget(usd=2.0)")
_MODE: Final = ArgumentKind(_is_text, f"one of {', '.join(_MODES)}", _mode_fault)
_PATH: Final = ArgumentKind(_is_path, "a str or a Path")

_ID: Final = ArgumentKind(_is_text, "a str", is_required=True)
_MESSAGE: Final = ArgumentKind(_is_text, "a str", _text_fault)
_FLAG: Final = ArgumentKind(_is_flag, "True or False")

_PROMPT: Final = {"prompt": _MESSAGE._replace(is_required=True)}
_PATHS: Final = frozenset({"images", "directories"})
_VARIABLES: Final = frozenset({"env", "environ"})
RUN_ARGUMENTS: Final[Mapping[str, ArgumentKind]] = {
    "system_prompt": _TEXT,
    "images": _NAMES,
    "model": _TEXT,
    "permission_mode": _MODE,
    "options": ArgumentKind(_is_options, "a dict, or the provider's own options"),
    "require": _NAMES,
    "prefer": _NAMES,
    "require_native": _NAMES,
    "schema": ArgumentKind(
        _is_schema,
        "a JSON Schema as a dict (of a pydantic model: Model.model_json_schema())",
        _json_fault,
    ),
    "max_turns": ArgumentKind(_is_count, "an int", _count_fault),
    "effort": _TEXT,
    "tools_allowed": _NAMES,
    "tools_denied": _NAMES,
    "directories": _NAMES,
    "budget": _BUDGET,
    "clocks": _CLOCKS,
    "env": ArgumentKind(_is_object, "a dict of str to str"),
    "approve": _APPROVE,
    "metadata": _JSON,
}
SESSION_ARGUMENTS: Final[Mapping[str, ArgumentKind]] = {
    "provider": _ID,
    "cwd": _PATH._replace(is_required=True),
    "permission_mode": _MODE,
    "model": _TEXT,
    "clocks": _CLOCKS,
    "budget": _BUDGET,
    "approve": _APPROVE,
    "metadata": _JSON,
    "session_id": _TEXT,
}
RECORDS: Final[Mapping[str, ArgumentKind]] = {
    "id": _ID,
    "run_id": _ID,
    "session_id": _ID,
    "sha256": _ID,
    "ids": _NAMES._replace(wanted="a list of ids", is_required=True),
    "types": _NAMES._replace(wanted="a list of event types, such as ['run_completed']"),
    "provider": _TEXT,
    "state": ArgumentKind(_is_text, "'open' or 'closed'", _of_state),
    "limit": ArgumentKind(_is_count, "an int", _count_fault, is_required=True),
}
"""The arguments of the calls that read stored records."""
PROVIDERS: Final[Mapping[str, ArgumentKind]] = {
    "providers": _NAMES._replace(wanted="a list of providers' names, such as ['claude']")
}
MESSAGES: Final[Mapping[str, ArgumentKind]] = {
    "run_id": _ID,
    "snapshot": ArgumentKind(_is_snapshot, "a Snapshot or its id", is_required=True),
    "message": _MESSAGE,
    "content": _MESSAGE._replace(is_required=True),
}
"""The arguments of the calls that continue a run."""
MANAGER_ARGUMENTS: Final[Mapping[str, ArgumentKind]] = {
    "clocks": _CLOCKS,
    "budget": _BUDGET,
    "adapters": ArgumentKind(_is_classes, "a dict of names to adapter classes"),
    "store": ArgumentKind(_is_store, "a str, a Path or a Store"),
    "agents": _PATH,
    "environ": ArgumentKind(_is_object, "a dict of str to str"),
}
BATCH_ARGUMENTS: Final[Mapping[str, ArgumentKind]] = {
    "out": _PATH,
    "approve": _APPROVE,
    "concurrency": ArgumentKind(_is_count, "an int", _count_fault),
    "per_provider": ArgumentKind(_is_counts, "a dict of providers' names to int"),
    "provider_defaults": ArgumentKind(_is_object, "a dict of providers' names to Job"),
    "retries": ArgumentKind(_is_count, "an int"),
    "max_failures": ArgumentKind(_is_count, "an int", _count_fault),
    "limit": ArgumentKind(_is_count, "an int"),
    "only": _NAMES,
    "skip": _NAMES,
    "retry_on": _NAMES,
    "defaults": ArgumentKind(_is_struct, "a Job, such as Job(id='-', provider='claude')"),
    "keep_failed": _FLAG,
    "force": _FLAG,
    "ignore_pauses": _FLAG,
}
