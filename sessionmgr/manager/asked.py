"""What a run was asked for, as far as it is kept: so that one that is resumed is the same again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

import msgspec
from msgspec.structs import fields

from sessionmgr.adapter.run_context import UNLIMITED, Budget
from sessionmgr.errors import NotResumable
from sessionmgr.manager.clocks import NOTHING_SAID, Clocks
from sessionmgr.manager.withheld import withhold
from sessionmgr.model import Json
from sessionmgr.model.value import known_part

if TYPE_CHECKING:
    from collections.abc import Collection

    from msgspec.structs import FieldInfo

    from sessionmgr.manager.plan import RunWish, Wishes
    from sessionmgr.model import Session


class Asked(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The fields of a `RunWish` that outlast the run.

    Its prompt and images were for that run alone, and its variables may be secret. Secrets are
    removed from its options; the caller must pass them again.
    """

    system_prompt: str | None = None
    model: str | None = None
    options: dict[str, Json] = msgspec.field(default_factory=dict[str, Json])
    require: tuple[str, ...] = ()
    prefer: tuple[str, ...] = ()
    require_native: tuple[str, ...] = ()
    schema: Json = None
    max_turns: int | None = None
    effort: str | None = None
    tools_allowed: tuple[str, ...] | None = None
    tools_denied: tuple[str, ...] = ()
    directories: tuple[str, ...] = ()
    budget: Budget = Budget()
    clocks: Clocks = Clocks()
    not_kept: tuple[str, ...] = ()
    """Options that are not JSON, such as functions: the caller must pass them again."""
    withheld: tuple[tuple[str | int, ...], ...] = ()
    """The places in the options from which secrets were removed."""
    variables: tuple[str, ...] = ()
    """Names of the run's variables; their values are not stored."""

    def wishes(self, run_id: str, given: Wishes) -> Wishes:
        """Return the recorded wishes, overridden by those of `given`.

        Given options, clocks and budgets are merged with the recorded ones.

        Raises:
            NotResumable: An option was not stored, or not completely, and is not given.
        """
        if self.not_kept and "options" not in given:
            names = ", ".join(self.not_kept)
            why = f"its options {names} cannot be stored: pass `options` again"
            raise NotResumable(run_id, why)
        options = given.get("options", {})
        if not isinstance(options, msgspec.Struct):
            missing = [".".join(map(str, path)) for path in self.withheld if path[0] not in options]
            if missing:
                why = f"secrets are not stored ({', '.join(missing)}): pass these options again"
                raise NotResumable(run_id, why)
        joined = options if isinstance(options, msgspec.Struct) else {**self.options, **options}
        ours: dict[str, object] = {name: getattr(self, name) for name in _KEPT}
        joint: Wishes = {
            "options": joined,
            "clocks": given.get("clocks", self.clocks).over(self.clocks),
            "budget": given.get("budget", self.budget).over(self.budget),
        }
        return cast("Wishes", {**ours, **given, **joint})


_KEPT: Final = tuple(
    name for name in Asked.__struct_fields__ if name not in {"not_kept", "withheld", "variables"}
)
_DEFAULTS: Final = Asked()


def asked_of(wish: RunWish, secrets: Collection[str] = ()) -> dict[str, Json]:
    """Return the storable part of a wish as JSON, without options that contain these secrets."""
    said = {
        name: value
        for name in _KEPT
        if name != "options" and (value := getattr(wish, name)) != getattr(_DEFAULTS, name)
    }
    options, not_kept = _options_of(wish)
    if options:
        said["options"], said["withheld"] = withhold(cast("Json", options), secrets)
    if not_kept:
        said["not_kept"] = not_kept
    if wish.env:
        said["variables"] = sorted(wish.env)
    if not said:
        return {}
    kept = msgspec.convert(msgspec.to_builtins(said), Asked)
    return cast("dict[str, Json]", msgspec.to_builtins(kept))


def options_of(wish: RunWish) -> dict[str, Json]:
    """Return the options that are set and are JSON, with their secrets."""
    return cast("dict[str, Json]", _options_of(wish)[0])


def _options_of(wish: RunWish) -> tuple[dict[str, object], list[str]]:
    """Return the options that are set and are JSON, and the names of those that are not JSON."""
    given = wish.options
    if isinstance(given, msgspec.Struct):
        said = {each.name: (each, getattr(given, each.name)) for each in fields(given)}
        given = {name: value for name, (of, value) in said.items() if not _is_default(of, value)}
    kept: dict[str, object] = {}
    not_kept: list[str] = []
    for name, value in given.items():
        try:
            kept[name] = msgspec.to_builtins(value)
        except TypeError:
            not_kept.append(name)
    return kept, not_kept


def _is_default(field: FieldInfo, value: object) -> bool:
    if field.default_factory is not msgspec.NODEFAULT:
        return bool(value == field.default_factory())
    return bool(value == field.default)


def asked_before(kept: dict[str, Json]) -> Asked:
    """Read what was kept; what we do not know of it is left out."""
    return msgspec.convert(known_part(kept, Asked), Asked)


def clocks_of(session: Session) -> Clocks:
    """Return the clocks that a session was opened with."""
    if not session.clocks:
        return NOTHING_SAID
    return msgspec.convert(known_part(session.clocks, Clocks), Clocks)


def budget_of(session: Session) -> Budget:
    """Return the budget that a session was opened with."""
    if not session.budget:
        return UNLIMITED
    return msgspec.convert(known_part(session.budget, Budget), Budget)


def as_json(value: Clocks | Budget) -> dict[str, Json]:
    """Return what clocks or a budget say, without what they leave to others."""
    return cast("dict[str, Json]", msgspec.to_builtins(value))
