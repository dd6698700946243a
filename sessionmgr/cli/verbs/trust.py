"""The verb `trust`: accept all settings of a project's own `sessionmgr.toml` until it changes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from sessionmgr.cli.config.configuration import refusals_of
from sessionmgr.cli.config.paths import SETTINGS, user_settings
from sessionmgr.cli.config.print_config import refused_setting_line
from sessionmgr.cli.config.settings_file import read_settings
from sessionmgr.cli.config.trusted_files import (
    TrustedFile,
    all_trust_records,
    make_trust_record,
    record_path_key,
    remove_trust_record,
    save_trust_record,
)
from sessionmgr.cli.errors import CommandLineError, CommandLineInvalid
from sessionmgr.cli.terminal.safe_text import one_line
from sessionmgr.cli.terminal.stdout import print_json, print_line, print_note

if TYPE_CHECKING:
    import argparse

    from sessionmgr.model import Json

HELP: Final = """\
Trust the sessionmgr.toml of a directory: use all of its settings until the file changes.

A project's file may name models and narrow what you allow. Settings that run programs, widen
permissions, answer questions or choose where files are written are refused with a note until
you have read the file and trusted it. The record contains a hash of the file and of each project
file that it names, also within a longer text such as sh -c "./agent.sh"; after a change you
have to trust it again. Files that those files read or run in turn are not checked. A relative
path within a longer text is resolved against the directory of the settings: if runs work in
another one, write an absolute path.

  sessionmgr trust .
  sessionmgr trust --list
  sessionmgr trust --revoke ."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the directory to trust, and the flags for other actions."""
    parser.add_argument(
        "directory", nargs="?", metavar="DIR", help="directory of the file to trust"
    )
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
    if record_path_key(path) == record_path_key(user_settings()):
        raise CommandLineInvalid(f"trust: {path} is your own file, which is always trusted")
    if not path.is_file():
        raise CommandLineInvalid(f"trust: no such file: {path}")
    file = read_settings(path)
    refused = refusals_of(file)
    trusted = make_trust_record(path, file.data, file.settings)
    save_trust_record(trusted)
    if as_json:
        print_json(_describe_record(trusted, "trusted"))
        return
    for each in refused:
        print_line(refused_setting_line(each))
    for name in trusted.files:
        print_line(f"# and the file {one_line(name)}")
    if not refused:
        print_line("# none of its settings needs trust")
    print_note(f"{one_line(trusted.path)} is trusted until it changes")


def _revoke(path: Path, *, as_json: bool) -> None:
    if not remove_trust_record(path):
        raise CommandLineError(f"trust: {path} was not trusted: see sessionmgr trust --list")
    if as_json:
        print_json({"path": str(record_path_key(path)), "state": "revoked"})
    else:
        print_note(f"{one_line(str(record_path_key(path)))} is no longer trusted")


def _list(*, as_json: bool) -> None:
    for trusted in all_trust_records():
        state = _state(trusted)
        if as_json:
            print_json(_describe_record(trusted, state))
        else:
            print_line(f"{state:<8} {one_line(trusted.path)}")


def _state(trusted: TrustedFile) -> str:
    path = Path(trusted.path)
    try:
        file = read_settings(path)
    except (OSError, CommandLineError):
        return "changed" if path.exists() else "gone"
    present = make_trust_record(path, file.data, file.settings)
    return "trusted" if trusted.differs_from(present) is None else "changed"


def _describe_record(trusted: TrustedFile, state: str) -> dict[str, Json]:
    return {
        "path": trusted.path,
        "state": state,
        "sha256": trusted.sha256,
        "files": {**trusted.files},
    }
