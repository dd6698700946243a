"""Resolution of abbreviated ids."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sessionmgr.store.errors import AmbiguousId, UnknownId

if TYPE_CHECKING:
    from collections.abc import Sequence

CANDIDATES: Final = 10
"""Maximum number of ids that an ambiguity error names."""


def single_match(prefix: str, kind: str | None, found: Sequence[str]) -> str:
    """Return the only id that was found, or the one that equals the prefix.

    Raises:
        AmbiguousId: Several begin with the prefix, and none of them is the prefix itself.
        UnknownId: None begins with it.
    """
    if prefix in found:
        return prefix
    if not found:
        raise UnknownId(kind or "session, run or snapshot", prefix)
    if len(found) > 1:
        shown = sorted(found)[:CANDIDATES]
        raise AmbiguousId(prefix, [*shown, *(["…"] if len(found) > CANDIDATES else [])])
    return found[0]
