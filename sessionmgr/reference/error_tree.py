"""The section about exceptions: one tree of all subclasses of `SessionmgrError`."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from typing import TYPE_CHECKING, Final

import sessionmgr
from sessionmgr.errors import SessionmgrError
from sessionmgr.field_docs import summary
from sessionmgr.reference.markdown import section

if TYPE_CHECKING:
    from collections.abc import Iterator

# Parts of the test kit need packages that an installation may lack.
LEFT_OUT: Final = ("sessionmgr.testing", "sessionmgr.reference")


def error_tree() -> str:
    """Return the section."""
    modules = set(_modules())
    for each in sorted(modules):
        import_module(each)
    lines = [
        f"SessionmgrError  {summary(SessionmgrError)}",
        *_branches(SessionmgrError, "", modules),
    ]
    return section(
        "## Errors",
        "Every exception of the library, with its other base classes in brackets.",
        "```text\n" + "\n".join(lines) + "\n```",
    )


def _modules() -> Iterator[str]:
    for each in pkgutil.walk_packages(sessionmgr.__path__, "sessionmgr.", onerror=lambda _: None):
        if not each.name.startswith(LEFT_OUT) and not each.name.endswith("__main__"):
            yield each.name


def _branches(of: type[BaseException], indent: str, modules: set[str]) -> Iterator[str]:
    public = [
        each
        for each in of.__subclasses__()
        if each.__module__ in modules and not each.__name__.startswith("_")
    ]
    inner = sorted(public, key=lambda each: each.__name__)
    for each in inner:
        last = each is inner[-1]
        also = [base.__name__ for base in each.__bases__ if not issubclass(base, SessionmgrError)]
        kind = f" ({', '.join(also)})" if also else ""
        yield f"{indent}{'└── ' if last else '├── '}{each.__name__}{kind}  {summary(each)}"
        yield from _branches(each, indent + ("    " if last else "│   "), modules)
