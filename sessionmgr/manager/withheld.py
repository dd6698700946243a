"""Secrets in a run's options: removed from the stored form, and supplied again at resume.

An option holds a secret if its name indicates one (`Authorization` among the headers of an MCP
server, its variable `API_KEY`), if it is an address with a password or a well-known key, or if it
is a table in JSON form that contains such an option.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final, TypeAlias, cast

import msgspec

from sessionmgr.model import Unreadable, parse_json
from sessionmgr.process.environment import is_worth_hiding, user_infos
from sessionmgr.process.secret_names import is_secret_name
from sessionmgr.store.redaction import REDACTED, Redactor

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from sessionmgr.model import Json

Path: TypeAlias = tuple[str | int, ...]
"""The path of a value in the options."""

NAMES_OF_VARIABLES: Final = frozenset({"env_http_headers", "env_key", "env_vars"})
"""Tables and options that name the variables with secrets, but hold none themselves."""
_KEYS: Final = Redactor().text


def secrets_in(options: object) -> tuple[str, ...]:
    """Return the values in a run's options that must not be stored or shown."""
    if not options:
        return ()
    found = {secret for _, some in _held(options) for secret in some}
    return tuple(sorted(found, key=lambda each: (-len(each), each)))


def withhold(options: Json, secrets: Collection[str] = ()) -> tuple[Json, tuple[Path, ...]]:
    """Return options in storable form, and the paths from which values were removed.

    A value that contains one of these `secrets`, or another secret of the options, is removed
    as a whole: a part of it would be useless.
    """
    known = {*secrets, *secrets_in(options)}
    paths = tuple(path for path, _ in _held(options, known))
    for path in paths:
        options = _with(options, path, REDACTED)
    return options, paths


def give_back(
    options: Mapping[str, Json], withheld: Sequence[Path], *sources: Mapping[str, Json]
) -> dict[str, Json]:
    """Return the options with removed values that the `sources` supply completely."""
    whole: dict[str, Json] = {}
    missing: set[str | int] = set()
    for path in withheld:
        name = str(path[0])
        values = [_at(dict(source), path) for source in sources]
        value = next((each for each in values if each is not None), None)
        if value is None:
            missing.add(name)
        else:
            whole[name] = _with(whole.get(name, options[name]), path[1:], value)
    return {name: value for name, value in whole.items() if name not in missing}


def _held(
    value: object, known: Collection[str] = (), path: Path = ()
) -> Iterator[tuple[Path, tuple[str, ...]]]:
    """Yield the paths of texts with secrets, and these secrets."""
    match value:
        case str():
            found = _secrets_of(value, path) or tuple(each for each in known if each in value)
            if found:
                yield path, found
        case msgspec.Struct():
            for field in value.__struct_fields__:
                yield from _held(getattr(value, field), known, (*path, field))
        case Mapping():
            members = cast("Mapping[object, object]", value)
            for name, inner in members.items():
                if name not in NAMES_OF_VARIABLES:
                    yield from _held(inner, known, (*path, str(name)))
        case list() | tuple():
            items = cast("Sequence[object]", value)
            for number, inner in enumerate(items):
                yield from _held(inner, known, (*path, number))
        case _:
            pass


def _secrets_of(text: str, path: Path) -> tuple[str, ...]:
    names = [each for each in path if isinstance(each, str)]
    # A name may be dotted, as in Codex's configuration.
    if names and is_secret_name(names[-1].rpartition(".")[2]):
        return (text,) if is_worth_hiding(text) else ()
    if text.lstrip().startswith("{"):
        table = parse_json(text.encode(errors="replace"))
        if not isinstance(table, Unreadable):
            return secrets_in(table)
    passwords = tuple(filter(is_worth_hiding, user_infos([text])))
    if passwords:
        return passwords
    return () if _KEYS.redact(text) == text else (text,)


def _at(value: Json, path: Path) -> Json:
    for step in path:
        if isinstance(value, dict) and isinstance(step, str):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return None
    return value


def _with(value: Json, path: Path, new: Json) -> Json:
    """Return the value with the part at a path replaced."""
    if not path:
        return new
    step, *rest = path
    if isinstance(value, dict) and isinstance(step, str):
        return {**value, step: _with(value[step], tuple(rest), new)}
    assert isinstance(value, list)
    assert isinstance(step, int)
    return [
        _with(each, tuple(rest), new) if number == step else each
        for number, each in enumerate(value)
    ]
