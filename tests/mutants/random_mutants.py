"""Mutants at random: `python -m tests.mutants.random_mutants --reach REACH.json --count 20`.

A seed draws changes of the sources below the chosen packages. Each is made in a copy, and the tests
that reach the changed line run there, those about its module first, until one fails twice. `reach`
says which they are. A change that none reaches has all tests of its package run. What survives is
printed with its line: it is equivalent, or a test is missing. The exit code is 1 if any does.
"""

from __future__ import annotations

import argparse
import compileall
import os
import random
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from math import inf
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
import pytest
import trio

from tests.mutants.changes import SourceChange, changes
from tests.mutants.reach import ROOT, LineReach, digest_of
from tests.mutants.run import FAILED, run

UNDER: Final = {
    "adapters": "adapters/sessionmgr_adapters",
    "manager": "sessionmgr/manager",
    "batch": "sessionmgr/batch",
    "adapter": "sessionmgr/adapter",
}
TESTS: Final = {
    "adapters": ["tests/adapters", "tests/testing/conformance"],
    "manager": ["tests/manager"],
    "batch": ["tests/batch", "tests/manager/test_batch_needs.py"],
    "adapter": ["tests/adapter", "tests/adapters", "tests/testing/conformance"],
}
PATIENCE: Final = 30.0
"""Seconds of CPU for the tests of one mutant, and so many times more than they took without it."""
TIMES: Final = 1
NO_END: Final = "no end in time"
UNKNOWN: Final = 60.0
"""Seconds for tests that have not been measured."""


class DrawnMutant(NamedTuple):
    """A change of one file."""

    path: str
    change: SourceChange

    @property
    def name(self) -> str:
        """Where it is."""
        return f"{self.path}:{self.change.line}"


def all_changes(packages: Sequence[str], part: str = "") -> Iterator[DrawnMutant]:
    """Give every change of the sources below packages where `part` matches in the path."""
    for package in packages:
        for file in sorted((ROOT / UNDER[package]).rglob("*.py")):
            path = file.relative_to(ROOT).as_posix()
            if re.search(part, path):
                yield from (
                    DrawnMutant(path, each) for each in changes(file.read_text(encoding="utf-8"))
                )


class PackageCopy:
    """A copy of everything, in which one change at a time is made."""

    def __init__(self, root: Path) -> None:
        self.root = root
        ignored = shutil.ignore_patterns(".git", ".venv", "__pycache__", "*.db")
        for name in ("sessionmgr", "adapters", "tests", "benchmarks"):
            shutil.copytree(ROOT / name, root / name, ignore=ignored, symlinks=True)
        for name in ("pyproject.toml", "README.md"):
            shutil.copy(ROOT / name, root / name)
        compileall.compile_dir(root, quiet=1)

    async def failed(self, drawn: DrawnMutant, tests: Sequence[str], seconds: float) -> str | None:
        """Make the change, run tests; return the first that fails twice, None if there is none."""
        file = self.root / drawn.path
        source, times = file.read_text(encoding="utf-8"), file.stat()
        file.write_text(drawn.change.made_in(source), encoding="utf-8")
        # Not what was compiled of a file of this size and second.
        os.utime(file, (times.st_atime, times.st_mtime - 100))
        chosen = self.root / "chosen"
        chosen.write_text("\n".join(tests), encoding="utf-8")
        command = [sys.executable, "-m", "pytest", "-x", "-q", "--tb=no", "-p", "no:cacheprovider"]
        command += ["-p", "tests.mutants.twice", "-o", "faulthandler_timeout=0"]
        command += ["--hypothesis-profile=brief", f"@{chosen}"]
        try:
            path = os.pathsep.join([str(self.root), str(self.root / "adapters")])
            code, said = await run(command, self.root, PATIENCE + TIMES * seconds, path)
        finally:
            file.write_text(source, encoding="utf-8")
            os.utime(file, (times.st_atime, times.st_mtime))
        if code == 0:
            return None
        if code is None:
            return NO_END
        named = [test for test in tests if f"\nFAILED {test}" in said]
        found = FAILED.search(said)
        if found is None and "conftest" not in said:  # which imports what was changed
            assert code != pytest.ExitCode.USAGE_ERROR, said
        return max(named) if named else found[1] if found else said.strip()[-200:]


