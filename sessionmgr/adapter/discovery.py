"""Discovery of adapters by entry point, so that any package can provide one.

A provider's name may have a variant after a colon, as `acp:goose` or `acp:goose@1.50.0`. The
adapter before the colon makes the adapter class of the variant; it alone knows what its variants
and the registry file of agents are.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar, cast

from sessionmgr.adapter.adapter import ProviderAdapter
from sessionmgr.adapter.errors import AdapterBroken, ProviderUnknown, StartRefused, VariantUnknown

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

A = TypeVar("A", bound=ProviderAdapter)

GROUP: Final = "sessionmgr.adapters"
_VARIANT: Final = re.compile(r"[a-z][a-z0-9-]*(@[0-9A-Za-z][0-9A-Za-z.+-]*)?")


def installed_adapters() -> list[str]:
    """Return the names of all adapters that installed packages provide."""
    from importlib.metadata import entry_points  # imported late: it is slow, and rarely needed

    return sorted({each.name for each in entry_points(group=GROUP)})


def find_adapter(
    name: str,
    given: Mapping[str, type[ProviderAdapter]] | None = None,
    agents: str | Path | None = None,
) -> type[ProviderAdapter]:
    """Return the adapter called `name`: one that was `given`, else one that is installed.

    Args:
        name: The name of a provider, or that of a variant, such as `acp:goose`.
        given: Adapter classes by name, which precede the installed ones.
        agents: The registry file in which adapters look up their variants.

    Raises:
        ProviderUnknown: No adapter has this name; `VariantUnknown` if it lacks the variant only.
        AgentsFileInvalid: The variant needs the file `agents`, which is missing or invalid.
        AdapterBroken: The adapter is installed, but cannot be loaded.
    """
    if given and name in given:
        return given[name]
    base, colon, variant = name.partition(":")
    adapter = (given or {}).get(base) or _load_adapter(base)
    if adapter is None:
        known = sorted({*(given or ()), *installed_adapters()})
        from difflib import get_close_matches  # imported late: needed for the suggestion alone

        nearest = [f"{each}{colon}{variant}" for each in get_close_matches(base, known, n=1)]
        raise ProviderUnknown(name, known, nearest)
    if not colon:
        return adapter
    if _VARIANT.fullmatch(variant) is None:
        why = "expected ID or ID@VERSION after the colon, ID of a-z, 0-9 and -"
        ids = _variants(adapter, _path(agents))
        if not ids:
            why = f"{base} has no variants; use {base!r}"
        raise VariantUnknown(base, variant, why, known=ids)
    return _find_variant(adapter, variant, _path(agents))


def provider_variants(name: str, agents: str | Path | None = None) -> list[str]:
    """Return the full names of an adapter's variants, such as `acp:goose`.

    Args:
        name: The name of the adapter.
        agents: The registry file, whose agents are variants, too.

    Raises:
        ProviderUnknown: No adapter has this name.
        AgentsFileInvalid: The file `agents` is missing or invalid.
        AdapterBroken: The adapter is installed, but cannot be loaded.
    """
    return [f"{name}:{each}" for each in _variants(find_adapter(name), _path(agents))]


def derive_adapter(adapter: type[A], variant: str, **attributes: object) -> type[A]:
    """Return a subclass of an adapter that serves one of its variants.

    Args:
        adapter: The adapter.
        variant: What follows the colon in the provider's name.
        attributes: The attributes of the class in which the variant differs.
    """
    name = f"{adapter.name}:{variant}"
    own = {"__doc__": f"Adapter of the provider {name}.", "__module__": adapter.__module__}
    return cast("type[A]", type(adapter.__name__, (adapter,), {**own, "name": name, **attributes}))


def _load_adapter(name: str) -> type[ProviderAdapter] | None:
    """Load the installed adapter called `name`; None if there is none.

    Raises:
        AdapterBroken: It cannot be loaded.
    """
    from importlib.metadata import entry_points

    for each in entry_points(group=GROUP, name=name):
        try:
            found: object = each.load()
        except Exception as error:  # a package may raise anything at its import
            raise AdapterBroken(name, each.value, f"{type(error).__name__}: {error}") from error
        if not (isinstance(found, type) and issubclass(found, ProviderAdapter)):
            raise AdapterBroken(name, each.value, "it is not a ProviderAdapter")
        return found
    return None


def _find_variant(
    adapter: type[ProviderAdapter], variant: str, agents: Path | None
) -> type[ProviderAdapter]:
    """Return the class of a variant: the same one as long as the file does not change."""
    key, stamp = (adapter, variant, agents), _stamp(agents)
    known = _classes.get(key)
    if known is None or known[0] != stamp:
        known = _classes[key] = (stamp, _make_variant(adapter, variant, agents))
    return known[1]


_classes: Final[
    dict[
        tuple[type[ProviderAdapter], str, Path | None],
        tuple[tuple[int, int], type[ProviderAdapter]],
    ]
] = {}
"""The classes of variants, each with the stamp of its file."""


def _variants(adapter: type[ProviderAdapter], agents: Path | None) -> Sequence[str]:
    with _adapter_is_to_blame(adapter, adapter.name):
        return adapter.variants(agents)


def _make_variant(
    adapter: type[ProviderAdapter], variant: str, agents: Path | None
) -> type[ProviderAdapter]:
    name = f"{adapter.name}:{variant}"
    with _adapter_is_to_blame(adapter, name):
        found = adapter.variant(variant, agents)
        if found.name != name:
            raise TypeError(f"the class of its variant is named {found.name!r}")
    return found


@contextmanager
def _adapter_is_to_blame(adapter: type[ProviderAdapter], name: str) -> Generator[None]:
    """Translate exceptions of an adapter's hooks, except those that refuse a start.

    Raises:
        AdapterBroken: The hook has raised another exception.
    """
    try:
        yield
    except StartRefused:
        raise
    except Exception as error:  # an adapter may raise anything
        where = f"{adapter.__module__}:{adapter.__name__}"
        raise AdapterBroken(name, where, f"{type(error).__name__}: {error}") from error


def _path(agents: str | Path | None) -> Path | None:
    return None if agents is None else Path(agents).absolute()


def _stamp(agents: Path | None) -> tuple[int, int]:
    """Return what changes when the file does."""
    if agents is None:
        return 0, 0
    try:
        status = agents.stat()
    except (OSError, ValueError):  # the adapter reports that, if it needs the file
        return 0, 0
    return status.st_mtime_ns, status.st_size
