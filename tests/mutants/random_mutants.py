"""Random mutants: `python -m tests.mutants.random_mutants --reach REACH.json --count 20`.

A seed draws changes of the sources of the chosen packages. Each change is made in a copy, and the
tests that reach the changed line (`tests.mutants.reach` finds them) run there, those of its module
first, until one fails twice. If no test reaches the line, all tests of the package run. A surviving
mutant is printed with its line: it is equivalent, or a test is missing. The exit code is 1 if any
mutant survives.
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
"""Seconds of CPU for the tests of one mutant, in addition to TIMES their time without it."""
TIMES: Final = 1
NO_END: Final = "timed out"
UNKNOWN: Final = 60.0
"""Assumed seconds for tests that were not measured."""


class DrawnMutant(NamedTuple):
    """A change of one file."""

    path: str
    change: SourceChange

    @property
    def name(self) -> str:
        """Path and line of the change."""
        return f"{self.path}:{self.change.line}"


def all_changes(packages: Sequence[str], part: str = "") -> Iterator[DrawnMutant]:
    """Yield every change of the sources of packages; the pattern `part` selects paths."""
    for package in packages:
        for file in sorted((ROOT / UNDER[package]).rglob("*.py")):
            path = file.relative_to(ROOT).as_posix()
            if re.search(part, path):
                yield from (
                    DrawnMutant(path, each) for each in changes(file.read_text(encoding="utf-8"))
                )


class PackageCopy:
    """A copy of the whole tree, in which one change at a time is made."""

    def __init__(self, root: Path) -> None:
        self.root = root
        ignored = shutil.ignore_patterns(".git", ".venv", "__pycache__", "*.db")
        for name in ("sessionmgr", "adapters", "tests", "benchmarks"):
            shutil.copytree(ROOT / name, root / name, ignore=ignored, symlinks=True)
        for name in ("pyproject.toml", "README.md"):
            shutil.copy(ROOT / name, root / name)
        compileall.compile_dir(root, quiet=1)

    async def failed(self, drawn: DrawnMutant, tests: Sequence[str], seconds: float) -> str | None:
        """Make the change and run tests; return the first that fails twice, or None."""
        file = self.root / drawn.path
        source, times = file.read_text(encoding="utf-8"), file.stat()
        file.write_text(drawn.change.apply_to(source), encoding="utf-8")
        # The compiled file has the size and second of the original: mark the source as older.
        os.utime(file, (times.st_atime, times.st_mtime - 100))
        chosen = self.root / "chosen"
        chosen.write_text("\n".join(tests), encoding="utf-8")
        command = [sys.executable, "-m", "pytest", "-x", "-q", "--tb=no", "-p", "no:cacheprovider"]
        command += ["-p", "tests.mutants.twice", "-o", "faulthandler_timeout=0"]
        command += ["--hypothesis-profile=brief", f"@{chosen}"]
        try:
            path = os.pathsep.join([str(self.root), str(self.root / "adapters")])
            code, output = await run(command, self.root, PATIENCE + TIMES * seconds, path)
        finally:
            file.write_text(source, encoding="utf-8")
            os.utime(file, (times.st_atime, times.st_mtime))
        if code == 0:
            return None
        if code is None:
            return NO_END
        named = [test for test in tests if f"\nFAILED {test}" in output]
        found = FAILED.search(output)
        if found is None and "conftest" not in output:  # conftest imports the changed module
            assert code != pytest.ExitCode.USAGE_ERROR, output
        return max(named) if named else found[1] if found else output.strip()[-200:]


async def judge(
    copy: PackageCopy, drawn: DrawnMutant, reach: LineReach, first: Sequence[str], most: float
) -> bool:
    """Run tests that take at most `most` seconds in all; return whether they detect the mutant."""
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
    verdict = "SURVIVED" if len(tests) == known else "not killed by the tests that ran"
    verdict = verdict if killer is None else f"killed by {killer[:90]}"
    print(f"{drawn.name} in {change.within}: {change.describe_in(source)}", flush=True)
    print(f"    {verdict} ({len(tests)} of {known} tests, {seconds:.0f} s)", flush=True)
    return killer is not None


def tests_of(path: str, package: str) -> Sequence[str]:
    """Return the tests of a module's own directory, or of its package."""
    own = f"tests/adapters/{path.split('/')[2]}"
    return [own] if package == "adapters" and (ROOT / own).is_dir() else TESTS[package]


def within(most: float, tests: Sequence[str], seconds: Mapping[str, float]) -> list[str]:
    """Return the first tests that take at most `most` seconds together, but at least one."""
    ends = accumulate(seconds.get(each, UNKNOWN) for each in tests)
    return [
        each
        for number, (each, end) in enumerate(zip(tests, ends, strict=True))
        if not number or end <= most
    ]


def exists(test: str) -> bool:
    """Whether the module of a test still exists."""
    return (ROOT / test.partition("::")[0]).exists()


async def judge_all(
    chosen: Sequence[DrawnMutant], reach: LineReach, first: Sequence[str], most: float
) -> int:
    """Judge one mutant after the other; return how many survive."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as directory:
        copy = PackageCopy(Path(directory))
        return [await judge(copy, each, reach, first, most) for each in chosen].count(False)


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw mutants and judge them."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants.random_mutants")
    parser.add_argument("--reach", type=Path, help="output of `tests.mutants.reach`")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=10)
    parser.add_argument("--under", action="append", choices=list(UNDER), help="default: all")
    parser.add_argument(
        "--in", dest="part", default="", metavar="PATTERN", help="pattern of the path"
    )
    parser.add_argument("--at", type=int, help="change this line only")
    parser.add_argument("--share", default="1/1", help="part to run: 1/2 and 2/2 together are all")
    parser.add_argument("--first", action="append", default=[], help="tests to run before others")
    parser.add_argument("--most", type=float, default=inf, help="seconds of tests per mutant")
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
