"""Process of Claude Code: its own report about itself, and whether it may serve a run."""

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
# Rank of a mode by what it allows without a request. An unknown mode ranks highest.
_REACH: Final = {"plan": 0, "dontAsk": 0, "default": 1, "manual": 1, "acceptEdits": 2}
_ALL: Final = 9


class ProcessInfo(msgspec.Struct, frozen=True, kw_only=True):
    """Report of a process about itself, from the reply to `initialize`."""

    version: str | None = None
    credential: Credential = "unknown"
    is_paid_by_use: bool = False
    """Whether usage is billed, and not covered by a subscription."""
    mode: str | None = None


class ClaudeProcess:
    """One process from its start to its end; it serves one run of its session at a time."""

    def __init__(self, spec: ClaudeSpec, connection: ClaudeConnection) -> None:
        self.spec: Final = spec
        self.connection: Final = connection
        self.usage: Final = ProcessUsage(resumed=spec.resumes is not None)
        self.info: ProcessInfo | None = None
        self.model = spec.model
        self.effort = spec.effort
        self.mode = spec.mode
        self.denies_in_plan = True
        """Whether a hook denies calls in plan mode that Claude Code might not ask about."""
        self.runs = 0
        self.requests = 0
        self.gone: Final = trio.Event()
        """Set when the process tree is empty."""

    @property
    def version(self) -> str | None:
        """The version, once it is known."""
        return self.info.version if self.info else None

    async def wait_closed(self) -> None:
        """Wait until the process is unusable."""
        await self.connection.wait_closed()

    def fits(self, spec: ClaudeSpec) -> bool:
        """Whether the process can serve a run that needs `spec`."""
        unset = spec.effort is None and self.effort is not None
        return self.spec.serves(spec) and not unset


def process_info_of(reply: Json) -> ProcessInfo:
    """Return the report in the reply to `initialize`; older versions omit fields."""
    if not isinstance(reply, dict):
        return ProcessInfo()
    account = reply.get("account")
    known = account if isinstance(account, dict) else {}
    key, token, cloud = (known.get(name) for name in ("apiKeySource", "tokenSource", "apiProvider"))
    has_key = key not in (None, "none")
    has_token = token not in (None, "none")
    is_ours = token == "ANTHROPIC_AUTH_TOKEN"  # the token of a gateway
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
    """Return the failure for a version that is too old."""
    return outdated_failure("Claude Code", version, OLDEST_VERSION)


def billing_failure(info: ProcessInfo, billing: str | None) -> Failure | None:
    """Return the failure for a credential whose billing differs from the declared one."""
    is_as_declared = {
        None: True,
        "api": info.is_paid_by_use,
        "subscription": info.credential == "subscription",
    }
    if is_as_declared[billing]:
        return None
    return Failure(
        kind=FailureKind.BILLING,
        message=f"billing is declared as {billing!r}, but the credential found is "
        f"{info.credential!r}; nothing was sent",
        phase="start",
    )


def mode_failure(requested: str, found: str | None) -> Failure | None:
    """Return the failure for a mode that allows more than the requested one."""
    if found is None or _REACH.get(found, _ALL) <= _REACH.get(requested, _ALL):
        return None
    return Failure(
        kind=FailureKind.PERMISSION_REFUSED,
        message=f"permission mode {requested!r} was requested, but {found!r} is in force",
        phase="start",
    )
