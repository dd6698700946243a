"""What is set, and where: files, environment variables and flags, the later ones winning.

The user's own file comes first, then the nearest `sessionmgr.toml` in the working directory or
above it, then `SESSIONMGR_*`, then flags. Tables (`clocks`, `options`, …) are joined key by key.
"""

from __future__ import annotations

import os
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, cast

import msgspec

from sessionmgr.cli.parser import meant
from sessionmgr.cli.place import default_store, nearest_settings, user_settings
from sessionmgr.cli.setting import KINDS, SETTINGS, WORDS, NotThis, Setting
from sessionmgr.cli.toml import line_of, read_toml
from sessionmgr.errors import CommandLineInvalid, ConfigurationInvalid

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from sessionmgr.model import FailureKind, Json, PermissionMode

DEFAULT: Final = "default"
PREFIX: Final = "SESSIONMGR_"
_SUFFIXES: Final = [name.upper() for name in SETTINGS if name != "options"]


class Configuration(msgspec.Struct, frozen=True, kw_only=True):
    """All settings; `sources` says of those that somebody has set where that was."""

    store: Path
    log_file: Path | None = None
    capture: Path | None = None
    provider: str | None = None
    model: str | None = None
    effort: str | None = None
    permission_mode: PermissionMode | None = None
    tools_allowed: tuple[str, ...] | None = None
    tools_denied: tuple[str, ...] | None = None
    max_turns: int | None = None
    deadline: float | None = None
    budget_usd: float | None = None
    concurrency: int = 4
    per_provider: dict[str, int] = {}
    retries: int = 2
    retry_on: tuple[FailureKind, ...] | None = None
    max_failures: int | None = None
    keep_failed: bool = False
    approve: Path | None = None
    on_denied: Literal["warn", "fail"] = "warn"
    clocks: dict[str, float] = {}
    options: dict[str, dict[str, Json]] = msgspec.field(
        default_factory=dict[str, "dict[str, Json]"]
    )
    sources: dict[str, str] = {}

    def is_set(self, name: str) -> bool:
        """Say whether somebody has set it, rather than nobody."""
        return name in self.sources


def configure(args: argparse.Namespace) -> Configuration:
    """Work out the settings from the files, the environment and these flags.

    Raises:
        ConfigurationInvalid: One is unknown, or has a value that it cannot have.
    """
    gathered = _Gathered()
    nearest = nearest_settings(Path.cwd())
    for path in dict.fromkeys((user_settings(), nearest)):
        if path is not None and path.is_file():
            gathered.take_file(path)
    gathered.take_environment(os.environ)
    gathered.take_flags(args)
    values = gathered.values
    values.setdefault("store", default_store())
    return Configuration(**values, sources=gathered.sources)  # type: ignore[arg-type]


def add_setting_flags(parser: argparse.ArgumentParser, *names: str) -> None:
    """Add the flags of these settings; what is given lands in `args.configuration`."""
    for name in names:
        setting = SETTINGS[name]
        if setting.kind.shape:
            parser.add_argument(
                *setting.flags,
                dest=name,
                action="append",
                metavar=setting.word or setting.kind.shape,
                help=setting.help,
            )
        else:
            parser.add_argument(
                *setting.flags, dest=name, action="append_const", const="true", help=setting.help
            )


def add_concurrency_flag(parser: argparse.ArgumentParser) -> None:
    """Add `-n 4`, which may also be given by provider: `-n claude=8`."""
    parser.add_argument(
        "-n",
        "--concurrency",
        action="append",
        metavar="N|PROVIDER=N",
        help=SETTINGS["concurrency"].help,
    )


