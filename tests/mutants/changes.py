"""Small changes of a source: a condition negated, a comparison moved by one, a statement dropped.

Each change replaces one stretch of the text, found on the syntax tree. Stretches that no test can
observe are left out: docstrings, annotations, `__slots__`, assertions, code for type checkers only,
bare checkpoints, and numbers outside of functions, which are choices and not behaviour.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

EDGES: Final[dict[type[ast.cmpop], str]] = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.In: "not in",
    ast.NotIn: "in",
    ast.Is: "is not",
    ast.IsNot: "is",
}
SUMS: Final[dict[type[ast.operator], str]] = {ast.Add: "-", ast.Sub: "+"}


class SourceChange(NamedTuple):
    """One stretch of a source, and the text that replaces it."""

    line: int
    start: int
    end: int
    """End of the stretch, in bytes of the source."""
    new: str
    within: str
    """The qualified name of the enclosing function; "" outside of functions."""

    def apply_to(self, source: str) -> str:
        """Return the source with the change."""
        data = source.encode()
        return (data[: self.start] + self.new.encode() + data[self.end :]).decode()

    def describe_in(self, source: str) -> str:
        """Describe the change in one line."""
        old = source.encode()[self.start : self.end].decode()
        return f"{' '.join(old.split())}  →  {self.new}"


def changes(source: str) -> list[SourceChange]:
    """Return all changes that leave the source valid Python, in the order of the source."""
    return sorted(set(_Finder(source).found()))


class _Finder:
    def __init__(self, source: str) -> None:
        self._tree = ast.parse(source)
        lengths = [len(line) for line in source.encode().splitlines(keepends=True)]
        self._starts = [sum(lengths[:number]) for number in range(len(lengths) + 1)]
        self._source = source.encode()

    def found(self) -> Iterator[SourceChange]:
        yield from self._in(self._tree, "")

    def _in(self, node: ast.AST, within: str) -> Iterator[SourceChange]:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                within = f"{within}.{node.name}".lstrip(".")
            case (
                ast.If(test=ast.Name(id="TYPE_CHECKING")) | ast.Assert() | ast.AnnAssign(value=None)
            ):
                return
            case ast.Assign(targets=[ast.Name(id=name)]) if name.startswith("__"):
                return
            case ast.Call(func=ast.Name(id="TypeVar")):
                return
            case _:
                pass
        yield from self._here(node, within)
        left = [getattr(node, name, None) for name in ("annotation", "returns")]
        for name in ("decorator_list", "type_params", "bases"):
            left += getattr(node, name, [])
        if isinstance(node, ast.ClassDef):
            left += node.keywords  # `frozen=True`, for example
        for child in ast.iter_child_nodes(node):
            if child not in left:
                yield from self._in(child, within)

    def _here(self, node: ast.AST, within: str) -> Iterator[SourceChange]:
        match node:
            case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
                yield self._negated(test, within)
                if isinstance(node, ast.If) and isinstance(left := node.body[-1], ast.Return):
                    yield self._instead(left, "pass", within)
            case ast.comprehension(ifs=[test, *_]):
                yield self._negated(test, within)
            case ast.match_case(guard=ast.expr() as test):
                yield self._negated(test, within)
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in EDGES:
                yield self._between(left, right, EDGES[type(op)], within)
            case ast.BoolOp(op=op, values=[left, right, *_]):
                other = "or" if isinstance(op, ast.And) else "and"
                yield self._between(left, right, other, within)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in SUMS:
                yield self._between(left, right, SUMS[type(op)], within)
            case ast.Constant(value=bool(value)):
                yield self._instead(node, str(not value), within)
            case ast.Constant(value=int(value)) if within:
                yield self._instead(node, str(value + 1), within)
            case ast.Expr(value=ast.Await(value=ast.Call(func=ast.Attribute(attr="checkpoint")))):
                pass
            case ast.Expr(value=ast.Call() | ast.Await()) | ast.AugAssign() | ast.Raise():
                yield self._instead(node, "pass", within)
            case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]) | ast.Delete():
                yield self._instead(node, "pass", within)
            case ast.Continue() | ast.Break():
                yield self._instead(node, "pass", within)
            case _:
                pass

    def _negated(self, test: ast.expr, within: str) -> SourceChange:
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            return self._instead(test, f"({self._text(test.operand)})", within)
        return self._instead(test, f"(not ({self._text(test)}))", within)

    def _between(self, left: ast.expr, right: ast.expr, new: str, within: str) -> SourceChange:
        """Replace the operator between two operands; keep parentheses and comments there."""
        gap = self._source[self._end(left) : self._start(right)].decode()
        bare = re.sub(r"#.*", lambda comment: " " * len(comment[0]), gap)
        word = bare.strip(" \n()")
        start = self._end(left) + len(gap[: bare.index(word)].encode())
        return SourceChange(left.lineno, start, start + len(word.encode()), new, within)

    def _instead(self, node: ast.expr | ast.stmt, new: str, within: str) -> SourceChange:
        return SourceChange(node.lineno, self._start(node), self._end(node), new, within)

    def _text(self, node: ast.expr) -> str:
        return self._source[self._start(node) : self._end(node)].decode()

    def _start(self, node: ast.expr | ast.stmt) -> int:
        return self._starts[node.lineno - 1] + node.col_offset

    def _end(self, node: ast.expr | ast.stmt) -> int:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._starts[node.end_lineno - 1] + node.end_col_offset
