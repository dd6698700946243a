"""Where the package's public names are: each is imported when somebody asks for it.

So `import sessionmgr`, and with it the command line, does not wait for what it may never need.
What type checkers are told stands in `__init__.pyi`.
"""

import sys
from importlib import import_module
from typing import Final

PUBLIC: Final = {
    "sessionmgr.batch": ("Job", "run_batch"),
    "sessionmgr.errors": (
        "CapabilityMissing",
        "ManagerDown",
        "NotInTrio",
        "NotPausable",
        "NotResumable",
        "PermissionRefused",
        "SessionmgrError",
        "StartRefused",
    ),
    "sessionmgr.manager": (
        "Clocks",
        "FollowUp",
        "Manager",
        "RunHandle",
        "SessionHandle",
        "open_manager",
    ),
    "sessionmgr.model": ("PermissionMode", "RunResult", "RunStatus", "Snapshot"),
    "sessionmgr.provider": (
        "Allow",
        "ApprovalRequest",
        "Budget",
        "Decision",
        "Deny",
        "ProviderAdapter",
        "RunContext",
    ),
}
PACKAGES: Final = frozenset(
    {
        "batch",
        "errors",
        "manager",
        "model",
        "otp",
        "process",
        "provider",
        "store",
        "testing",
        "wire",
    }
)
_HOMES: Final = {name: home for home, names in PUBLIC.items() for name in names}
_PACKAGE: Final = "sessionmgr"


def __getattr__(name: str) -> object:
    """Import what is called so, and keep it where it was looked for.

    Raises:
        AttributeError: There is nothing of that name.
    """
    if name in PACKAGES:
        return import_module(f"{_PACKAGE}.{name}")
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {_PACKAGE!r} has no attribute {name!r}")
    found: object = getattr(import_module(home), name)
    setattr(sys.modules[_PACKAGE], name, found)
    return found


def __dir__() -> list[str]:
    """Return what there is, imported or not."""
    return sorted({*vars(sys.modules[_PACKAGE]), *_HOMES, *PACKAGES})
