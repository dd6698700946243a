"""Python's `help` shows each module that authors of adapters and of tests read."""

import pkgutil
import pydoc
from importlib import import_module

import pytest

import sessionmgr

PUBLIC = ("adapter", "batch", "model", "process", "store", "testing", "wire")


def modules(package: str) -> list[str]:
    found = import_module(f"sessionmgr.{package}")
    inner = pkgutil.walk_packages(found.__path__, f"sessionmgr.{package}.")
    return [each.name for each in inner if not each.name.endswith("__main__")]


def test_there_are_packages_to_look_at() -> None:
    assert {each.name for each in pkgutil.iter_modules(sessionmgr.__path__)} > {*PUBLIC}


@pytest.mark.parametrize("package", PUBLIC)
def test_help_shows_each_public_module(package: str) -> None:
    for name in modules(package):
        assert name in pydoc.plain(pydoc.render_doc(import_module(name)))
