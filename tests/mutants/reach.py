"""Coverage by test: find the tests that reach each line and function, in one run of all tests.

    python -m tests.mutants.reach OUT.json [TESTS...]

TESTS are arguments of pytest; the default is the tests of adapters, manager and batches.
"""

from __future__ import annotations

import ast
import hashlib
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import Final

import coverage
import msgspec
import pytest

ROOT: Final = Path(__file__).parents[2]
PACKAGES: Final = ("adapters", "sessionmgr/manager", "sessionmgr/batch", "sessionmgr/adapter")
TESTS: Final = ("tests/adapters", "tests/adapter", "tests/batch", "tests/manager", "tests/testing")


class CoveredLines(msgspec.Struct, frozen=True):
    """Tests that reach the lines of a module, as indices into `LineReach.names`."""

    digest: str
    """Digest of the source; the line numbers are valid for this source only."""
    of: dict[int, list[int]]


class LineReach(msgspec.Struct, frozen=True):
    """Tests that reach each function and line, by path of the module.

    It contains tests that passed, and no others.
    """

    of: dict[str, dict[str, list[str]]]
    seconds: dict[str, float]
    names: list[str] = []
    lines: dict[str, CoveredLines] = {}

    def tests(self, path: str, within: str, line: int = 0, digest: str = "") -> list[str]:
        """Return the tests that reach a line, fastest first.

        If no test does, or the source has changed, return those that reach its function, the class
        around it, or its module. Tests of the module itself come first.
        """
        known, lines = self.of.get(path, {}), self.lines.get(path)
        if lines is not None and lines.digest == digest and line in lines.of:
            found = [self.names[number] for number in lines.of[line]]
        else:
            while within and within not in known:
                within = within.rpartition(".")[0]
            found = known.get(within) or [each for tests in known.values() for each in tests]
        own = f"/test_{Path(path).stem}.py"
        return sorted(set(found), key=lambda test: (own not in test, self.seconds.get(test, 0.0)))


def digest_of(source: str) -> str:
    """Return a digest that identifies a source."""
    return hashlib.sha256(source.encode()).hexdigest()


class LineTracer:
    """A pytest plugin that records the running test and its duration."""

    def __init__(self, watch: coverage.Coverage) -> None:
        self.seconds: dict[str, float] = {}
        self.failed: set[str] = set()
        self._watch = watch

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self._watch.switch_context(item.nodeid)
        began = time.monotonic()
        done = yield
        self.seconds[item.nodeid] = time.monotonic() - began
        self._watch.switch_context("")
        return done

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.add(report.nodeid)


def functions(source: str) -> Iterator[tuple[str, range]]:
    """Yield the qualified name and the lines of the body of each function."""

    def within(node: ast.AST, name: str) -> Iterator[tuple[str, range]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                inner = f"{name}.{child.name}".lstrip(".")
                if not isinstance(child, ast.ClassDef):
                    assert child.end_lineno is not None
                    yield inner, range(child.body[0].lineno, child.end_lineno + 1)
                yield from within(child, inner)
            else:
                yield from within(child, name)

    return within(ast.parse(source), "")


def reach_of(data: coverage.CoverageData, seconds: dict[str, float], root: Path) -> LineReach:
    """Return which of the tests with a known duration reach which lines."""
    of: dict[str, dict[str, list[str]]] = {}
    lines_of: dict[str, CoveredLines] = {}
    numbers = {name: number for number, name in enumerate(seconds)}
    for file in sorted(data.measured_files()):
        tests_of = {
            line: sorted({numbers[test] for test in tests if test in numbers})
            for line, tests in data.contexts_by_lineno(file).items()
        }
        source, path = Path(file).read_text(encoding="utf-8"), Path(file).relative_to(root)
        known: dict[str, set[int]] = defaultdict(set)
        for name, lines in functions(source):
            known[name].update(*(tests_of.get(line, []) for line in lines))
        names = list(seconds)
        of[path.as_posix()] = {
            name: sorted(names[number] for number in tests)
            for name, tests in known.items()
            if tests
        }
        reached = {line: tests for line, tests in tests_of.items() if tests}
        lines_of[path.as_posix()] = CoveredLines(digest_of(source), reached)
    return LineReach(of, seconds, list(seconds), lines_of)


def main(arguments: Sequence[str]) -> int:
    """Run the tests and write what they reach to a file."""
    out, *tests = arguments
    with tempfile.TemporaryDirectory(prefix="reach-") as directory:
        watch = coverage.Coverage(
            data_file=f"{directory}/data",
            branch=False,
            source=[str(ROOT / package) for package in PACKAGES],
            config_file=False,
        )
        watcher = LineTracer(watch)
        watch.start()
        command = ["-q", "-p", "no:cacheprovider", "--hypothesis-profile=brief"]
        code = pytest.main([*command, "-o", "faulthandler_timeout=0", *(tests or TESTS)], [watcher])
        watch.stop()
        passed = {k: v for k, v in watcher.seconds.items() if k not in watcher.failed}
        Path(out).write_bytes(msgspec.json.encode(reach_of(watch.get_data(), passed, ROOT)))
    return int(code)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
