"""`python -m tests.simulation`: run simulations, and print the seeds with violations."""

from __future__ import annotations

import argparse
import sys
import time
from typing import TYPE_CHECKING

from tests.simulation.simulation import simulate
from tests.simulation.world import SESSIONS

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the selected seeds; return 1 if any of them breaks a law."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, help="run this seed only")
    parser.add_argument(
        "--seeds", default="0:1", help="range of seeds A:B, without B (default: %(default)s)"
    )
    parser.add_argument(
        "--sessions",
        type=int,
        default=SESSIONS,
        help="sessions for each seed (default: %(default)s)",
    )
    parser.add_argument(
        "--first", action="store_true", help="stop at the first seed with violations"
    )
    parser.add_argument(
        "--lines",
        type=int,
        default=20,
        help="violations to print for each seed (default: %(default)s)",
    )
    options = parser.parse_args(arguments)
    first, _, last = options.seeds.partition(":")
    seeds = range(int(first), int(last)) if options.seed is None else [options.seed]
    failed, events, runs, virtual = 0, 0, 0, 0.0
    began = time.process_time()
    for seed in seeds:
        report = simulate(seed, sessions=options.sessions)
        events, runs, virtual = events + report.events, runs + report.runs, virtual + report.seconds
        if report.broken:
            failed += 1
            sys.stdout.write(f"{report.command}\n")
            for sentence in report.broken[: options.lines]:
                sys.stdout.write(f"    {sentence}\n")
            sys.stdout.flush()
            if options.first:
                break
    seconds = time.process_time() - began
    sys.stdout.write(
        f"{len(seeds)} seeds, {failed} with violations; {runs} runs, {events} events, "
        f"{virtual:.0f} virtual seconds in {seconds:.1f} s of CPU\n"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
