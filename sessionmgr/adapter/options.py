"""A provider's own options: a struct, checked by name before anything starts."""

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
    """What the user may set for one provider alone; an adapter's own are a subclass of this."""

    @classmethod
    def of(cls, options: Options) -> Self:
        """Return a run's options as those of the adapter's own class."""
        assert isinstance(options, cls)
        return options

    def variables(self) -> Mapping[str, str]:
        """Return what they add to the environment; what the run itself is given wins."""
        return {}


def resolve_options(
    provider: str,
    of: type[O],
    given: Mapping[str, Json] | msgspec.Struct,
    normalised: Mapping[str, Json],
) -> O:
    """Make the options of a run. What is `normalised` wins where both say something.

    Raises:
        OptionInvalid: A field is unknown, is missing or has a value of another type.
    """
    if isinstance(given, msgspec.Struct):
        if not isinstance(given, of):
            raise OptionInvalid(provider, f"they are {type(given).__name__}, not {of.__name__}")
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
    from difflib import get_close_matches  # for those who made a mistake

    nearest = get_close_matches(name, fields, n=1)
    if nearest:
        return f"there is no {name!r}; did you mean {nearest[0]!r}?"
    known = ", ".join(fields) or "none at all"
    return f"there is no {name!r}; there are: {known}"
