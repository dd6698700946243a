"""`--print-config`: each setting with its value and its source."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from sessionmgr.cli.config.configuration import DEFAULT
from sessionmgr.cli.config.provider_defaults import KEY, source_key, toml_key
from sessionmgr.cli.config.settings import SETTINGS
from sessionmgr.cli.terminal.safe_text import escaped_json, one_line, truncate
from sessionmgr.cli.terminal.stdout import print_json, print_line, print_note

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessionmgr.cli.config.configuration import Configuration, RefusedSetting
    from sessionmgr.model import Json

LONGEST: Final = 200


def print_configuration(configuration: Configuration, *, as_json: bool) -> None:
    """Print all settings, as TOML with comments or as JSON."""
    for name in SETTINGS:
        value = _plain(getattr(configuration, name))
        source = configuration.sources.get(name, DEFAULT)
        # TOML allows one value per key: with defaults of providers, `provider` is a table.
        in_file = "provider.default" if name == "provider" and configuration.defaults else name
        if as_json:
            print_json({"key": name, "value": value, "source": source})
        elif value is None:
            print_line(f"# {name}: not set")
        else:
            print_line(f"{in_file} = {format_toml(value)}  # {one_line(source)}")
    for provider, defaults in configuration.defaults.items():
        for name, of_provider in defaults.items():
            key, value = source_key(provider, name), _plain(of_provider)
            source = configuration.sources[key]
            if as_json:
                print_json({"key": key, "value": value, "source": source})
            else:
                in_file = toml_key(KEY, provider, name)
                print_line(f"{in_file} = {format_toml(value)}  # {one_line(source)}")
    for refused in configuration.refused:
        where = f"{refused.path}:{refused.line}"
        if as_json:
            line = {"refused": ".".join(refused.key), "value": _plain(refused.value)}
            print_json({**line, "source": where, "why": refused.why})
        else:
            print_line(f"# refused: {refused_setting_line(refused)}: {refused.why}")


def refused_setting_line(refused: RefusedSetting) -> str:
    """Return a refused setting in TOML, with its source."""
    value = format_toml(_plain(refused.value))
    where = f"{refused.path}:{refused.line}"
    return one_line(f"{toml_key(*refused.key)} = {value} # {where}")


def print_refused_settings(refused: Sequence[RefusedSetting]) -> None:
    """Report on stderr which settings of a project are refused, and how to trust them."""
    for each in refused:
        value = truncate(one_line(format_toml(_plain(each.value))), LONGEST)
        where = one_line(f"{each.path}:{each.line}")
        print_note(f"{where}: {one_line(toml_key(*each.key))} = {value} is refused: {each.why}")
    if refused:
        directory = shlex.quote(one_line(str(refused[0].path.parent)))
        changed = refused[0].changed
        since = "" if changed is None else f"{one_line(changed)} has changed since; "
        print_note(f"{since}to use the whole file, read it, then run: sessionmgr trust {directory}")


def format_toml(value: Json) -> str:
    """Return a value as TOML on one line."""
    from sessionmgr.model import encode_json

    match value:
        case dict():
            pairs = (f"{format_toml(name)} = {format_toml(each)}" for name, each in value.items())
            return f"{{ {', '.join(pairs)} }}" if value else "{}"
        case list():
            return f"[{', '.join(map(format_toml, value))}]"
        case _:
            return escaped_json(encode_json(value).decode())


def _plain(value: object) -> Json:
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in cast("dict[str, object]", value).items()}
    if isinstance(value, tuple):
        return [str(each) for each in cast("tuple[object, ...]", value)]
    return cast("Json", value)
