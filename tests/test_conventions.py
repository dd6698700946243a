"""Conventions of the whole tree: types, docstrings, imports, names and words."""

import ast
import importlib
import importlib.metadata
import importlib.util
import inspect
import io
import pkgutil
import re
import subprocess
import sys
import tokenize
import tomllib
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path
from types import ModuleType

import pytest

import sessionmgr
import sessionmgr.errors
import sessionmgr.lazy_exports
import sessionmgr.otp
import sessionmgr.testing.names
import sessionmgr_adapters
from tests.pages import pages, text_of

PACKAGES: list[ModuleType] = [sessionmgr, sessionmgr_adapters]
TESTS = Path(__file__).parent
PYPROJECT = TESTS.parent / "pyproject.toml"


def home(package: ModuleType) -> Path:
    assert package.__file__ is not None
    return Path(package.__file__).parent


MODULES = sorted(
    name
    for package in PACKAGES
    for name in [
        package.__name__,
        *(m.name for m in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")),
    ]
    if not name.endswith(".__main__")
)

PUBLIC = {
    name: thing
    for name, thing in vars(sessionmgr.otp).items()
    if not name.startswith("_") and (inspect.isclass(thing) or inspect.isfunction(thing))
}


@pytest.mark.parametrize("package", PACKAGES, ids=lambda p: p.__name__)
def test_a_package_says_that_it_is_typed(package: ModuleType) -> None:
    assert (home(package) / "py.typed").exists()


def test_the_installed_version_is_the_one_that_is_written_down() -> None:
    written = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]["version"]
    assert importlib.metadata.version("sessionmgr") == written


def test_nothing_imports_another_event_loop() -> None:
    program = f"""
import importlib, sys
for name in {MODULES!r}:
    importlib.import_module(name)
others = {{"asyncio", "anyio", "curio"}} & sys.modules.keys()
sys.exit(f"imported: {{others}}" if others else 0)
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


@pytest.mark.parametrize("name", MODULES)
def test_a_module_begins_with_what_it_is_about(name: str) -> None:
    assert (importlib.import_module(name).__doc__ or "").strip()


def test_the_top_of_a_package_holds_imports_and_their_list_and_nothing_else() -> None:
    tops = [top for package in PACKAGES for top in home(package).rglob("__init__.py*")]
    for top in tops:
        statements = ast.parse(top.read_text(encoding="utf-8")).body
        imported: list[str | None] = []
        listed: list[str] | None = None
        for number, statement in enumerate(statements):
            match statement:
                case ast.Expr(value=ast.Constant(value=str())) if number == 0:
                    pass
                case ast.ImportFrom(names=names):
                    imported += [each.asname for each in names]
                case ast.Assign(targets=[ast.Name(id="__all__")], value=value):
                    listed = ast.literal_eval(value)
                case _:
                    pytest.fail(f"{top}:{statement.lineno} is neither an import nor __all__")
        if listed is not None:
            assert sorted(listed) == sorted(filter(None, imported)), top


@pytest.mark.parametrize(
    "name",
    "adapter batch manager model otp process store testing wire".split(),
)
def test_a_public_package_lists_its_names(name: str) -> None:
    for package in (sessionmgr, importlib.import_module(f"sessionmgr.{name}")):
        assert package.__all__
        for each in package.__all__:
            assert hasattr(package, each)


LAZY = ("adapter.kit", "cli", "process")


@pytest.mark.parametrize(
    ("package", "public"),
    [
        (sessionmgr, sessionmgr.lazy_exports.PUBLIC),
        (sessionmgr.testing, sessionmgr.testing.names.PUBLIC),
        *(
            (
                importlib.import_module(f"sessionmgr.{name}"),
                importlib.import_module(f"sessionmgr.{name}.names").PUBLIC,
            )
            for name in LAZY
        ),
    ],
    ids=["sessionmgr", "testing", *LAZY],
)
def test_the_stub_of_a_lazy_package_lists_its_names(
    package: ModuleType, public: dict[str, tuple[str, ...]]
) -> None:
    stub = ast.parse((home(package) / "__init__.pyi").read_text(encoding="utf-8"))
    stubbed = {
        statement.module: tuple(alias.name for alias in statement.names)
        for statement in stub.body
        if isinstance(statement, ast.ImportFrom)
    }
    assert stubbed == public
    assert sorted(package.__all__) == sorted(name for names in public.values() for name in names)
    for module, names in stubbed.items():
        for name in names:
            assert getattr(package, name) is getattr(importlib.import_module(str(module)), name)
            assert name in dir(package)
    assert not hasattr(package, "nothing_of_ours")


def test_to_import_the_package_is_not_to_import_what_is_in_it() -> None:
    program = """
