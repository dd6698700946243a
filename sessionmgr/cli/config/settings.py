"""All settings: their names, types, flags and help."""

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


class Setting(NamedTuple):
    """Setting: a key in files, a variable, a flag."""

    name: str
    kind: SettingType
    help: str
    flags: tuple[str, ...] = ()
    word: str = ""
    """The placeholder of its value in the help, if that of the type is too general."""

    @property
    def variable(self) -> str:
        """The name of its environment variable."""
        return f"SESSIONMGR_{self.name.upper()}"


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


def _table(of: Check, known: Callable[[], Sequence[str]] | None, what: str) -> Check:
    def check(value: object) -> dict[str, object]:
        if not isinstance(value, Mapping):
            raise setting_value_error(f"a table ({what} = …)", value)
        checked: dict[str, object] = {}
        for name, each in cast("Mapping[str, object]", value).items():
            if known is not None and name not in known():
                hint = did_you_mean(name, known()) or f"; known: {', '.join(known())}"
                raise SettingValueError(f"unknown {what} {name!r}{hint}", (name,))
            try:
                checked[name] = of(each)
            except SettingValueError as error:
                raise SettingValueError(f"{name}: {error}", (name, *error.within)) from None
        return checked

    return check


def _clock_names() -> Sequence[str]:
    from sessionmgr.manager import Clocks

    return Clocks.__struct_fields__


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
LIMITS: Final = SettingType(_table(_whole(1), providers, "provider"), _as_table, "PROVIDER=N")
CLOCKS: Final = SettingType(
    _table(_duration(zero=True), _clock_names, "clock"),
    _as_table,
    "NAME=DURATION",
)
OPTIONS: Final = SettingType(
    _table(_table(_anything, None, "option"), providers, "provider"), _as_is, "PROVIDER"
)

CLOCK_DEFAULTS: Final = (
    "start=1m, store=1m, model=30m, tool=0, tool_warning=10m, approval=2m, idle=30m, deadline=0, "
    "drain=1m, close=5s"
)
"""The defaults of all clocks, for the help."""

SETTINGS: Final = {
    setting.name: setting
    for setting in (
        Setting(
            "store",
            PATH,
            "file that stores the sessions (default: ~/.local/state/sessionmgr/sessionmgr.db)",
        ),
        Setting("log_file", PATH, "also write the log to this file (default: none)", word="FILE"),
        Setting(
            "capture",
            PATH,
            "record all traffic with the agents in this directory (default: none)",
            word="DIR",
        ),
        Setting(
            "provider",
            TEXT,
            "provider of the agent: claude, codex, shell, … (see sessionmgr adapters; default: "
            "none)",
            ("-p", "--provider"),
            "NAME",
        ),
        Setting("model", TEXT, "model to use (default: the agent's own)", ("--model",), "NAME"),
        Setting(
            "effort",
            TEXT,
            "reasoning effort: low, medium, high, … (default: the agent's own)",
            ("--effort",),
            "LEVEL",
        ),
        Setting(
            "permission_mode",
            MODE,
            "what the agent may do without asking: plan, default, accept_edits, full_auto, "
            "dangerously_skip_permissions (default: default)",
            ("--permission", "--permission-mode"),
        ),
        Setting(
            "tools_allowed",
            WORDS,
            "names of the only tools that the agent may use (default: all tools)",
            ("--tools-allowed",),
        ),
        Setting(
            "tools_denied",
            WORDS,
            "names of tools that the agent must not use (default: none)",
            ("--tools-denied",),
        ),
        Setting(
            "max_turns", COUNT, "maximum number of turns (default: no limit)", ("--max-turns",)
        ),
        Setting(
            "deadline",
            DURATION,
            "time limit of each attempt, such as 900 (seconds), 15m or 2h (default: no limit)",
            ("--deadline",),
        ),
        Setting(
            "budget_usd",
            MONEY,
            "spending limit of each job in US dollars (default: no limit)",
            ("--budget-usd",),
        ),
        Setting(
            "concurrency",
            COUNT,
            "maximum number of concurrent jobs, or of those of one provider, such as claude=8; "
            "may be repeated (default: 4, or the sum of the providers' limits if that is more)",
        ),
        Setting(
            "per_provider",
            LIMITS,
            "maximum number of concurrent jobs of each provider (default: that of all jobs)",
        ),
        Setting("retries", NUMBER, "retry a failed job up to N times (default: 2)", ("--retries",)),
        Setting(
            "retry_on",
            KINDS,
            "retry after these kinds of failure only (default: transient ones)",
            ("--retry-on",),
        ),
        Setting(
            "retry_from",
            RETRY_FROM,
            "how to restart an incomplete job that has made tool calls: session: resume "
            "its session, or wait for a decision if that is impossible; fresh: start it over, "
            "which may repeat its tool calls; ask: wait for a decision "
            "(default: session)",
            ("--retry-from",),
        ),
        Setting(
            "max_failures",
            COUNT,
            "start no more jobs after N have failed (default: no limit)",
            ("--max-failures",),
        ),
        Setting(
            "keep_failed",
            SWITCH,
            "do not run failed jobs again (default: run them again)",
            ("--keep-failed",),
        ),
        Setting(
            "approve",
            PATH,
            "rules that answer approval requests (default: none; every request is denied)",
            ("--approve",),
            "FILE",
        ),
        Setting(
            "on_denied",
            ON_DENIED,
            "how to treat a completed job with denials: warn: completed, with a warning; "
            "fail: failed (default: warn)",
            ("--on-denied",),
        ),
        Setting(
            "clocks",
            CLOCKS,
            "time limit of one kind of silence, such as idle=15m; 0 is no limit; may be repeated "
            f"(defaults: {CLOCK_DEFAULTS})",
            ("--clock",),
        ),
        Setting(
            "options",
            OPTIONS,
            "options of each provider (default: none; see sessionmgr schema options PROVIDER)",
        ),
    )
}
