"""The verb `doctor`: check the installation, and print the next step for each problem."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sessionmgr.cli.check_result import CheckResult
from sessionmgr.cli.terminal.signals import run_verb
from sessionmgr.cli.terminal.stdout import print_json, print_line
from sessionmgr.cli.terminal.table import format_labelled, terminal_width

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
    """Add the names of the checks."""
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help="check only these: store, providers, claude, … (default: all)",
    )


def run(args: argparse.Namespace) -> int:
    """Run the checks, print them and return the exit code."""
    return run_verb(_run_checks, args)


async def _run_checks(args: argparse.Namespace) -> int:
    from sessionmgr.cli.checks import run_checks

    checks = await run_checks(args.configuration, args.names)
    for check in checks:
        if args.json:
            print_json(check)
        else:
            for line in _check_line(check):
                print_line(line)
    return NOT_WELL if any(check.state == "fail" for check in checks) else 0


def _check_line(check: CheckResult) -> list[str]:
    label = f"{check.state:<5} {check.name}"
    lines = format_labelled(label, check.detail, indent=INDENT, width=terminal_width())
    if check.next:
        lines += format_labelled("", f"next: {check.next}", indent=INDENT, width=terminal_width())
    return lines
