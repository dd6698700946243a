"""Which tests reach a function: from one run of all of them under coverage.

    python -m tests.mutants.reach OUT.json [TESTS...]

Tests are what pytest is given; without any, those that concern adapters, manager and batches.
"""

from __future__ import annotations

import ast
import json
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


class Reach(msgspec.Struct, frozen=True):
    """For each module, by its path, which tests come into each of its functions, fastest first."""

    of: dict[str, dict[str, list[str]]]
    seconds: dict[str, float]

    def tests(self, path: str, within: str) -> list[str]:
        """Return the tests that reach a function, or the class around it, or its module."""
        known = self.of.get(path, {})
        while within and within not in known:
            within = within.rpartition(".")[0]
        found = known.get(within) or [each for tests in known.values() for each in tests]
        return sorted(set(found), key=lambda test: self.seconds.get(test, 0.0))


class Watcher:
    """A plugin of pytest that notes which test runs, and for how long."""

    def __init__(self, watch: coverage.Coverage) -> None:
        self.seconds: dict[str, float] = {}
        self._watch = watch

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self._watch.switch_context(item.nodeid)
        began = time.monotonic()
        done = yield
        self.seconds[item.nodeid] = time.monotonic() - began
        self._watch.switch_context("")
        return done


def functions(source: str) -> Iterator[tuple[str, range]]:
    """Give the qualified name and the lines of the body of each function."""

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


def reach_of(data: coverage.CoverageData, seconds: dict[str, float], root: Path) -> Reach:
    """Say which tests reach what."""
    of: dict[str, dict[str, list[str]]] = {}
    for file in sorted(data.measured_files()):
        tests_of = data.contexts_by_lineno(file)
        known: dict[str, set[str]] = defaultdict(set)
        for name, lines in functions(Path(file).read_text(encoding="utf-8")):
            known[name] |= {test for line in lines for test in tests_of.get(line, []) if test}
        of[Path(file).relative_to(root).as_posix()] = {
            name: sorted(tests) for name, tests in known.items() if tests
        }
    return Reach(of, seconds)


def main(arguments: Sequence[str]) -> int:
    """Run the tests, and write down what they reach."""
    out, *tests = arguments
    with tempfile.TemporaryDirectory(prefix="reach-") as directory:
        watch = coverage.Coverage(
            data_file=f"{directory}/data",
            branch=False,
            source=[str(ROOT / package) for package in PACKAGES],
            config_file=False,
        )
        watcher = Watcher(watch)
        watch.start()
        command = ["-q", "-p", "no:cacheprovider", "--hypothesis-profile=brief"]
        code = pytest.main([*command, "-o", "faulthandler_timeout=0", *(tests or TESTS)], [watcher])
        watch.stop()
        found = reach_of(watch.get_data(), watcher.seconds, ROOT)
        Path(out).write_text(json.dumps(msgspec.to_builtins(found)), encoding="utf-8")
    return int(code)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
