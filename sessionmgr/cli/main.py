"""Where the command line is parsed and handed to a verb, and where mistakes become one line.

What only some verbs need is imported when one of them is asked for.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from sessionmgr.cli.output import ReaderGoneError, drop_stdout, finish, prepare_streams, set_quiet
from sessionmgr.cli.parser import (
    EXIT_CODES,
    PROGRAM,
    Parser,
    find_verb,
    meant,
)
from sessionmgr.cli.verbs import VERBS, load
from sessionmgr.errors import CommandLineInvalid

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
            code = _answer(words)
        except SystemExit as exit_:  # --help and --version
            code = exit_.code if isinstance(exit_.code, int) else USAGE_ERROR
        try:
            finish()
        except ReaderGoneError:
            drop_stdout()  # how it went is known all the same
    except BaseException as error:  # the edge of it all  # noqa: ASYNC103, BLE001
        from sessionmgr.cli.mistake import told

        code = told(error, words)
    return code


def _answer(words: list[str]) -> int:
    place = find_verb(words)
    if place is None:
        return _without_verb(words)
    typed = list(words)
    name = words.pop(place)
    verb = VERBS.get(name)
    if verb is None:
        raise CommandLineInvalid(
            f"unknown command {name!r}{meant(name, VERBS)} (see {PROGRAM} --help)"
        )
    module = load(verb)
    parser = Parser(f"{PROGRAM} {name}", module.HELP)
    module.add_arguments(parser)
    parser.add_global_flags()
    if "--print-config" in words:
        parser.require_nothing()
    args = parser.parse_intermixed_args(words)  # flags may stand between, too
    args.typed = typed
    if _settle(args, is_trust=name == "trust"):
        return COMPLETED
    from sessionmgr.cli.logs import logged

    with logged(args):
        return module.run(args)


def _without_verb(words: list[str]) -> int:
    listed = "\n".join(f"  {verb.name:<12} {verb.summary}" for verb in VERBS.values())
    parser = Parser(PROGRAM, f"{DESCRIPTION}\n\ncommands:\n{listed}", EXIT_CODES)
    parser.usage = f"{PROGRAM} COMMAND …   (details: {PROGRAM} COMMAND --help)"
    parser.add_global_flags()
    args = parser.parse_args(words)
    if args.print_config:
        _settle(args)
        return COMPLETED
    parser.print_help(sys.stderr)
    return USAGE_ERROR


def _settle(args: argparse.Namespace, *, is_trust: bool = False) -> bool:
    """Work out the settings, and print them if that is all that was asked."""
    from sessionmgr.cli.configuration import configure

    args.configuration = configure(args)
    if args.print_config:
        from sessionmgr.cli.print_config import print_configuration

        print_configuration(args.configuration, as_json=args.json)
        return True
    if args.configuration.refused and not is_trust:
        from sessionmgr.cli.print_config import note_refused

        note_refused(args.configuration.refused)
    set_quiet(args.quiet)
    return False
