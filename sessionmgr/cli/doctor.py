"""The verb `doctor`: whether all is well on this machine, and the next step where it is not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sessionmgr.cli.check import Check
from sessionmgr.cli.output import say, say_json
from sessionmgr.cli.stopping import run_verb
from sessionmgr.cli.table import labelled, room

if TYPE_CHECKING:
    import argparse

HELP: Final = """\
Check everything that runs need: versions, the settings, the store, child processes, limits,
and whether each agent is installed and has a login (a key, a login file, or a configured
model provider). It starts no agent. Each line is ok, skip (not installed, or weaker than
possible) or fail, with the next step. An agent that the settings name must be installed.
The exit code is 3 if a check fails."""

NOT_WELL: Final = 3
INDENT: Final = 22


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take names of what is to be looked at."""
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help="check only these: store, providers, claude, … (default: all)",
    )


def run(args: argparse.Namespace) -> int:
    """Look, tell, and return the exit code."""
    return run_verb(_examine, args)


async def _examine(args: argparse.Namespace) -> int:
    from sessionmgr.cli.examination import examine

    checks = await examine(args.configuration, args.names)
    for check in checks:
        if args.json:
            say_json(check)
        else:
            for line in _told(check):
                say(line)
    return NOT_WELL if any(check.state == "fail" for check in checks) else 0


def _told(check: Check) -> list[str]:
    label = f"{check.state:<5} {check.name}"
    lines = labelled(label, check.detail, indent=INDENT, width=room())
    if check.next:
        lines += labelled("", f"next: {check.next}", indent=INDENT, width=room())
    return lines