import sys
import sessionmgr
before = {"trio", "sessionmgr.manager"} & sys.modules.keys()
sessionmgr.otp, sessionmgr.open_manager
sys.exit(f"imported: {before}" if before else 0)
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_and_its_methods_are_documented(name: str) -> None:
    thing = PUBLIC[name]
    assert inspect.getdoc(thing)
    undocumented = [
        member
        for member, value in vars(thing).items()
        if not member.startswith("_")
        and inspect.isfunction(value)
        and not inspect.getdoc(getattr(thing, member))
    ]
    assert undocumented == []


@pytest.mark.parametrize("name", MODULES)
def test_exceptions_are_defined_in_the_errors_module_of_their_package(name: str) -> None:
    errors = [
        each
        for each, thing in vars(importlib.import_module(name)).items()
        if inspect.isclass(thing)
        and issubclass(thing, sessionmgr.errors.SessionmgrError)
        and thing.__module__ == name
    ]
    assert errors == [] or name.endswith(".errors")


def class_names(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the name and place of each class below a folder, without classes in functions."""

    def below(node: ast.AST) -> Iterator[ast.ClassDef]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef):
                yield child
            if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                yield from below(child)

    for path in sorted(folder.rglob("*.py")):
        for each in below(ast.parse(path.read_text(encoding="utf-8"))):
            yield each.name, f"{path.relative_to(folder.parent)}:{each.lineno}"


def test_a_class_name_means_one_thing() -> None:
    places: dict[str, list[str]] = {}
    for package in PACKAGES:
        for name, place in class_names(home(package)):
            places.setdefault(name, []).append(place)
    assert {name: found for name, found in places.items() if len(found) > 1} == {}
    others = [*class_names(TESTS), *class_names(TESTS.parent / "benchmarks")]
    taken = {place: places[name] for name, place in others if name in places}
    assert taken == {}


# --- words -------------------------------------------------------------------------------------

VAGUE = re.compile(r"\b(nobody|somebody|whoever|whence|told)\b", re.IGNORECASE)
SOURCES = {
    path.relative_to(folder.parent).as_posix(): path
    for folder in [*map(home, PACKAGES), TESTS.parent / "benchmarks"]
    for path in sorted(folder.rglob("*.py"))
}


def texts(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each string literal and each comment of a module."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


@pytest.mark.parametrize("path", SOURCES)
def test_docstrings_comments_and_messages_name_the_one_who_acts(path: str) -> None:
    found = [
        f"{path}:{line}: …{text[max(match.start() - 30, 0) : match.end() + 30]}…"
        for line, text in texts(SOURCES[path].read_text(encoding="utf-8"))
        for match in VAGUE.finditer(text)
    ]
    assert found == []


@pytest.mark.parametrize("page", pages())
def test_a_page_names_the_one_who_acts(page: str) -> None:
    lines = enumerate(text_of(page).splitlines(), 1)
    assert [f"{page}:{number}: {line}" for number, line in lines if VAGUE.search(line)] == []


@pytest.mark.parametrize("source", ["pass  # nobody", '"""What is Told."""', 'f"{a} told"'])
def test_a_vague_word_is_found_in_comments_docstrings_and_messages(source: str) -> None:
    assert any(VAGUE.search(text) for _, text in texts(source))


# --- cycles ------------------------------------------------------------------------------------


def imports_of(name: str) -> set[str]:
    """Return our modules that a module imports: at the top, in functions, for type checkers."""
    spec = importlib.util.find_spec(name)
    assert spec is not None
    assert spec.origin is not None
    found: set[str] = set()
    for node in ast.walk(ast.parse(Path(spec.origin).read_text(encoding="utf-8"))):
        match node:
            case ast.Import(names=names):
                found |= {alias.name for alias in names}
            case ast.ImportFrom(module=str(module), names=names):
                inner = {f"{module}.{alias.name}" for alias in names}
                found |= inner.intersection(MODULES) or {module}
            case _:
                pass
    return found.intersection(MODULES) - {name}


def test_no_modules_import_each_other() -> None:
    # The contracts of lint-imports order packages; this orders the modules inside them, too. Where
    # it fails, CycleError names the modules of one cycle.
    TopologicalSorter({name: imports_of(name) for name in MODULES}).prepare()
