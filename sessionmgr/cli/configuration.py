"""What is set, and where: files, environment variables and flags, the later ones winning.

The user's own file comes first, then the nearest `sessionmgr.toml` in the working directory or
above it, then `SESSIONMGR_*`, then flags. Tables (`clocks`, `options`, …) are joined key by key.
Of a project's file that the user has not trusted, it takes only settings that narrow.
"""

from __future__ import annotations

import os
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, cast

import msgspec

from sessionmgr.cli.parser import meant
from sessionmgr.cli.place import default_store, settings_above, user_settings, working_directory
from sessionmgr.cli.project_settings import CONCURRENCY, RETRIES, narrowed
from sessionmgr.cli.setting import KINDS, SETTINGS, WORDS, NotThis, Setting
from sessionmgr.cli.toml import line_of, read_toml
from sessionmgr.cli.trusted_files import anchored, describe, known_as, recorded
from sessionmgr.errors import CommandLineInvalid, ConfigurationInvalid
from sessionmgr.model import FailureKind, Json, PermissionMode

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping, Sequence

DEFAULT: Final = "default"
PREFIX: Final = "SESSIONMGR_"
_SUFFIXES: Final = [name.upper() for name in SETTINGS if name != "options"]


class Refused(msgspec.Struct, frozen=True, kw_only=True):
    """A refused setting of a project's file: it does not only narrow."""

    path: Path
    line: int
    key: tuple[str, ...]
    value: object
    why: str
    changed: str | None = None
    """The file that has changed since the user trusted the settings, if they were trusted."""


class SettingsFile(NamedTuple):
    """A file of settings, read once, so that the hashed bytes are the bytes in use."""

    path: Path
    data: bytes
    text: str
    settings: dict[str, object]


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
    concurrency: int = CONCURRENCY
    per_provider: dict[str, int] = {}
    retries: int = RETRIES
    retry_on: tuple[FailureKind, ...] | None = None
    retry_from: str = "session"
    max_failures: int | None = None
    keep_failed: bool = False
    approve: Path | None = None
    on_denied: Literal["warn", "fail"] = "warn"
    clocks: dict[str, float] = {}
    options: dict[str, dict[str, Json]] = msgspec.field(
        default_factory=dict[str, "dict[str, Json]"]
    )
    sources: dict[str, str] = {}
    refused: tuple[Refused, ...] = ()
    """The refused settings of a project's file."""
    trusted: dict[str, str] = {}
    """The files that a trusted project's file names, with their hashes."""

    def is_set(self, name: str) -> bool:
        """Say whether somebody has set it, rather than nobody."""
        return name in self.sources


def configure(args: argparse.Namespace) -> Configuration:
    """Work out the settings from the files, the environment and these flags.

    Raises:
        ConfigurationInvalid: One is unknown, or has a value that it cannot have.
    """
    gathered = _with_users_file()
    start = working_directory()
    for path in () if start is None else reversed(_projects_files(start)):
        gathered.take_project(read_settings(path))
    gathered.take_environment(os.environ)
    gathered.take_flags(args)
    values = gathered.values
    values.setdefault("store", default_store())
    return Configuration(
        **values,  # type: ignore[arg-type]
        sources=gathered.sources,
        refused=tuple(gathered.refused),
        trusted=gathered.trusted,
    )


def _projects_files(start: Path) -> list[Path]:
    """Return the nearest file of settings and, if it is untrusted, the next trusted one.

    A trusted file above a project stays in force even if the project has a file of its own.
    """
    files: list[Path] = []
    for path in settings_above(start):
        if known_as(path) == known_as(user_settings()):
            continue
        trusted = recorded(path) is not None
        if trusted or not files:
            files.append(path)
        if trusted:
            break
    return files


def read_settings(path: Path) -> SettingsFile:
    """Read a file of settings.

    Raises:
        ConfigurationInvalid: It is not TOML; the error names the line.
    """
    data = path.read_bytes()
    return SettingsFile(path, data, *read_toml(path, data))


def refusals_of(project: SettingsFile) -> tuple[Refused, ...]:
    """Return the settings of a project's file that need the user's trust.

    Raises:
        ConfigurationInvalid: A setting is unknown or has an invalid value.
    """
    _with_users_file().take_file(project)  # the file must also be valid as a whole
    gathered = _with_users_file()
    gathered.take_narrowed(project)
    return tuple(gathered.refused)


def _with_users_file() -> _Gathered:
    gathered = _Gathered()
    path = user_settings()
    if path.is_file():
        gathered.take_file(read_settings(path))
    return gathered


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
        self.refused: list[Refused] = []
        self.trusted: dict[str, str] = {}

    def take_file(self, file: SettingsFile) -> None:
        """Take all settings of the user's own file, or of one that the user trusts."""
        for setting, value in _checked(file):
            self._put_of_file(file, setting, value)

    def take_project(self, file: SettingsFile) -> None:
        """Take a project's file: all of it if trusted, else only the settings that narrow."""
        trusted = recorded(file.path)
        if trusted is None:
            self.take_narrowed(file)
            return
        changed = trusted.differs_from(describe(file.path, file.data, file.settings))
        if changed is None:
            self.take_trusted(file)
            self.trusted |= trusted.files
        else:
            self.take_narrowed(file, changed)

    def take_trusted(self, file: SettingsFile) -> None:
        """Take all settings of a project's file; its options name the files that were hashed."""
        for setting, value in _checked(file):
            if setting.name == "options":
                value = anchored(cast("dict[str, object]", value), file.path.parent)
            self._put_of_file(file, setting, value)

    def take_narrowed(self, file: SettingsFile, changed: str | None = None) -> None:
        """Take the settings that narrow those so far, and record the others as refused."""
        own = dict(self.values)
        for setting, value in _checked(file):
            taken, refusals = narrowed(setting.name, value, own)
            for refusal in refusals:
                line = line_of(file.text, refusal.key)
                self.refused.append(
                    Refused(
                        path=file.path,
                        line=line,
                        key=refusal.key,
                        value=refusal.value,
                        why=refusal.why,
                        changed=changed,
                    )
                )
            if taken is not None:
                self._put_of_file(file, setting, taken)

    def _put_of_file(self, file: SettingsFile, setting: Setting, value: object) -> None:
        if isinstance(value, Path):
            value = file.path.parent / value  # relative to the file that names it
        self._put(setting.name, value, f"{file.path}:{line_of(file.text, (setting.name,))}")

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


def _checked(file: SettingsFile) -> Iterator[tuple[Setting, object]]:
    """Yield the settings of a file with their parsed values."""
    for name, value in file.settings.items():
        setting = SETTINGS.get(name)
        if setting is None:
            known = meant(name, SETTINGS) or f"; there are: {', '.join(SETTINGS)}"
            where = f"{file.path}:{line_of(file.text, (name,))}"
            raise ConfigurationInvalid(where, f"there is no setting {name!r}{known}")
        try:
            checked = setting.kind.check(value)
        except NotThis as error:
            where = f"{file.path}:{line_of(file.text, (name, *error.within))}"
            raise ConfigurationInvalid(where, f"{name}: {error}") from None
        if setting is SETTINGS["options"]:
            _check_options(cast("dict[str, dict[str, Json]]", checked), file.path, file.text)
        yield setting, checked


def _check_options(tables: Mapping[str, Mapping[str, Json]], path: Path, text: str) -> None:
    """Make sure that each provider could be given the options that a file sets for it."""
    from sessionmgr.adapter.discovery import find_adapter
    from sessionmgr.adapter.options import settle
    from sessionmgr.errors import OptionInvalid, ProviderUnknown

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
