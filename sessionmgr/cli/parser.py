"""Parsing of arguments: one-line errors, and flags that may stand before and after the verb."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING, Final, NoReturn

from sessionmgr.cli.errors import CommandLineInvalid
from sessionmgr.cli.terminal.stdout import print_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

PROGRAM: Final = "sessionmgr"

EXIT_CODES: Final = """\
exit codes:
  0    success: everything completed
  1    wrong usage, or an error before the start
  3    not everything completed
  130  interrupted
"""

STORE: Final = "file that stores the sessions (default: ~/.local/state/sessionmgr/sessionmgr.db)"
CAPTURE: Final = "record all traffic with the agents in this directory (default: none)"
AGENTS: Final = (
    "registry file of agents (registry.json or agent.json), which adds the providers acp:ID "
    "(default: none, only the agents that are known by name)"
)

# Flags of all verbs that take a value.
_WITH_VALUE: Final = {"--store", "--log-file", "--capture", "--agents"}


# Messages of argparse, and their replacements.
_PLAIN: Final = {
    "ignored explicit argument": "takes no value, got",
    ": expected one argument": " needs a value",
    "the following arguments are required": "missing argument",
}


class _Formatter(argparse.HelpFormatter):
    """Help formatter that puts help beside flags, and wraps paragraphs unless they are indented."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=32)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        def filled(paragraph: str) -> str:
            if "\n  " in f"\n{paragraph}":
                return paragraph
            return argparse.HelpFormatter._fill_text(self, paragraph, width, indent)

        return "\n\n".join(map(filled, text.split("\n\n")))


class Parser(argparse.ArgumentParser):
    """Argument parser that raises errors as one line."""

    def __init__(self, prog: str, description: str, epilog: str | None = None) -> None:
        super().__init__(
            prog=prog,
            description=description,
            epilog=epilog,
            formatter_class=_Formatter,
            allow_abbrev=False,
        )

    def error(self, message: str) -> NoReturn:
        """Raise an error that says what is wrong and where the help is.

        Raises:
            CommandLineInvalid: Always.
        """
        where = self.prog.removeprefix(PROGRAM).strip()
        what = f"{where}: " if where else ""
        raise CommandLineInvalid(f"{what}{self._suggest_flag(message)} (see {self.prog} --help)")

    def add_global_flags(self) -> None:
        """Add the flags that may stand before and after each verb; its usage leaves them out."""
        self.usage = self.usage or self.format_usage().removeprefix("usage: ").rstrip()
        self.usage = self.usage.replace("%", "%%")
        add_global_flags(self)

    def make_arguments_optional(self) -> None:
        """Accept a command line without its required arguments, for `--print-config`."""
        for action in self._actions:
            action.required = False

    def _suggest_flag(self, message: str) -> str:
        """Replace the message about an unknown flag by one that suggests a similar flag."""
        unknown = re.fullmatch(r"unrecognized arguments: (.*)", message, re.DOTALL)
        if unknown is None:
            for theirs, ours in _PLAIN.items():
                message = message.replace(theirs, ours)
            return re.sub(r"^argument (\S+/)*", "", message)
        first = unknown[1].split(" ")[0].partition("=")[0]
        if not first.startswith("-"):
            return f"unexpected argument {unknown[1]!r}"
        flags = [flag for action in self._actions for flag in action.option_strings]
        return f"unknown flag {first}{did_you_mean(first, flags)}"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return "; did you mean …?" if a known word is similar, else an empty text."""
    from difflib import get_close_matches

    nearest = get_close_matches(word, list(known), n=1)
    return f"; did you mean {nearest[0]}?" if nearest else ""


def one_of(what: str, names: Sequence[str]) -> Callable[[str], str]:
    """Return the type of an argument that is one of `names`; `what` describes them in errors."""

    def checked(text: str) -> str:
        if text in names:
            return text
        hint = did_you_mean(text, names) or f"; known: {', '.join(names)}"
        raise argparse.ArgumentTypeError(f"unknown {what} {text!r}{hint}")

    return checked


class VersionAction(argparse.Action):
    """Action that prints the installed version and exits; the version is looked up only then."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        """Print the version on stdout and exit."""
        from importlib.metadata import version

        print_line(f"sessionmgr {version('sessionmgr')}")
        parser.exit()


def add_global_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags that may stand before and after each verb."""
    flags = parser.add_argument_group("global options")
    flags.add_argument("--json", action="store_true", help="print JSON, one object per line")
    flags.add_argument("--store", metavar="PATH", help=STORE)
    flags.add_argument(
        "-v",
        "--verbose",
        action="count",
        default=0,
        help="increase verbosity (-vv: debug output; default: notes and warnings)",
    )
    flags.add_argument("-q", "--quiet", action="store_true", help="print errors only")
    flags.add_argument(
        "--log-file", metavar="FILE", help="also write the log to this file (default: none)"
    )
    flags.add_argument("--capture", metavar="DIR", help=CAPTURE)
    flags.add_argument("--agents", metavar="FILE", help=AGENTS)
    flags.add_argument(
        "--print-config",
        action="store_true",
        help="print the effective settings and where each comes from",
    )
    flags.add_argument(
        "--version", action=VersionAction, nargs=0, help="print the version and exit"
    )


def find_verb(argv: Sequence[str]) -> int | None:
    """Return the index of the verb: the first word that is neither a flag nor its value."""
    value = False
    for place, word in enumerate(argv):
        if value:
            value = False
        elif word.startswith("-") and word != "-":
            value = word in _WITH_VALUE
        else:
            return place
    return None
