"""Kimi's installation and its files, read before anything of it is started.

Releases after 1.50 have no wire. They print a notice and exit, or download and run an installer, so
a program is started only if the files beside it show that it is 1.50. Kimi stores with a session,
and reads from its configuration, that it need not ask; no message of the wire can revoke this.
"""

from __future__ import annotations

import hashlib
import os
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sessionmgr.adapter.kit import FileRefusedError, read_json_object, read_optional_file
from sessionmgr.model import UnreadableJson, parse_json
from sessionmgr.process import NotStartedError, find_program

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PROGRAMS: Final = frozenset({"kimi", "kimi-cli"})
VERSION: Final = (1, 50)
INSTALL: Final = "install kimi-cli==1.50.0 (PyPI, Python 3.13), or kimi-code and set options.code"
INSTALL_CODE: Final = "install it with `npm install -g @moonshot-ai/kimi-code`"
ARCHIVED: Final = "no longer maintained"
"""Words with which the releases after 1.50 exit."""
_PACKAGES: Final = "lib*/python3*/*-packages/kimi_cli-*.dist-info"
_TAIL: Final = 1 << 20


def program_fault(command: Sequence[str], env: Mapping[str, str], cwd: str) -> str | None:
    """Return why a program must not be started; None if it is kimi-cli 1.50, or not installed.

    A program that is not called `kimi` is a wrapper of the user's. It is judged by its handshake.
    """
    path = os.fsencode(env.get("PATH", os.defpath))
    try:
        found = find_program(os.fsencode(command[0]), path, os.fsencode(cwd))
    except (NotStartedError, IndexError):
        return None  # reported at its start
    program = Path(os.path.realpath(os.fsdecode(found)))
    if Path(command[0]).name not in PROGRAMS:
        return None
    versions: list[str | None] = [*installed_versions(program)]
    faults = [version_fault(each, str(program)) for each in versions or [None]]
    return next(filter(None, faults), None)


def code_fault(command: Sequence[str], env: Mapping[str, str], cwd: str) -> str | None:
    """Return why a program is not kimi-code, which is called `kimi`, too; None if it may be."""
    path = os.fsencode(env.get("PATH", os.defpath))
    try:
        found = find_program(os.fsencode(command[0]), path, os.fsencode(cwd))
    except (NotStartedError, IndexError):
        return None  # reported at its start
    program = Path(os.path.realpath(os.fsdecode(found)))
    with program.open("rb") as file:
        is_python = b"python" in file.readline(1000)
    versions = installed_versions(program) if is_python else set[str]()
    if Path(command[0]).name not in PROGRAMS or not versions:
        return None
    return (
        f"{program} is kimi-cli {max(versions)}, not kimi-code; {INSTALL_CODE}, or name its "
        "program in options.command"
    )


def installed_versions(program: Path) -> set[str]:
    """Return the versions of the package `kimi-cli` in the environment of a script."""
    with program.open("rb") as file:
        first = file.readline(1000).decode(errors="replace").removeprefix("#!").split()
    interpreter = Path(first[0]) if first else program
    prefixes = {each.parent.parent for each in (program, interpreter)}
    places = [prefix / each for prefix in prefixes for each in (".", "venv")]
    found = (each.name for place in places for each in place.glob(_PACKAGES))
    return {name.removeprefix("kimi_cli-").removesuffix(".dist-info") for name in found}


def version_fault(version: str | None, program: str = "the program") -> str | None:
    """Return why a version cannot be used."""
    numbers = tuple((version or "").split(".")[: len(VERSION)])
    if numbers == tuple(map(str, VERSION)):
        return None
    shown = f"is kimi-cli {version}" if version else "is not known to be kimi-cli 1.50"
    return f"{program} {shown}; only 1.50 has the wire, and later releases are archived; {INSTALL}"


# --- its files -----------------------------------------------------------------------------------


def share_directory(env: Mapping[str, str]) -> Path:
    """Return the directory of Kimi's configuration and sessions."""
    return Path(env.get("KIMI_SHARE_DIR") or Path(env.get("HOME", "/"), ".kimi"))


def session_directory(env: Mapping[str, str], cwd: str, session: str) -> Path:
    """Return the directory of a session, which belongs to a working directory."""
    place = hashlib.md5(os.path.realpath(cwd).encode(), usedforsecurity=False).hexdigest()
    return share_directory(env) / "sessions" / place / session


def is_stored(env: Mapping[str, str], cwd: str, session: str) -> bool:
    """Whether Kimi has a session; otherwise it would silently begin one with that id."""
    return (session_directory(env, cwd, session) / "context.jsonl").is_file()


def widening_fault(env: Mapping[str, str], cwd: str, session: str | None) -> str | None:
    """Return the setting because of which Kimi would not ask, if there is one."""
    config, remedy = share_directory(env) / "config.toml", "remove it, or use the mode full_auto"
    try:
        text = read_optional_file(config)
        if text is None:  # Kimi converts the file of older releases
            config = config.with_suffix(".json")
        settings = read_json_object(config) if text is None else tomllib.loads(text.decode())
        if settings.get("default_yolo"):
            return f"{config}: default_yolo is true, so Kimi would not ask; {remedy}"
        if session is not None:
            state = session_directory(env, cwd, session) / "state.json"
            approval = read_json_object(state).get("approval")
            given = approval if isinstance(approval, dict) else {}
            for name in ("yolo", "afk", "auto_approve_actions"):
                if given.get(name):
                    return f"{state}: {name} is {given[name]!r}, so Kimi would not ask; {remedy}"
    except (FileRefusedError, ValueError) as error:
        return f"Kimi's settings cannot be read: {error}; correct or remove the file"
    return None


def last_message(directory: Path) -> str | None:
    """Return the text of the last message of the model in a session's file, if it is known."""
    try:
        with (directory / "context.jsonl").open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL))
            lines = file.read().splitlines()
    except OSError:
        return None
    for line in reversed(lines):
        match parse_json(line):
            case {"role": "assistant", "content": str(text)}:
                return text
            case {"role": "assistant", "content": [*parts]}:
                texts = [each.get("text") for each in parts if isinstance(each, dict)]
                return "".join(each for each in texts if isinstance(each, str))
            case UnreadableJson() | _:
                pass
    return None
