"""Where the command line is parsed and handed to a verb.

What only some verbs need is imported when one of them is asked for.
"""

import argparse
import sys
from collections.abc import Sequence
from typing import Final, NoReturn

USAGE_ERROR: Final = 1
INTERRUPTED: Final = 130

EXIT_CODES: Final = """\
exit codes:
  0    all went well
  1    wrong usage, or it could not start
  3    it ran, but not all of it to its end
  130  interrupted
"""


class Parser(argparse.ArgumentParser):
    """An argument parser whose usage errors exit with 1."""

    def error(self, message: str) -> NoReturn:
        """Print the usage and what is wrong with it, and exit."""
        self.print_usage(sys.stderr)
        self.exit(USAGE_ERROR, f"{self.prog}: error: {message}\n")


class Version(argparse.Action):
    """Print the installed version and exit; it is looked up only when asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        """Print it on stdout."""
        from importlib.metadata import version

        sys.stdout.write(f"sessionmgr {version('sessionmgr')}\n")
        parser.exit()


def build_parser() -> Parser:
    """Make the parser of the whole command line."""
    parser = Parser(
        prog="sessionmgr",
        description="Supervised actors on trio, for programs that run AI coding agents.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action=Version, nargs=0, help="print the version and exit")
    verbs = parser.add_subparsers(dest="verb", metavar="COMMAND", title="commands")
    verbs.add_parser(
        "demo",
        help="see a supervision tree at work (five seconds, needs nothing)",
        description="Show supervision at work: a worker that crashes and comes back, one that "
        "will not get well, and an ordered stop. Needs no network, no key and no terminal.",
        allow_abbrev=False,
    )
    schema = verbs.add_parser(
        "schema",
        help="print the JSON Schema of an event or a result",
        description="Print the JSON Schema (2020-12) of what is stored and printed.",
        allow_abbrev=False,
    )
    schema.add_argument("name", choices=["event", "result"], help="what to describe")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `argv` (by default that of this process) and return its exit code."""
    parser = build_parser()
    asked = parser.parse_args(argv)
    if asked.verb is None:
        parser.print_help(sys.stderr)
        return USAGE_ERROR
    try:
        return _run(asked)
    except KeyboardInterrupt:  # pressed before the verb had its own way to stop
        return INTERRUPTED


def _run(asked: argparse.Namespace) -> int:
    match asked.verb:
        case "schema":
            from sessionmgr.cli import schema

            return schema.run(asked.name)
        case _:
            from sessionmgr.cli import demo

            return demo.run()