async def judge(
    copy: PackageCopy, drawn: DrawnMutant, reach: LineReach, first: Sequence[str], most: float
) -> bool:
    """Say of a mutant whether tests notice it, of those that take `most` seconds in all."""
    began = time.monotonic()
    tests = [*first]
    package = next(name for name, path in UNDER.items() if drawn.path.startswith(f"{path}/"))
    own = tuple(tests_of(drawn.path, package))
    source = (copy.root / drawn.path).read_text(encoding="utf-8")
    change = drawn.change
    reached = reach.tests(drawn.path, change.within, change.line, digest_of(source))
    tests += [each for each in reached if exists(each) and each not in first]
    tests.sort(key=lambda test: test not in first and not test.startswith(own))
    known = len(tests)
    tests = within(most, tests, reach.seconds)
    usual = sum(reach.seconds.get(each, UNKNOWN) for each in tests) or UNKNOWN
    killer = await copy.failed(drawn, tests or own, usual)
    seconds = time.monotonic() - began
    verdict = "SURVIVED" if len(tests) == known else "not killed so far"
    verdict = verdict if killer is None else f"killed by {killer[:90]}"
    print(f"{drawn.name} in {change.within}: {change.said_of(source)}", flush=True)
    print(f"    {verdict} ({len(tests)} of {known} tests, {seconds:.0f} s)", flush=True)
    return killer is not None


def tests_of(path: str, package: str) -> Sequence[str]:
    """Return the tests of a module's own directory, or of its package."""
    own = f"tests/adapters/{path.split('/')[2]}"
    return [own] if package == "adapters" and (ROOT / own).is_dir() else TESTS[package]


def within(most: float, tests: Sequence[str], seconds: Mapping[str, float]) -> list[str]:
    """Return the first tests, and one at least, as long as they take `most` seconds in all."""
    ends = accumulate(seconds.get(each, UNKNOWN) for each in tests)
    return [
        each
        for number, (each, end) in enumerate(zip(tests, ends, strict=True))
        if not number or end <= most
    ]


def exists(test: str) -> bool:
    """Whether the module of a test is still there."""
    return (ROOT / test.partition("::")[0]).exists()


async def judge_all(
    chosen: Sequence[DrawnMutant], reach: LineReach, first: Sequence[str], most: float
) -> int:
    """Judge one after the other; return how many survive."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as directory:
        copy = PackageCopy(Path(directory))
        return [await judge(copy, each, reach, first, most) for each in chosen].count(False)


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw mutants, and judge them."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants.random_mutants")
    parser.add_argument("--reach", type=Path, help="what `tests.mutants.reach` has written")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=10)
    parser.add_argument("--under", action="append", choices=list(UNDER), help="default: all")
    parser.add_argument(
        "--in", dest="part", default="", metavar="PATTERN", help="a pattern that is in the path"
    )
    parser.add_argument("--at", type=int, help="only changes of this line")
    parser.add_argument("--share", default="1/1", help="which of so many: 1/2 and 2/2 are all")
    parser.add_argument("--first", action="append", default=[], help="tests to run before others")
    parser.add_argument(
        "--most", type=float, default=inf, help="seconds that the tests of one may have taken"
    )
    options = parser.parse_args(arguments)
    known = list(all_changes(options.under or list(UNDER), options.part))
    known = [each for each in known if options.at in {None, each.change.line}]
    chosen = random.Random(options.seed).sample(known, min(options.count, len(known)))
    share, of = map(int, options.share.split("/"))
    chosen = chosen[share - 1 :: of]
    reach = LineReach({}, {})
    if options.reach is not None:
        reach = msgspec.json.decode(options.reach.read_bytes(), type=LineReach)
    survivors = trio.run(judge_all, chosen, reach, options.first, options.most)
    print(f"{len(chosen) - survivors} of {len(chosen)} mutants killed")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
