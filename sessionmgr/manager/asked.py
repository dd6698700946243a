"""What a run was asked for, as far as it is kept: so that one that is resumed is the same again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

import msgspec

from sessionmgr.manager.clocks import Clocks
from sessionmgr.model import Json
from sessionmgr.model.value import known_part
from sessionmgr.provider.context import Budget

if TYPE_CHECKING:
    from sessionmgr.manager.plan import RunWish
    from sessionmgr.model import Session


class Asked(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The fields of a `RunWish` that outlast the run.

    Its prompt and images were for that run alone, and its variables may be secret.
    """

    system_prompt: str | None = None
    model: str | None = None
    options: dict[str, Json] = msgspec.field(default_factory=dict[str, Json])
    require: tuple[str, ...] = ()
    prefer: tuple[str, ...] = ()
    require_native: tuple[str, ...] = ()
    schema: Json = None
    max_turns: int | None = None
    effort: str | None = None
    tools_allowed: tuple[str, ...] | None = None
    tools_denied: tuple[str, ...] = ()
    directories: tuple[str, ...] = ()
    budget: Budget = Budget()
    clocks: Clocks = Clocks()


_KEPT: Final = Asked.__struct_fields__


def asked_of(wish: RunWish) -> dict[str, Json]:
    """Return what is kept of a wish, as JSON."""
    said = msgspec.to_builtins({name: getattr(wish, name) for name in _KEPT})
    return cast("dict[str, Json]", msgspec.to_builtins(msgspec.convert(said, Asked)))


def asked_before(kept: dict[str, Json]) -> Asked:
    """Read what was kept; what we do not know of it is left out."""
    return msgspec.convert(known_part(kept, Asked), Asked)


def clocks_of(session: Session) -> Clocks:
    """Return the clocks that a session was opened with."""
    return msgspec.convert(known_part(session.clocks, Clocks), Clocks)


def budget_of(session: Session) -> Budget:
    """Return the budget that a session was opened with."""
    return msgspec.convert(known_part(session.budget, Budget), Budget)


def as_json(value: Clocks | Budget) -> dict[str, Json]:
    """Return what clocks or a budget say, without what they leave to others."""
    return cast("dict[str, Json]", msgspec.to_builtins(value))
