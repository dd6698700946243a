"""One process of Claude Code: what it reports about itself, and whether a run may use it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
import trio

from sessionmgr.adapter.kit import outdated_failure
from sessionmgr.model import Failure, FailureKind
from sessionmgr_adapters.claude.state import ProcessUsage

if TYPE_CHECKING:
    from sessionmgr.model import Json
    from sessionmgr_adapters.claude.launch import ClaudeSpec
    from sessionmgr_adapters.claude.sdk import ClaudeConnection
    from sessionmgr_adapters.claude.state import Credential

OLDEST_VERSION: Final = (2, 1, 197)
# How far a mode goes unasked. What is not known goes as far as any.
_REACH: Final = {"plan": 0, "dontAsk": 0, "default": 1, "manual": 1, "acceptEdits": 2}
_ALL: Final = 9


class ProcessInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What a process says of itself when it is initialized."""

    version: str | None = None
    credential: Credential = "unknown"
    is_paid_by_use: bool = False
    """Whether usage is paid for, not covered by a subscription."""
    mode: str | None = None


class ClaudeProcess:
    """One process from its start to its end; it serves the runs of its session in turn."""

    def __init__(self, spec: ClaudeSpec, connection: ClaudeConnection) -> None:
        self.spec: Final = spec
        self.connection: Final = connection
        self.spending: Final = ProcessUsage(resumed=spec.resumes is not None)
        self.info: ProcessInfo | None = None
        self.model = spec.model
        self.effort = spec.effort
        self.mode = spec.mode
        self.denies_in_plan = True
        """Whether a plan denies by a hook what Claude Code might not ask about."""
        self.runs = 0
        self.requests = 0
        self.gone: Final = trio.Event()
        """Set when nothing is left of the process."""

    @property
    def version(self) -> str | None:
        """Its version, once it is known."""
        return self.info.version if self.info else None

    async def wait_closed(self) -> None:
        """Wait until the process is of no more use."""
        await self.connection.wait_closed()

    def fits(self, spec: ClaudeSpec) -> bool:
        """Whether the process can serve a run that needs `spec`."""
        unset = spec.effort is None and self.effort is not None
        return self.spec.serves(spec) and not unset


def process_info_of(reply: Json) -> ProcessInfo:
    """Read the reply to `initialize`; older versions say less."""
    if not isinstance(reply, dict):
        return ProcessInfo()
    account = reply.get("account")
    known = account if isinstance(account, dict) else {}
    key, token, cloud = (known.get(name) for name in ("apiKeySource", "tokenSource", "apiProvider"))
    has_key = key not in (None, "none")
    has_token = token not in (None, "none")
    is_ours = token == "ANTHROPIC_AUTH_TOKEN"  # of a gateway
    is_elsewhere = cloud not in (None, "firstParty")
    credential: Credential = "unknown"
    if has_key:
        credential = "api_key"
    elif has_token and not is_ours and not is_elsewhere:
        credential = "subscription"
    version, mode = reply.get("claude_code_version"), reply.get("current_permission_mode")
    return ProcessInfo(
        version=version if isinstance(version, str) else None,
        credential=credential,
        is_paid_by_use=has_key or is_ours or is_elsewhere,
        mode=mode if isinstance(mode, str) else None,
    )


def version_failure(version: str) -> Failure | None:
    """Return the failure of a version that is too old."""
    return outdated_failure("Claude Code", version, OLDEST_VERSION)


def billing_failure(hello: ProcessInfo, billing: str | None) -> Failure | None:
    """Return the failure of a credential that is billed otherwise than declared."""
    is_as_declared = {
        None: True,
        "api": hello.is_paid_by_use,
        "subscription": hello.credential == "subscription",
    }
    if is_as_declared[billing]:
        return None
    return Failure(
        kind=FailureKind.BILLING,
        message=f"billing is declared as {billing!r}, and the credential found is "
        f"{hello.credential!r}: nothing was sent",
        phase="start",
    )


def mode_failure(asked: str, found: str | None) -> Failure | None:
    """Return the failure of a mode that allows more than was asked for."""
    if found is None or _REACH.get(found, _ALL) <= _REACH.get(asked, _ALL):
        return None
    return Failure(
        kind=FailureKind.PERMISSION_REFUSED,
        message=f"the permission mode {asked!r} was asked for, and {found!r} is in force",
        phase="start",
    )
