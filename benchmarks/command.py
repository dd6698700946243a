"""The command line of the benchmarks."""

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Final

import trio

from benchmarks.acp.suite import ACP
from benchmarks.batch.suite import BATCH
from benchmarks.claude.suite import CLAUDE
from benchmarks.cli.suite import CLI
from benchmarks.codex.suite import CODEX
from benchmarks.fleet.suite import FLEET
from benchmarks.goal import exit_code
from benchmarks.manager.suite import MANAGER
from benchmarks.otp.suite import OTP
from benchmarks.process.suite import PROCESS
from benchmarks.report import as_json, conditions, goal_list, table, verdicts
from benchmarks.rounds import Rounds
from benchmarks.shipped.suite import SHIPPED
from benchmarks.store.suite import STORE
from benchmarks.suite import Suite, UnknownNameError, choose, contestants_of, only
from benchmarks.wire.suite import WIRE

SUITES: Final = (OTP, WIRE, STORE, PROCESS, MANAGER, SHIPPED, FLEET, BATCH, CLI, CLAUDE, CODEX, ACP)
ROUNDS: Final = 7

EPILOG: Final = """\
examples:
  python -m benchmarks --list              all goals: suite, goal, bound, what
  python -m benchmarks fleet --list        the goals of one suite
  python -m benchmarks fleet               measure one suite
  python -m benchmarks fleet --only G-F1   measure one goal of a suite
  python -m benchmarks --only G-F1         measure a goal, whichever suite has it
  python -m benchmarks fleet --smoke       check that it works, in seconds

exit status: 0 if every bound holds that could be measured, 1 if a bound is
broken or a contestant failed, 2 if the command line is wrong. A program that
is not installed is named, with how to install it; its goals are not measured,
and do not change the exit status.
"""


def parser() -> argparse.ArgumentParser:
    """Return the parser of `python -m benchmarks`."""
    described = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measure our goals of speed, as ratios against others in the same run.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    names = ", ".join(each.name for each in SUITES)
    described.add_argument("names", nargs="*", metavar="SUITE", help=f"{names} (default: all)")
    described.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="GOAL",
        help="measure this goal alone, in all suites that are named; may be repeated",
    )
    described.add_argument(
        "--list",
        action="store_true",
        help="print suite, goal, bound and what is compared, and measure nothing",
    )
    described.add_argument(
        "--rounds",
        type=_rounds,
        metavar="N",
        help=f"rounds to run (default {ROUNDS}, with --smoke 1)",
    )
    described.add_argument(
        "--smoke",
        action="store_true",
        help="do little, to see that everything works; bounds are not judged",
    )
    described.add_argument("--json", action="store_true", help="print JSON instead of a table")
    return described


def _rounds(text: str) -> int:
    rounds = int(text)
    if rounds < 1:
        raise argparse.ArgumentTypeError("at least one round is needed")
    return rounds


def main(arguments: Sequence[str]) -> int:
    """Run the command line and return the exit status."""
    described = parser()
    asked = described.parse_args(arguments)
    try:
        suites = choose(asked.names, SUITES)
        if asked.only:
            suites = only(suites, asked.only)
    except UnknownNameError as error:
        described.error(str(error))
    if asked.list:
        sys.stdout.write(goal_list(suites) + "\n")
        return 0
    return run(
        suites,
        rounds=asked.rounds or (1 if asked.smoke else ROUNDS),
        smoke=asked.smoke,
        plain_json=asked.json,
    )


def run(suites: Sequence[Suite], *, rounds: int, smoke: bool, plain_json: bool) -> int:
    """Measure the suites, print the results and return the exit status."""
    goals = [goal for suite in suites for goal in suite.goals]
    notes = list(dict.fromkeys(note for suite in suites if suite.goals for note in suite.notes))
    at_once = os.cpu_count() or 1 if smoke else 1  # only smoke runs may run in parallel
    stage = Rounds(contestants_of(suites), rounds, smoke, sys.stderr, at_once)
    stopped = False
    try:
        trio.run(stage.run)
    except* KeyboardInterrupt:
        stopped = True
    if stopped:
        sys.stderr.write("\nstopped\n")
        return 130
    results = stage.results(goals)
    if plain_json:
        sys.stdout.write(as_json(results, notes, rounds) + "\n")
    else:
        lines = [conditions(rounds), *notes, "", table(results), "", verdicts(results)]
        sys.stdout.write("\n".join(lines) + "\n")
    return exit_code(results)
