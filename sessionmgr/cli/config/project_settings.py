"""The settings that a project's file may set before the user trusts it.

Anyone who may write to a project may have written its file. Without the user's trust, such a
file may name models and narrow what the user's own settings allow. Every other setting is
refused: it could run a program, widen what agents may do, answer their questions or choose where
files are written. A setting that is not listed here is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

AGENTS: Final = frozenset({"claude", "codex"})
"""Providers whose prompt is text; `shell` would run it as a program."""
MODEL_OPTIONS: Final = frozenset({"fallback_model"})
"""Provider options that name a model."""
ITS_OWN: Final = "only your own settings or a trusted file may set this"
CONCURRENCY: Final = 4
RETRIES: Final = 2
DEFAULTS: Final = {
    "concurrency": CONCURRENCY,
    "retries": RETRIES,
    "permission_mode": "default",
}
"""Defaults for settings that the user has not set."""


class NarrowingRefusal(NamedTuple):
    """A refused setting of a project's file."""

    key: tuple[str, ...]
    value: object
    why: str


Own: TypeAlias = "Mapping[str, object]"
Taken: TypeAlias = "tuple[object | None, list[NarrowingRefusal]]"


def narrow_setting(name: str, value: object, own: Own) -> Taken:
    """Return the accepted value of a setting, given the user's `own`, and the refusals."""
    narrow = _NARROWING.get(name)
    if narrow is None:
        return None, [NarrowingRefusal((name,), value, ITS_OWN)]
    return narrow(name, value, own)


def narrowed_default(provider: str, name: str, value: object, own: Own) -> Taken:
    """Return the accepted default of one provider, given what the user's own settings set for it.

    The rules are those of the general setting.
    """
    taken, refusals = narrow_setting(name, value, own)
    key = ("provider", provider)
    return taken, [each._replace(key=(*key, *each.key)) for each in refusals]


def narrowed_for_all(
    name: str, value: object, refusals: list[NarrowingRefusal], own: Mapping[str, Own]
) -> Taken:
    """Return an accepted general value, unless it is wider than the user's own of one provider."""
    if name not in _LIMITS:
        return value, refusals
    for provider, defaults in own.items():
        if name in defaults and _NARROWING[name](name, value, defaults)[0] is None:
            yours = defaults[name]
            return None, [
                NarrowingRefusal((name,), value, f"it is more than your {yours} for {provider}")
            ]
    return value, refusals


def _accept_any(_name: str, value: object, _own: Own) -> Taken:
    return value, []


def _agent(name: str, value: object, _own: Own) -> Taken:
    if value in AGENTS:
        return value, []
    why = f"a project may choose {' or '.join(sorted(AGENTS))}"
    return None, [NarrowingRefusal((name,), value, why)]


def _at_most(name: str, value: object, own: Own) -> Taken:
    limit = own.get(name, DEFAULTS.get(name))
    if limit is None or cast("float", value) <= cast("float", limit):
        return value, []
    return None, [NarrowingRefusal((name,), value, f"it is more than your limit, {limit}")]


def _mode(name: str, value: object, own: Own) -> Taken:
    from sessionmgr.model import PermissionMode

    order = (
        PermissionMode.PLAN,
        PermissionMode.DEFAULT,
        PermissionMode.ACCEPT_EDITS,
        PermissionMode.FULL_AUTO,
        PermissionMode.DANGEROUSLY_SKIP_PERMISSIONS,
    )
    limit = PermissionMode(str(own.get(name, DEFAULTS[name])))
    if order.index(PermissionMode(str(value))) <= order.index(limit):
        return value, []
    return None, [NarrowingRefusal((name,), value, f"it is wider than your {limit}")]


def _only_on(name: str, value: object, own: Own) -> Taken:
    if value is True or not own.get(name):
        return value, []
    return None, [NarrowingRefusal((name,), value, "yours is true")]


def _added(name: str, value: object, own: Own) -> Taken:
    both = (*cast("Sequence[str]", own.get(name, ())), *cast("Sequence[str]", value))
    return tuple(dict.fromkeys(both)), []


def _per_provider(name: str, value: object, own: Own) -> Taken:
    limits = cast("Mapping[str, int]", own.get(name, {}))
    general = cast("int", own.get("concurrency", DEFAULTS["concurrency"]))

    def limit(provider: str) -> float:
        return limits.get(provider, general)

    return _narrow_table(name, cast("Mapping[str, float]", value), limit)


def _clocks(name: str, value: object, own: Own) -> Taken:
    from sessionmgr.manager import DEFAULT_CLOCKS as CLOCKS

    limits = cast("Mapping[str, float]", own.get(name, {}))

    def limit(clock: str) -> float:
        return limits.get(clock, CLOCKS.of(clock)) or float("inf")  # 0 means no limit

    seconds = {
        clock: each or float("inf") for clock, each in cast("Mapping[str, float]", value).items()
    }
    return _narrow_table(name, seconds, limit)


def _narrow_table(name: str, table: Mapping[str, float], limit: Callable[[str], float]) -> Taken:
    taken = {key: value for key, value in table.items() if value <= limit(key)}
    refused = [
        NarrowingRefusal((name, key), value, f"it is more than your {limit(key):g}")
        for key, value in table.items()
        if key not in taken
    ]
    return taken or None, refused


def _options(name: str, value: object, _own: Own) -> Taken:
    tables = cast("Mapping[str, Mapping[str, object]]", value)
    taken = {
        provider: {key: each for key, each in table.items() if key in MODEL_OPTIONS}
        for provider, table in tables.items()
    }
    refused = [
        NarrowingRefusal((name, provider, key), each, ITS_OWN)
        for provider, table in tables.items()
        for key, each in table.items()
        if key not in MODEL_OPTIONS
    ]
    return {provider: table for provider, table in taken.items() if table} or None, refused


_NARROWING: Final[dict[str, Callable[[str, object, Own], Taken]]] = {
    "provider": _agent,
    "model": _accept_any,
    "effort": _accept_any,
    "permission_mode": _mode,
    "tools_denied": _added,
    "max_turns": _at_most,
    "deadline": _at_most,
    "budget_usd": _at_most,
    "concurrency": _at_most,
    "per_provider": _per_provider,
    "retries": _at_most,
    "max_failures": _at_most,
    "keep_failed": _only_on,
    "clocks": _clocks,
    "options": _options,
}
_LIMITS: Final = frozenset({"permission_mode", "max_turns", "deadline", "budget_usd"})
"""Settings with one value for each provider, of which the narrower one takes effect."""
