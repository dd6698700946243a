"""The seam of an adapter: its code cannot tell a mock connection from a real one."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import sessionmgr_adapters

assert sessionmgr_adapters.__file__ is not None
HOME = Path(sessionmgr_adapters.__file__).parent
FILES = sorted(HOME.rglob("*.py"))
SEAM = ("Connection", "Conversation")


def asked_about(source: str) -> Iterator[str]:
    """Yield each `isinstance` question about the class of a connection or a conversation."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(func=ast.Name(id="isinstance" | "issubclass"), args=[_, of]):
                classes = [
                    each for each in ast.walk(of) if isinstance(each, ast.Name | ast.Attribute)
                ]
            case ast.Call(func=ast.Name(id="hasattr" | "getattr"), args=[ast.expr() as what, *_]):
                classes = [what] if isinstance(what, ast.Name | ast.Attribute) else []
            case ast.MatchClass(cls=ast.Name() | ast.Attribute() as cls):
                classes = [cls]
            case ast.Compare(left=ast.Call(func=ast.Name(id="type")), comparators=[of]):
                classes = [each for each in [of] if isinstance(each, ast.Name | ast.Attribute)]
            case ast.Compare(left=left, comparators=others):
                asked = [left, *others]
                if any(
                    isinstance(each, ast.Attribute) and each.attr == "connect" for each in asked
                ):
                    yield ast.unparse(node)
                continue
            case _:
                continue
        names = [each.id if isinstance(each, ast.Name) else each.attr for each in classes]
        if any(name.lower().endswith(tuple(map(str.lower, SEAM))) for name in names):
            yield ast.unparse(node)


def test_there_are_adapters_to_look_at() -> None:
    assert len(FILES) > 20


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.relative_to(HOME).as_posix())
def test_an_adapter_does_not_ask_which_implementation_it_talks_to(file: Path) -> None:
    assert list(asked_about(file.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize(
    "question",
    [
        "isinstance(self._conversation, CodexConversation)",
        "isinstance(it, (Mock, sdk.CodexConnection))",
        "isinstance(it, Mock | CodexConversation)",
        "hasattr(self._conversation, 'clear_away')",
        "type(it) is CodexConversation",
        "cls.connect is not sdk.connect",
        "match it:\n    case CodexConversation():\n        pass",
    ],
)
def test_whoever_asks_is_found(question: str) -> None:
    assert list(asked_about(question))
