"""Options of one provider: a struct whose names and types are checked before anything starts."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import msgspec

from sessionmgr.adapter.errors import OptionInvalid
from sessionmgr.model import field_error

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from sessionmgr.model import Json

O = TypeVar("O", bound=msgspec.Struct)  # noqa: E741


class Options(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base class of the options of one provider; each adapter defines a subclass."""

    @classmethod
    def of(cls, options: Options) -> Self:
        """Return a run's options as an instance of this class."""
        assert isinstance(options, cls)
        return options

    def variables(self) -> Mapping[str, str]:
        """Return the environment variables that the options add; those of the run override them."""
        return {}


def resolve_options(
    provider: str,
    of: type[O],
    given: Mapping[str, Json] | msgspec.Struct,
    normalised: Mapping[str, Json],
) -> O:
    """Return the options of a run. The `normalised` values override the given ones.

    Raises:
        OptionInvalid: A field is unknown, is missing or has a value of another type.
    """
    if isinstance(given, msgspec.Struct):
        if not isinstance(given, of):
            raise OptionInvalid(provider, f"expected {of.__name__}, got {type(given).__name__}")
        given = msgspec.structs.asdict(given)
    fields = of.__struct_fields__
    for name in given:
        if name not in fields:
            raise OptionInvalid(provider, _unknown(name, fields))
    ours = {
        name: value for name, value in normalised.items() if name in fields and value is not None
    }
    try:
        return msgspec.convert({**given, **ours}, of)
    except msgspec.ValidationError as error:
        name, why = field_error(error, {**given, **ours}, of)
        raise OptionInvalid(provider, f"{name}: {why}" if name else why) from None


def _unknown(name: str, fields: tuple[str, ...]) -> str:
    from difflib import get_close_matches  # imported late: needed for the suggestion alone

    nearest = get_close_matches(name, fields, n=1)
    if nearest:
        return f"unknown option {name!r}; did you mean {nearest[0]!r}?"
    known = ", ".join(fields) or "none"
    return f"unknown option {name!r}; known: {known}"