class _Gathered:
    """The settings so far, and where they are from."""

    def __init__(self) -> None:
        self.values: dict[str, object] = {}
        self.sources: dict[str, str] = {}

    def take_file(self, path: Path) -> None:
        text, found = read_toml(path)
        for name, value in found.items():
            setting = SETTINGS.get(name)
            if setting is None:
                known = meant(name, SETTINGS) or f"; there are: {', '.join(SETTINGS)}"
                where = f"{path}:{line_of(text, (name,))}"
                raise ConfigurationInvalid(where, f"there is no setting {name!r}{known}")
            try:
                checked = setting.kind.check(value)
            except NotThis as error:
                where = f"{path}:{line_of(text, (name, *error.within))}"
                raise ConfigurationInvalid(where, f"{name}: {error}") from None
            if setting is SETTINGS["options"]:
                _check_options(cast("dict[str, dict[str, Json]]", checked), path, text)
            if isinstance(checked, Path):
                checked = path.parent / checked  # as whoever wrote it sees it
            self._put(name, checked, f"{path}:{line_of(text, (name,))}")

    def take_environment(self, environ: Mapping[str, str]) -> None:
        by_variable = {setting.variable: setting for setting in SETTINGS.values()}
        for variable, text in environ.items():
            if not variable.startswith(PREFIX):
                continue
            setting = by_variable.get(variable)
            if setting is None or setting.name == "options":
                # Others may use the prefix, too, but nobody would call it nearly like ours.
                rest = variable.removeprefix(PREFIX)
                if near := get_close_matches(rest, _SUFFIXES, n=1, cutoff=0.75):
                    hint = f"did you mean {PREFIX}{near[0]}?"
                    raise ConfigurationInvalid(variable, f"there is no such setting; {hint}")
            elif text:
                self._take_texts(setting, [text], variable)

    def take_flags(self, args: argparse.Namespace) -> None:
        for name, setting in SETTINGS.items():
            given: str | list[str] | None = getattr(args, name, None)
            if given is None:
                continue
            flag = setting.flags[-1] if setting.flags else f"--{name.replace('_', '-')}"
            texts = given if isinstance(given, list) else [given]
            if name == "concurrency":
                limits = [text for text in texts if "=" in text]
                self._take_texts(SETTINGS["per_provider"], limits, flag)
                texts = [text for text in texts if "=" not in text]
            self._take_texts(setting, texts, flag)

    def _take_texts(self, setting: Setting, texts: Sequence[str], where: str) -> None:
        if setting.kind in {WORDS, KINDS} and texts:
            texts = [",".join(texts)]
        for text in texts:
            try:
                value = setting.kind.check(setting.kind.read(text))
            except NotThis as error:
                if where.startswith("-"):
                    raise CommandLineInvalid(f"{where}: {error}") from None
                raise ConfigurationInvalid(where, str(error)) from None
            self._put(setting.name, value, where)

    def _put(self, name: str, value: object, where: str) -> None:
        before = self.values.get(name)
        if isinstance(before, dict) and isinstance(value, dict):
            value = _joined(cast("dict[str, object]", before), cast("dict[str, object]", value))
            where = f"{self.sources[name]}, {where}"
        self.values[name] = value
        self.sources[name] = where


def _check_options(tables: Mapping[str, Mapping[str, Json]], path: Path, text: str) -> None:
    """Make sure that each provider could be given the options that a file sets for it."""
    from sessionmgr.errors import OptionInvalid, ProviderUnknown
    from sessionmgr.provider.discovery import find_adapter
    from sessionmgr.provider.options import settle

    for provider, options in tables.items():
        try:
            settle(provider, find_adapter(provider).options, options, {})
        except (OptionInvalid, ProviderUnknown) as error:
            where = f"{path}:{line_of(text, ('options', provider))}"
            raise ConfigurationInvalid(where, str(error)) from None


def _joined(before: dict[str, object], after: dict[str, object]) -> dict[str, object]:
    joined = before | after
    for name in before.keys() & after.keys():
        one, other = before[name], after[name]
        if isinstance(one, dict) and isinstance(other, dict):
            joined[name] = {**cast("dict[str, object]", one), **cast("dict[str, object]", other)}
    return joined
