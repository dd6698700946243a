"""Random mutants: each change is one mistake and leaves valid Python."""

from pathlib import Path
from types import ModuleType

import pytest

import sessionmgr.batch
import sessionmgr.manager
import sessionmgr_adapters
from tests.mutants.changes import changes
from tests.mutants.reach import CoveredLines, LineReach, digest_of, functions


def made_of(source: str) -> list[str]:
    return [each.apply_to(source) for each in changes(source)]


@pytest.mark.parametrize(
    ("source", "mutants"),
    [
        ("if a:\n    f(x)", ["if (not (a)):\n    f(x)", "if a:\n    pass"]),
        ("while not a:\n    b = 1", ["while (a):\n    b = 1"]),
        ("x = [a for a in b if c]", ["x = [a for a in b if (not (c))]"]),
        ("x = a < b", ["x = a <= b"]),
        ("x = (a) is not (b)", ["x = (a) is (b)"]),
        ("x = (\n    a  # and so on\n    and b\n)", ["x = (\n    a  # and so on\n    or b\n)"]),
        ("x = 'ß' + a", ["x = 'ß' - a"]),
        ("x = True", ["x = False"]),
        ("it.x = a", ["pass"]),
        ("it += 1", ["pass"]),
        ("raise E", ["pass"]),
        ("def f():\n    return 1", ["def f():\n    return 2"]),
        ("for a in b:\n    break", ["for a in b:\n    pass"]),
        (
            "def f():\n    if a:\n        return",
            ["def f():\n    if (not (a)):\n        return", "def f():\n    if a:\n        pass"],
        ),
    ],
)
def test_a_mistake_is_made(source: str, mutants: list[str]) -> None:
    assert sorted(made_of(source)) == sorted(mutants)


@pytest.mark.parametrize(
    "source",
    [
        '"""About."""',
        "PATIENCE = 60",
        "__slots__ = ('a',)",
        "def f(a: Literal[True]) -> Literal[False]: ...",
        "assert a < b",
        "class A(Struct, frozen=True): ...",
        "A = TypeVar('A', covariant=True)",
        "if TYPE_CHECKING:\n    f()",
        "async def f():\n    await trio.lowlevel.checkpoint()",
    ],
)
def test_what_is_no_behaviour_stays(source: str) -> None:
    assert made_of(source) == []


@pytest.mark.parametrize("package", [sessionmgr_adapters, sessionmgr.manager, sessionmgr.batch])
def test_all_changes_of_the_present_sources_are_python(package: ModuleType) -> None:
    assert package.__file__ is not None
    drawn = 0
    for path in sorted(Path(package.__file__).parent.rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        found = changes(source)
        drawn += len(found)
        for change in found[::25]:
            made = change.apply_to(source)
            assert made != source
            compile(made, str(path), "exec")
    assert drawn > 1000


def test_a_function_is_known_by_its_name_and_its_lines() -> None:
    source = (
        "class A:\n    def f(self):\n        x = 1\n        return x\n\nasync def g():\n    pass"
    )
    assert dict(functions(source)) == {"A.f": range(3, 5), "g": range(7, 8)}


def test_the_tests_of_a_function_come_fastest_first_or_else_those_of_what_is_around_it() -> None:
    of = {"a.py": {"A.f": ["slow", "fast"], "g": ["other"]}}
    reach = LineReach(of, {"slow": 2.0, "fast": 1.0, "other": 3.0})
    assert reach.tests("a.py", "A.f.inner") == ["fast", "slow"]
    assert reach.tests("a.py", "A.never") == ["fast", "slow", "other"]
    assert reach.tests("b.py", "f") == []


def test_the_tests_of_a_line_are_known_while_its_source_is_the_same() -> None:
    lines = CoveredLines(digest_of("now"), {7: [0, 2]})
    of = {"a.py": {"f": ["slow", "fast", "tests/test_a.py::t"]}}
    names, seconds = ["slow", "fast", "tests/test_a.py::t"], {"slow": 2.0, "fast": 1.0}
    seconds["tests/test_a.py::t"] = 3.0
    reach = LineReach(of, seconds, names, {"a.py": lines})
    own_first = ["tests/test_a.py::t", "slow"]
    assert reach.tests("a.py", "f", 7, digest_of("now")) == own_first
    assert reach.tests("a.py", "f", 8, digest_of("now")) == [own_first[0], "fast", "slow"]
    assert reach.tests("a.py", "f", 7, digest_of("later")) == [own_first[0], "fast", "slow"]
