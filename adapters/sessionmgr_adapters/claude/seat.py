"""A child of Claude Code as the adapter knows it: what it was brought to, and what it has used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
import trio

from sessionmgr.adapter.kit.version import numbers as numbers, outdated
from sessionmgr.model import Failure, FailureKind
from sessionmgr_adapters.claude.spending import Spending

if TYPE_CHECKING:
    from sessionmgr.model import Json
    from sessionmgr_adapters.claude.launch import ClaudeSpec
    from sessionmgr_adapters.claude.sdk import ClaudeConnection
    from sessionmgr_adapters.claude.state import Credential

OLDEST: Final = (2, 1, 197)
# How far a mode goes unasked. What is not known goes as far as any.
_REACH: Final = {"plan": 0, "dontAsk": 0, "default": 1, "manual": 1, "acceptEdits": 2}
_ALL: Final = 9


class Hello(msgspec.Struct, frozen=True, kw_only=True):
    """What a child says of itself before anything is asked of it."""

    version: str | None = None
    credential: Credential = "unknown"
    is_paid_by_use: bool = False
    """Whether somebody other than a subscription pays."""
    mode: str | None = None


class Seat:
    """One child, from its start to its end; runs of its session sit on it in turn."""

    def __init__(self, spec: ClaudeSpec, connection: ClaudeConnection) -> None:
        self.spec: Final = spec
        self.connection: Final = connection
        self.spending: Final = Spending(resumed=spec.resumes is not None)
        self.hello: Hello | None = None
        self.model = spec.model
        self.effort = spec.effort
        self.mode = spec.mode
        self.denies_in_plan = True
        """Whether what would be asked about in a plan is denied before, since it might not be."""
        self.runs = 0
        self.requests = 0
        self.gone: Final = trio.Event()
        """Set when nothing is left of it."""

    async def wait_closed(self) -> None:
        """Wait until it is of no use any more."""
        await self.connection.wait_closed()

    def fits(self, spec: ClaudeSpec) -> bool:
        """Whether it can serve a run that wants `spec`."""
        unset = spec.effort is None and self.effort is not None
        return self.spec.serves(spec) and not unset


def hello_of(reply: Json) -> Hello:
    """Read the answer to `initialize`; what an older one does not say is not known."""
    if not isinstance(reply, dict):
        return Hello()
    account = reply.get("account")
    known = account if isinstance(account, dict) else {}
    key, token, cloud = (known.get(name) for name in ("apiKeySource", "tokenSource", "apiProvider"))
    has_key = key not in (None, "none")
    has_token = token not in (None, "none")
    is_ours = token == "ANTHROPIC_AUTH_TOKEN"  # of somebody's gateway
    is_elsewhere = cloud not in (None, "firstParty")
    credential: Credential = "unknown"
    if has_key:
        credential = "api_key"
    elif has_token and not is_ours and not is_elsewhere:
        credential = "subscription"
    version, mode = reply.get("claude_code_version"), reply.get("current_permission_mode")
    return Hello(
        version=version if isinstance(version, str) else None,
        credential=credential,
        is_paid_by_use=has_key or is_ours or is_elsewhere,
        mode=mode if isinstance(mode, str) else None,
    )


def too_old(version: str) -> Failure | None:
    """Return the failure that a version is which we cannot talk to."""
    return outdated("Claude Code", version, OLDEST)


def not_as_billed(hello: Hello, billing: str | None) -> Failure | None:
    """Return the failure that it is when somebody else would pay than was declared."""
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


def too_wide(asked: str, found: str | None) -> Failure | None:
    """Return the failure that it is when more is allowed than was asked for."""
    if found is None or _REACH.get(found, _ALL) <= _REACH.get(asked, _ALL):
        return None
    return Failure(
        kind=FailureKind.PERMISSION_REFUSED,
        message=f"the permission mode {asked!r} was asked for, and {found!r} is in force",
        phase="start",
    )
