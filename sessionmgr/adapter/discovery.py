"""Discovery of adapters by entry point, so that any package can provide one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sessionmgr.adapter.adapter import ProviderAdapter
from sessionmgr.adapter.errors import AdapterBroken, ProviderUnknown

if TYPE_CHECKING:
    from collections.abc import Mapping

GROUP: Final = "sessionmgr.adapters"


def installed_adapters() -> list[str]:
    """Return the names of all adapters that installed packages provide."""
    from importlib.metadata import entry_points  # imported late: it is slow, and rarely needed

    return sorted({each.name for each in entry_points(group=GROUP)})


def find_adapter(
    name: str, given: Mapping[str, type[ProviderAdapter]] | None = None
) -> type[ProviderAdapter]:
    """Return the adapter called `name`: one that was `given`, else one that is installed.

    Raises:
        ProviderUnknown: No adapter has this name.
        AdapterBroken: The adapter is installed, but cannot be loaded.
    """
    if given and name in given:
        return given[name]
    from importlib.metadata import entry_points

    for each in entry_points(group=GROUP, name=name):
        try:
            found: object = each.load()
        except Exception as error:  # a package may raise anything at its import
            raise AdapterBroken(name, each.value, f"{type(error).__name__}: {error}") from error
        if not (isinstance(found, type) and issubclass(found, ProviderAdapter)):
            raise AdapterBroken(name, each.value, "it is not a ProviderAdapter")
        return found
    known = sorted({*(given or ()), *installed_adapters()})
    from difflib import get_close_matches  # imported late: needed for the suggestion alone

    raise ProviderUnknown(name, known, get_close_matches(name, known, n=1))
