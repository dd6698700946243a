"""Lazy exports: a package imports the module of a public name on its first use.

So `import sessionmgr`, and with it the command line, does not load modules that it may not need.
Type checkers read the same names from the packages' `__init__.pyi`.
"""

import sys
from collections.abc import Callable, Collection, Mapping
from importlib import import_module
from typing import Final


def lazy_exports(
    package: str, public: Mapping[str, Collection[str]], inner: Collection[str] = ()
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return a package's `__getattr__` and `__dir__`, which import names on first use.

    `public` maps names to their modules; `inner` are subpackages that are public names, too.
    """
    homes = {name: home for home, names in public.items() for name in names}

    def found(name: str) -> object:
        if name in inner:
            return import_module(f"{package}.{name}")
        if name == "__all__":
            return sorted(homes)
        home = homes.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value: object = getattr(import_module(home), name)
        setattr(sys.modules[package], name, value)
        return value

    def all_there_are() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes, *inner})

    return found, all_there_are


PUBLIC: Final = {
    "sessionmgr.batch": ("Job", "run_batch"),
    "sessionmgr.errors": ("SessionmgrError",),
    "sessionmgr.manager": (
        "Clocks",
        "FollowUp",
        "Manager",
        "ManagerDown",
        "NotInTrio",
        "NotPausable",
        "NotResumable",
        "RunHandle",
        "SessionHandle",
        "ask",
        "open_manager",
    ),
    "sessionmgr.model": ("PermissionMode", "RunResult", "RunStatus", "Snapshot"),
    "sessionmgr.portal": ("Portal", "PortalClosed", "PortalRun", "open_portal"),
    "sessionmgr.adapter": (
        "Allow",
        "ApprovalRequest",
        "Budget",
        "CapabilityMissing",
        "Decision",
        "Deny",
        "PermissionRefused",
        "ProviderAdapter",
        "RunContext",
        "StartRefused",
    ),
}
PACKAGES: Final = frozenset(
    {
        "adapter",
        "batch",
        "errors",
        "manager",
        "model",
        "otp",
        "portal",
        "process",
        "store",
        "testing",
        "wire",
    }
)
__getattr__, __dir__ = lazy_exports("sessionmgr", PUBLIC, PACKAGES)
