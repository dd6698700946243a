"""The stored part of a run's request, without secrets, for runs that resume or follow it.

An option holds a secret if its name indicates one (`Authorization` among the headers of an MCP
server, its variable `API_KEY`), if it is an address with a password or a well-known key, or if it
is a table in JSON form that contains such an option.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final, TypeAlias, cast

import msgspec
from msgspec.structs import fields

from sessionmgr.adapter import UNLIMITED_BUDGET, Budget
from sessionmgr.manager.clocks import UNSET_CLOCKS, Clocks
from sessionmgr.manager.errors import NotResumable
from sessionmgr.model import Json, UnreadableJson, parse_json, without_unknown
from sessionmgr.process import is_secret_name, is_secret_value, url_passwords
from sessionmgr.store import REDACTED, Redactor

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from msgspec.structs import FieldInfo

    from sessionmgr.manager.run_plan import RunArguments, RunRequest
    from sessionmgr.model import Session


class ResumeSpec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The fields of a `RunRequest` that are stored.

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

    def merged_arguments(self, run_id: str, given: RunArguments) -> RunArguments:
        """Return the recorded arguments, overridden by those of `given`.

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
        joint: RunArguments = {
            "options": joined,
            "clocks": given.get("clocks", self.clocks).over(self.clocks),
            "budget": given.get("budget", self.budget).over(self.budget),
        }
        return cast("RunArguments", {**ours, **given, **joint})


_KEPT: Final = tuple(
    name
    for name in ResumeSpec.__struct_fields__
    if name not in {"not_kept", "withheld", "variables"}
)
_DEFAULTS: Final = ResumeSpec()


def resume_spec_of(wish: RunRequest, secrets: Collection[str] = ()) -> dict[str, Json]:
    """Return the storable part of a request as JSON, without options that contain these secrets."""
    said = {
        name: value
        for name in _KEPT
        if name != "options" and (value := getattr(wish, name)) != getattr(_DEFAULTS, name)
    }
    options, not_kept = _split_options(wish)
    if options:
        said["options"], said["withheld"] = redact_options(cast("Json", options), secrets)
    if not_kept:
        said["not_kept"] = not_kept
    if wish.env:
        said["variables"] = sorted(wish.env)
    if not said:
        return {}
    kept = msgspec.convert(msgspec.to_builtins(said), ResumeSpec)
    return cast("dict[str, Json]", msgspec.to_builtins(kept))


def storable_options(wish: RunRequest) -> dict[str, Json]:
    """Return the options that are set and are JSON, with their secrets."""
    return cast("dict[str, Json]", _split_options(wish)[0])


def _split_options(wish: RunRequest) -> tuple[dict[str, object], list[str]]:
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


def read_resume_spec(kept: dict[str, Json]) -> ResumeSpec:
    """Decode a stored request, ignoring unknown fields."""
    return msgspec.convert(without_unknown(kept, ResumeSpec), ResumeSpec)


def session_clocks(session: Session) -> Clocks:
    """Return the clocks with which a session was opened."""
    if not session.clocks:
        return UNSET_CLOCKS
    return msgspec.convert(without_unknown(session.clocks, Clocks), Clocks)


def session_budget(session: Session) -> Budget:
    """Return the budget with which a session was opened."""
    if not session.budget:
        return UNLIMITED_BUDGET
    return msgspec.convert(without_unknown(session.budget, Budget), Budget)


def set_fields(value: Clocks | Budget) -> dict[str, Json]:
    """Return the fields of clocks or a budget that are set."""
    return cast("dict[str, Json]", msgspec.to_builtins(value))


Path: TypeAlias = tuple[str | int, ...]
"""The path of a value in the options."""

NAMES_OF_VARIABLES: Final = frozenset({"env_http_headers", "env_key", "env_vars"})
"""Tables and options that name the variables with secrets, but hold none themselves."""
_KEYS: Final = Redactor().text


def option_secrets(options: object) -> tuple[str, ...]:
    """Return the values in a run's options that must not be stored or shown."""
    if not options:
        return ()
    found = {secret for _, some in _secret_paths(options) for secret in some}
    return tuple(sorted(found, key=lambda each: (-len(each), each)))


def redact_options(options: Json, secrets: Collection[str] = ()) -> tuple[Json, tuple[Path, ...]]:
    """Return options in storable form, and the paths from which values were removed.

    A value that contains one of these `secrets`, or another secret of the options, is removed
    as a whole: a part of it would be useless.
    """
    known = {*secrets, *option_secrets(options)}
    paths = tuple(path for path, _ in _secret_paths(options, known))
    for path in paths:
        options = _replaced_at(options, path, REDACTED)
    return options, paths


def restore_options(
    options: Mapping[str, Json], withheld: Sequence[Path], *sources: Mapping[str, Json]
) -> dict[str, Json]:
    """Return the options with removed values that the `sources` supply completely."""
    whole: dict[str, Json] = {}
    missing: set[str | int] = set()
    for path in withheld:
        name = str(path[0])
        values = [_value_at(dict(source), path) for source in sources]
        value = next((each for each in values if each is not None), None)
        if value is None:
            missing.add(name)
        else:
            whole[name] = _replaced_at(whole.get(name, options[name]), path[1:], value)
    return {name: value for name, value in whole.items() if name not in missing}


def _secret_paths(
    value: object, known: Collection[str] = (), path: Path = ()
) -> Iterator[tuple[Path, tuple[str, ...]]]:
    """Yield the paths of texts with secrets, and these secrets."""
    match value:
        case str():
            found = _value_secrets(value, path) or tuple(each for each in known if each in value)
            if found:
                yield path, found
        case msgspec.Struct():
            for field in value.__struct_fields__:
                yield from _secret_paths(getattr(value, field), known, (*path, field))
        case Mapping():
            members = cast("Mapping[object, object]", value)
            for name, inner in members.items():
                if name not in NAMES_OF_VARIABLES:
                    yield from _secret_paths(inner, known, (*path, str(name)))
        case list() | tuple():
            items = cast("Sequence[object]", value)
            for number, inner in enumerate(items):
                yield from _secret_paths(inner, known, (*path, number))
        case _:
            pass


def _value_secrets(text: str, path: Path) -> tuple[str, ...]:
    names = [each for each in path if isinstance(each, str)]
    # A name may be dotted, as in Codex's configuration.
    if names and is_secret_name(names[-1].rpartition(".")[2]):
        return (text,) if is_secret_value(text) else ()
    if text.lstrip().startswith("{"):
        table = parse_json(text.encode(errors="replace"))
        if not isinstance(table, UnreadableJson):
            return option_secrets(table)
    passwords = tuple(filter(is_secret_value, url_passwords([text])))
    if passwords:
        return passwords
    return () if _KEYS.redact(text) == text else (text,)


def _value_at(value: Json, path: Path) -> Json:
    for step in path:
        if isinstance(value, dict) and isinstance(step, str):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return None
    return value


def _replaced_at(value: Json, path: Path, new: Json) -> Json:
    """Return the value with the part at a path replaced."""
    if not path:
        return new
    step, *rest = path
    if isinstance(value, dict) and isinstance(step, str):
        return {**value, step: _replaced_at(value[step], tuple(rest), new)}
    assert isinstance(value, list)
    assert isinstance(step, int)
    return [
        _replaced_at(each, tuple(rest), new) if number == step else each
        for number, each in enumerate(value)
    ]
