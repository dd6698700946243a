"""The entry point: parses the command line, runs a verb, and turns errors into one line.

Modules that only some verbs need are imported by those verbs.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from sessionmgr.cli.errors import CommandLineInvalid
from sessionmgr.cli.parser import (
    EXIT_CODES,
    PROGRAM,
    Parser,
    did_you_mean,
    find_verb,
)
from sessionmgr.cli.terminal.stdout import (
    ReaderGoneError,
    drop_stdout,
    flush_stdout,
    prepare_streams,
    set_quiet,
)
from sessionmgr.cli.verb_table import VERBS, load_verb

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

COMPLETED: Final = 0
USAGE_ERROR: Final = 1

DESCRIPTION: Final = (
    "Run Claude Code, Codex and other AI coding agents unattended; inspect and control their runs."
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `argv` (by default that of this process) and return its exit code."""
    words = sys.argv[1:] if argv is None else list(argv)
    prepare_streams()
    try:
        try:
            code = _dispatch(words)
        except SystemExit as exit_:  # --help and --version
            code = exit_.code if isinstance(exit_.code, int) else USAGE_ERROR
        try:
            flush_stdout()
        except ReaderGoneError:
            drop_stdout()  # the exit code is known without the output
    except BaseException as error:  # the outermost handler  # noqa: ASYNC103, BLE001
        from sessionmgr.cli.error_messages import report_error

        code = report_error(error, words)
    return code


def _dispatch(words: list[str]) -> int:
    place = find_verb(words)
    if place is None:
        return _without_verb(words)
    typed = list(words)
    name = words.pop(place)
    verb = VERBS.get(name)
    if verb is None:
        raise CommandLineInvalid(
            f"unknown command {name!r}{did_you_mean(name, VERBS)} (see {PROGRAM} --help)"
        )
    module = load_verb(verb)
    parser = Parser(f"{PROGRAM} {name}", module.HELP)
    module.add_arguments(parser)
    parser.add_global_flags()
    if "--print-config" in words:
        parser.make_arguments_optional()
    args = parser.parse_intermixed_args(words)  # flags may stand between arguments
    args.typed = typed
    if _load_configuration(args, is_trust=name == "trust"):
        return COMPLETED
    from sessionmgr.cli.log_setup import logging_configured

    with logging_configured(args):
        return module.run(args)


def _without_verb(words: list[str]) -> int:
    listed = "\n".join(f"  {verb.name:<12} {verb.summary}" for verb in VERBS.values())
    parser = Parser(PROGRAM, f"{DESCRIPTION}\n\ncommands:\n{listed}", EXIT_CODES)
    parser.usage = f"{PROGRAM} COMMAND …   (details: {PROGRAM} COMMAND --help)"
    parser.add_global_flags()
    args = parser.parse_args(words)
    if args.print_config:
        _load_configuration(args)
        return COMPLETED
    parser.print_help(sys.stderr)
    return USAGE_ERROR


def _load_configuration(args: argparse.Namespace, *, is_trust: bool = False) -> bool:
    """Load the settings; with `--print-config`, print them and return True."""
    from sessionmgr.cli.config.configuration import load_configuration

    args.configuration = load_configuration(args)
    if args.print_config:
        from sessionmgr.cli.config.print_config import print_configuration

        print_configuration(args.configuration, as_json=args.json)
        return True
    if args.configuration.refused and not is_trust:
        from sessionmgr.cli.config.print_config import print_refused_settings

        print_refused_settings(args.configuration.refused)
    set_quiet(args.quiet)
    return False
