"""Reference documentation of public names: parameters are described, and examples run."""

import ast
import importlib
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import trio

import sessionmgr
from sessionmgr.testing.scripted_provider import scripted

PACKAGES = "sessionmgr sessionmgr.batch sessionmgr.otp sessionmgr.testing".split()
OWN = ("sessionmgr.manager", "sessionmgr.adapter", *(f"{package}." for package in PACKAGES[1:]))
EXAMPLE = re.compile(r"```python\n(.*?)```", re.DOTALL)
AGENTS = {name: scripted(name) for name in ("claude", "codex")}


def public() -> dict[str, Any]:
    return {
        f"{package}.{name}": getattr(importlib.import_module(package), name)
        for package in PACKAGES
        for name in importlib.import_module(package).__all__
    }


def functions(name: str, thing: Any) -> Iterator[tuple[str, Callable[..., object]]]:
    """Yield a public function, or the public methods of a public class."""
    if inspect.isfunction(thing):
        yield name, thing
    if inspect.isclass(thing) and not issubclass(thing, BaseException):
        for method in dir(thing):
            found: Any = inspect.getattr_static(thing, method)
            found = getattr(found, "__func__", found)
            if method.startswith("_") or not inspect.isfunction(found):
                continue
            if found.__module__.startswith(OWN):
                yield f"{name}.{method}", found


FUNCTIONS = {
    name: function for each, thing in public().items() for name, function in functions(each, thing)
}


def described(function: Callable[..., object]) -> set[str]:
    """Return the parameters that the section `Args` of a docstring describes."""
    doc = inspect.getdoc(function) or ""
    _, _, after = doc.partition("\nArgs:\n")
    lines = after.split("\n\n")[0]
    return set(re.findall(r"^    (\w+): ", lines, re.MULTILINE))


@pytest.mark.parametrize("name", public())
def test_a_public_name_is_documented(name: str) -> None:
    thing = public()[name]
    if inspect.isclass(thing) or inspect.isfunction(thing):
        assert inspect.getdoc(thing)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_parameter_of_a_public_function_is_described(name: str) -> None:
    function = FUNCTIONS[name]
    parameters = set(inspect.signature(function).parameters) - {"self", "cls"}
    assert parameters == described(function)


EXAMPLES = {
    name: code
    for name, function in FUNCTIONS.items()
    for code in EXAMPLE.findall(inspect.getdoc(function) or "")
}


def test_the_entry_points_have_examples() -> None:
    for name in ("ask", "open_manager", "run_batch", "Manager.ask", "SessionHandle.start"):
        assert f"sessionmgr.{name}" in EXAMPLES


@pytest.mark.parametrize("name", EXAMPLES)
async def test_an_example_runs(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "web").mkdir()
    names: dict[str, Any] = {each: getattr(sessionmgr, each) for each in sessionmgr.__all__}
    names["sessionmgr"] = sessionmgr
    code = textwrap.dedent(EXAMPLES[name])
    (written,) = ast.parse(code).body
    assert isinstance(written, ast.AsyncFunctionDef)
    exec(code, names)
    example = names[written.name]
    with trio.fail_after(60):
        async with sessionmgr.open_manager(adapters=AGENTS) as manager:
            session = await manager.open_session("claude")
            given = {"manager": manager, "run": await session.submit("hello")}
            wanted = inspect.signature(example).parameters
            await example(**{each: given[each] for each in wanted})
    if not wanted or "run" in wanted:
        assert capsys.readouterr().out
