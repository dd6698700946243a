"""Errors of wrong types show the expected type and the value, unless it may be a secret."""

from typing import Annotated, Literal

import msgspec
import pytest

from sessionmgr.model import Json
from sessionmgr.model.field_errors import field_error


class SampleStruct(msgspec.Struct, kw_only=True):
    count: Annotated[int, msgspec.Meta(ge=1)] = 1
    ratio: Annotated[float, msgspec.Meta(gt=0)] | None = None
    mode: Literal["api", "subscription"] | None = None
    names: tuple[str, ...] = ()
    servers: dict[str, Json] = {}
    env: dict[str, str] = {}
    on: bool = True
    limit: float | str | None = None
    numbers: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.limit == "soon":
            raise ValueError("limit: expected a duration, got 'soon'")


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("count", "x", 'expected a whole number, 1 or more, got "x" (a string)'),
        ("count", True, "expected a whole number, 1 or more, got true"),
        ("ratio", 0, "expected a number, more than 0, got 0 (a number)"),
        ("mode", "free", 'expected one of: api, subscription, got "free" (a string)'),
        ("names", "x" * 99, f'expected a list of strings, got "{"x" * 58}… (a string)'),
        ("names", [1], "expected a list of strings, got [1] (a list)"),
        ("numbers", ["a"], 'expected a list, got ["a"] (a list)'),
        ("servers", "sk-secret", "expected an object, got a string"),
        ("env", {"A": 5}, "expected an object of strings, got a number for A"),
        ("env", None, "expected an object of strings, got null"),
        ("on", None, "expected true or false, got null"),
        ("limit", {}, "expected a number or a string, got {} (an object)"),
    ],
)
def test_a_wrong_value_is_shown(field: str, value: object, said: str) -> None:
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.convert({field: value}, SampleStruct)
    assert field_error(caught.value, {field: value}, SampleStruct) == (field, said)


def test_what_the_struct_itself_says_is_kept() -> None:
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.convert({"limit": "soon"}, SampleStruct)
    said = ("", "limit: expected a duration, got 'soon'")
    assert field_error(caught.value, {"limit": "soon"}, SampleStruct) == said
