"""The verb `trust`: accept all settings of a project's own `sessionmgr.toml` until it changes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from sessionmgr.cli.configuration import refusals_of
from sessionmgr.cli.output import note, say, say_json
from sessionmgr.cli.place import SETTINGS, user_settings
from sessionmgr.cli.print_config import shown_refusal
from sessionmgr.cli.safe_text import one_line
from sessionmgr.cli.settings_file import read_settings
from sessionmgr.cli.trusted_files import (
    TrustedFile,
    all_recorded,
    describe,
    known_as,
    record,
    revoke,
)
from sessionmgr.errors import CommandLineError, CommandLineInvalid

if TYPE_CHECKING:
    import argparse

    from sessionmgr.model import Json

HELP: Final = """\
Trust the sessionmgr.toml of a directory: use all of its settings until the file changes.

A project's file may name models and narrow what you allow. Settings that run programs, widen
permissions, answer questions or choose where files are written are refused with a note until
you have read the file and trusted it. The record holds a hash of the file and of each project
file that it names, also within a longer text such as sh -c "./agent.sh"; after a change you
have to trust it again. Files that those files read or run in turn are not looked at. A relative
name within a longer text is looked up beside the settings: where runs work elsewhere, write it
as an absolute one.

  sessionmgr trust .
  sessionmgr trust --list
  sessionmgr trust --revoke ."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the directory to trust, and the flags for other actions."""
    parser.add_argument("directory", nargs="?", metavar="DIR", help="directory of the file")
    parser.add_argument("--list", action="store_true", help="print the trusted files")
    parser.add_argument(
        "--revoke", metavar="DIR", help="stop trusting the file in this directory (default: none)"
    )


def run(args: argparse.Namespace) -> int:
    """Run the verb and return the exit code."""
    chosen = [args.directory is not None, args.list, args.revoke is not None]
    if sum(chosen) != 1:
        raise CommandLineInvalid("trust: name one directory, or use --list, or --revoke DIR")
    if args.list:
        _list(as_json=args.json)
    elif args.revoke is not None:
        _revoke(_settings_at(args.revoke), as_json=args.json)
    else:
        _trust(_settings_at(args.directory), as_json=args.json)
    return 0


def _settings_at(place: str) -> Path:
    path = Path(place).absolute()
    return path if path.name == SETTINGS and not path.is_dir() else path / SETTINGS


def _trust(path: Path, *, as_json: bool) -> None:
    if known_as(path) == known_as(user_settings()):
        raise CommandLineInvalid(f"trust: {path} is your own file, which is always trusted")
    if not path.is_file():
        raise CommandLineInvalid(f"trust: no such file: {path}")
    file = read_settings(path)
    refused = refusals_of(file)
    trusted = describe(path, file.data, file.settings)
    record(trusted)
    if as_json:
        say_json(_told(trusted, "trusted"))
        return
    for each in refused:
        say(shown_refusal(each))
    for name in trusted.files:
        say(f"# and the file {one_line(name)}")
    if not refused:
        say("# none of its settings needs trust")
    note(f"{one_line(trusted.path)} is trusted until it changes")


def _revoke(path: Path, *, as_json: bool) -> None:
    if not revoke(path):
        raise CommandLineError(f"trust: {path} was not trusted: see sessionmgr trust --list")
    if as_json:
        say_json({"path": str(known_as(path)), "state": "revoked"})
    else:
        note(f"{one_line(str(known_as(path)))} is no longer trusted")


def _list(*, as_json: bool) -> None:
    for trusted in all_recorded():
        state = _state(trusted)
        if as_json:
            say_json(_told(trusted, state))
        else:
            say(f"{state:<8} {one_line(trusted.path)}")


def _state(trusted: TrustedFile) -> str:
    path = Path(trusted.path)
    try:
        file = read_settings(path)
    except (OSError, CommandLineError):
        return "changed" if path.exists() else "gone"
    present = describe(path, file.data, file.settings)
    return "trusted" if trusted.differs_from(present) is None else "changed"


def _told(trusted: TrustedFile, state: str) -> dict[str, Json]:
    return {
        "path": trusted.path,
        "state": state,
        "sha256": trusted.sha256,
        "files": {**trusted.files},
    }
