"""`--print-config`: each setting, its value, and where that is from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

from sessionmgr.cli.configuration import DEFAULT
from sessionmgr.cli.output import say, say_json
from sessionmgr.cli.setting import SETTINGS

if TYPE_CHECKING:
    from sessionmgr.cli.configuration import Configuration
    from sessionmgr.model import Json


def print_configuration(configuration: Configuration, *, as_json: bool) -> None:
    """Print all settings, as TOML with remarks or as JSON."""
    for name in SETTINGS:
        value = _plain(getattr(configuration, name))
        source = configuration.sources.get(name, DEFAULT)
        if as_json:
            say_json({"key": name, "value": value, "source": source})
        elif value is None:
            say(f"# {name}: not set")
        else:
            say(f"{name} = {in_toml(value)}  # {source}")


def in_toml(value: Json) -> str:
    """Write a value as TOML has it, on one line."""
    from sessionmgr.model import encode_json

    match value:
        case dict():
            pairs = (f"{in_toml(name)} = {in_toml(each)}" for name, each in value.items())
            return f"{{ {', '.join(pairs)} }}" if value else "{}"
        case list():
            return f"[{', '.join(map(in_toml, value))}]"
        case _:
            return encode_json(value).decode()


def _plain(value: object) -> Json:
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, tuple):
        return [str(each) for each in cast("tuple[object, ...]", value)]
    return cast("Json", value)
