"""The record of settings files that the user trusts, by path and content hash.

Each record is a separate file (mode 0600) in the user's state directory, replaced atomically. A
project file that the settings name, such as approval rules, is part of the record: if either
file changes, the settings are no longer trusted.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

import msgspec

from sessionmgr.cli.config.paths import make_private_directory, state_directory

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

DIRECTORY: Final = "trusted"
_LONGEST_PATH: Final = 4096
_WRITTEN: Final = frozenset({"store", "log_file", "capture"})
"""Settings that name files to write: each run changes those."""
_READ: Final = frozenset({"approve", "agents"})
"""Settings that name a file to read, wherever it is."""
_WORD: Final = re.compile(r"""[^\s;|&<>()\[\]{}=,:'"`]+""")
_QUOTED: Final = re.compile(r"""(?<=['"])[^'"]+(?=['"])""")


class TrustedFile(msgspec.Struct, frozen=True, kw_only=True):
    """The trust record of one settings file."""

    path: str
    sha256: str
    files: dict[str, str] = {}
    """The files that the settings name and that belong to the project, with their hashes."""

    def differs_from(self, present: TrustedFile) -> str | None:
        """Return a file that has changed since it was trusted; None if none has."""
        if self.sha256 != present.sha256:
            return self.path
        changed = self.files.items() ^ present.files.items()
        return min((path for path, _ in changed), default=None)


def make_trust_record(path: Path, data: bytes, settings: Mapping[str, object]) -> TrustedFile:
    """Make the record of a settings file with the content `data`."""
    named = {str(each): _hash(each) for each in _files_named(settings, path.parent)}
    return TrustedFile(
        path=str(record_path_key(path)), sha256=hashlib.sha256(data).hexdigest(), files=named
    )


def resolve_option_paths(options: Mapping[str, object], directory: Path) -> dict[str, object]:
    """Return providers' options with relative paths resolved against the settings' directory.

    The files that run are then those that were hashed, whatever directory a run works in. A program
    with a relative path is resolved; any other text is, if it leads to a file.
    """
    return {provider: _of_provider(table, directory) for provider, table in options.items()}


def _of_provider(table: object, directory: Path) -> dict[str, object]:
    options = cast("dict[str, object]", _resolve_path(table, directory))
    command = cast("list[object] | None", options.get("command"))
    if command:
        options["command"] = [_program(str(command[0]), directory), *command[1:]]
    return options


def _program(name: str, directory: Path) -> str:
    is_relative = "/" in name and not name.startswith(("/", "~"))
    return str(directory / name) if is_relative else name


def _resolve_path(value: object, directory: Path) -> object:
    if isinstance(value, dict):
        members = cast("dict[str, object]", value)
        return {name: _resolve_path(each, directory) for name, each in members.items()}
    if isinstance(value, list | tuple):
        return [_resolve_path(each, directory) for each in cast("Sequence[object]", value)]
    if not isinstance(value, str) or not {"/", "."} & set(value) or len(value) > _LONGEST_PATH:
        return value  # the name of a program on PATH or of a model, for example
    if value.startswith(("/", "~")) or "\0" in value:
        return value
    try:
        return str(directory / value) if (directory / value).is_file() else value
    except OSError:
        return value  # too long for a file name


def record_path_key(path: Path) -> Path:
    """Return the path that identifies a settings file: its directory's links are resolved."""
    return path.parent.resolve() / path.name


def find_trust_record(path: Path) -> TrustedFile | None:
    """Return the trust record for this path, if any."""
    record = _record_path(path)
    try:
        found = msgspec.json.decode(record.read_bytes(), type=TrustedFile)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except msgspec.DecodeError:
        return None  # not one of our records: it grants nothing
    return found if found.path == str(record_path_key(path)) else None


def all_trust_records() -> list[TrustedFile]:
    """Return all records, by path."""
    directory = state_directory() / DIRECTORY
    if not directory.is_dir():
        return []
    found: list[TrustedFile] = []
    for record in directory.glob("*.json"):
        try:
            found.append(msgspec.json.decode(record.read_bytes(), type=TrustedFile))
        except (FileNotFoundError, msgspec.DecodeError):
            continue  # revoked meanwhile, or not one of our records
    return sorted(found, key=lambda each: each.path)


def save_trust_record(trusted: TrustedFile) -> None:
    """Store a record, replacing an earlier one."""
    target = _record_path(Path(trusted.path))
    make_private_directory(state_directory())
    make_private_directory(target.parent)
    made = target.with_name(f".{os.urandom(8).hex()}.tmp")
    descriptor = os.open(made, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(msgspec.json.encode(trusted))
            file.flush()
            os.fsync(file.fileno())
        made.replace(target)
    except BaseException:
        made.unlink(missing_ok=True)
        raise


def remove_trust_record(path: Path) -> bool:
    """Remove the record for this path; return whether there was one."""
    try:
        _record_path(path).unlink()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _record_path(path: Path) -> Path:
    name = hashlib.sha256(os.fsencode(record_path_key(path))).hexdigest()
    return state_directory() / DIRECTORY / f"{name}.json"


def _files_named(settings: Mapping[str, object], directory: Path) -> Iterator[Path]:
    """Yield the files that the settings read or run, and that other users may change.

    These are the files in the project, all files named by relative paths, the approval rules, and
    the registry of agents with the files that it names in the same way.
    A file may be named by a text or by a word in it.
    """
    for name, value in settings.items():
        if name in _WRITTEN:
            continue
        texts = _texts(value)
        for text in texts if name in _READ else _with_words(texts):
            file = _existing_file(text, directory, is_anywhere=name in _READ)
            if file is None:
                continue
            yield file
            if name == "agents":
                inner = _with_words(_texts(_json_in(file)))
                found = (_existing_file(each, directory, is_anywhere=False) for each in inner)
                yield from filter(None, found)


def _existing_file(text: str, directory: Path, *, is_anywhere: bool) -> Path | None:
    """Return the file that a text names, if it belongs to the project or may be anywhere."""
    if not text or "\0" in text or len(text) > _LONGEST_PATH:
        return None
    path = os.path.expanduser(text)  # noqa: PTH111
    is_the_projects = is_anywhere or not os.path.isabs(path)  # noqa: PTH117
    try:
        real = (directory / path).resolve()
        if real.is_file() and (is_the_projects or real.is_relative_to(directory.resolve())):
            return real
    except OSError:
        return None  # too long for a file name
    return None


def _json_in(file: Path) -> object:
    """Return the content of a file; None if it is not JSON."""
    try:
        return msgspec.json.decode(file.read_bytes())
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in cast("dict[str, object]", value).values():
            yield from _texts(each)
    elif isinstance(value, list):
        for each in cast("Sequence[object]", value):
            yield from _texts(each)


def _with_words(texts: Iterable[str]) -> Iterator[str]:
    """Yield texts and the words of each: a command line, for example, may name a project's script.

    Quotes and the other characters that end a word are those of shells, TOML and JSON.
    """
    for text in texts:
        yield text
        yield from {word for pattern in (_WORD, _QUOTED) for word in pattern.findall(text)}


def _hash(path: Path) -> str:
    """Return the hash of a file; an unreadable one has the empty hash until it can be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""
