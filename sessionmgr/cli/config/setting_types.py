"""Types of settings: their values in TOML, and their texts in flags and variables."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias, cast

from sessionmgr.cli.parser import did_you_mean
from sessionmgr.model import EXPECTED, seconds_from

Check: TypeAlias = Callable[[object], object]
Read: TypeAlias = Callable[[str], object]


class SettingType(NamedTuple):
    """Type of a setting: its values in TOML, and their form on the command line."""

    check: Check
    """Returns the parsed value. Raises `SettingValueError`, with the expected type."""
    read: Read
    """Converts a text for `check`."""
    shape: str
    """The placeholder of the value in the help."""


class SettingValueError(Exception):
    """Invalid value of a setting; `within` is the path to it through tables."""

    def __init__(self, why: str, within: tuple[str, ...] = ()) -> None:
        super().__init__(why)
        self.within = within


def setting_value_error(expected: str, value: object) -> SettingValueError:
    """Return the error for a value of another type than expected."""
    return SettingValueError(f"expected {expected}, got {format_value(value)}")


def format_value(value: object) -> str:
    """Return a value as text that shows its type."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return "a table"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        raise setting_value_error("some text", value)
    return value


def _path(value: object) -> Path:
    if isinstance(value, Path):
        return value
    if not isinstance(value, str) or not value or "\0" in value:
        raise setting_value_error("a path", value)
    try:
        return Path(value).expanduser()
    except RuntimeError:
        raise setting_value_error(
            "a path in the home directory of a user who has one", value
        ) from None


def _whole(least: int) -> Check:
    def check(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise setting_value_error(f"a whole number, {least} or more", value)
        return value

    return check


def _number(expected: str) -> Check:
    def check(value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise setting_value_error(expected, value)
        if not math.isfinite(value) or value <= 0:
            raise setting_value_error(expected, value)
        return float(value)

    return check


def _duration(*, zero: bool) -> Check:
    expected = EXPECTED + (", or 0 for no limit" if zero else "")

    def check(value: object) -> float:
        seconds = seconds_from(value)
        if seconds is None or (seconds == 0 and not zero):
            raise setting_value_error(expected, value)
        return seconds

    return check


def _switch(value: object) -> bool:
    if not isinstance(value, bool):
        raise setting_value_error("true or false", value)
    return value


def _words(value: object) -> tuple[str, ...]:
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        raise setting_value_error("a list of names", value)
    items = cast("Sequence[object]", value)
    for each in items:
        if not isinstance(each, str) or not each.strip():
            raise setting_value_error("a list of names", each)
    return tuple(str(each).strip() for each in items)


def _mode(value: object) -> object:
    from sessionmgr.model import PermissionMode

    return _one_of("permission mode", [mode.value for mode in PermissionMode], PermissionMode)(
        value
    )


def _kinds(value: object) -> object:
    from sessionmgr.model import FailureKind

    names = [kind.value for kind in FailureKind]
    return tuple(_one_of("kind of failure", names, FailureKind)(each) for each in _words(value))


def _retry_from(value: object) -> object:
    from sessionmgr.batch import RetryFrom

    return _one_of("policy", [each.value for each in RetryFrom], str)(value)


def _on_denied(value: object) -> object:
    return _one_of("way to treat a denied job", ["warn", "fail"], str)(value)


def _one_of(what: str, names: list[str], make: Callable[[str], object]) -> Check:
    def check(value: object) -> object:
        if value not in names:
            hint = did_you_mean(str(value), names) or f"; known: {', '.join(names)}"
            raise SettingValueError(f"unknown {what} {format_value(value)}{hint}")
        return make(str(value))

    return check


def _table(of: Check, require: Callable[[str], None] | None, what: str) -> Check:
    def check(value: object) -> dict[str, object]:
        if not isinstance(value, Mapping):
            raise setting_value_error(f"a table ({what} = …)", value)
        checked: dict[str, object] = {}
        for name, each in cast("Mapping[str, object]", value).items():
            if require is not None:
                require(name)
            try:
                checked[name] = of(each)
            except SettingValueError as error:
                raise SettingValueError(f"{name}: {error}", (name, *error.within)) from None
        return checked

    return check


def _require_clock(name: str) -> None:
    from sessionmgr.manager import Clocks

    _require_known("clock", name, name, Clocks.__struct_fields__)


def require_provider(name: str) -> None:
    """Check that a provider is installed; its variant is checked once all settings are known.

    Raises:
        SettingValueError: It is not installed.
    """
    _require_known("provider", name, name.partition(":")[0], providers())


def _require_known(what: str, name: str, word: str, known: Sequence[str]) -> None:
    if word not in known:
        hint = did_you_mean(word, known) or f"; known: {', '.join(known)}"
        raise SettingValueError(f"unknown {what} {name!r}{hint}", (name,))


def providers() -> Sequence[str]:
    """Return the names of the installed providers."""
    from sessionmgr.adapter import installed_adapters

    return installed_adapters()


def _anything(value: object) -> object:
    return value


def _as_is(text: str) -> str:
    return text


def _as_number(text: str) -> object:
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return text


def _as_switch(text: str) -> object:
    words = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
    return words.get(text.strip().lower(), text)


def _as_words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _as_table(text: str) -> object:
    table: dict[str, object] = {}
    for pair in _as_words(text):
        name, equals, value = pair.partition("=")
        if not equals:
            raise SettingValueError(f"expected NAME=VALUE, got {pair!r}")
        table[name.strip()] = _as_number(value.strip())
    return table


TEXT: Final = SettingType(_text, _as_is, "TEXT")
PATH: Final = SettingType(_path, _as_is, "PATH")
COUNT: Final = SettingType(_whole(1), _as_number, "N")
NUMBER: Final = SettingType(_whole(0), _as_number, "N")
DURATION: Final = SettingType(_duration(zero=False), _as_number, "DURATION")
MONEY: Final = SettingType(_number("dollars, more than 0"), _as_number, "USD")
SWITCH: Final = SettingType(_switch, _as_switch, "")
WORDS: Final = SettingType(_words, _as_words, "NAME,…")
MODE: Final = SettingType(_mode, _as_is, "MODE")
KINDS: Final = SettingType(_kinds, _as_words, "KIND,…")
RETRY_FROM: Final = SettingType(_retry_from, _as_is, "session|fresh|ask")
ON_DENIED: Final = SettingType(_on_denied, _as_is, "warn|fail")
LIMITS: Final = SettingType(
    _table(_whole(1), require_provider, "provider"), _as_table, "PROVIDER=N"
)
CLOCKS: Final = SettingType(
    _table(_duration(zero=True), _require_clock, "clock"),
    _as_table,
    "NAME=DURATION",
)
OPTIONS: Final = SettingType(
    _table(_table(_anything, None, "option"), require_provider, "provider"), _as_is, "PROVIDER"
)
