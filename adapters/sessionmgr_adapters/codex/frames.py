"""What a Codex app-server says, as frames: answers, requests, and notices of what happens.

The frames are open: `decode` carries a method that we do not know, and parameters of another shape
than we know, as they came.
"""

from __future__ import annotations

import re
from typing import Final, Literal, TypeAlias

import msgspec

from sessionmgr.adapter.kit import PeerRequest, RpcAnswer, RpcRefusal
from sessionmgr.model import Json
from sessionmgr.wire import NoFrame, RpcId
from sessionmgr_adapters.codex.items import TurnItem

Credential: TypeAlias = Literal["api_key", "subscription", "unknown"]
_CREDENTIALS: Final[dict[str, Credential]] = {"apiKey": "api_key", "chatgpt": "subscription"}
_VERSION: Final = re.compile(r"/(\d+\.\d+\.\d+)")


class ServerInfo(msgspec.Struct, frozen=True, rename="camel"):
    """What the app-server says of itself, once; or that it does not want to talk."""

    user_agent: str = ""
    account: str = ""
    """Who pays, as far as it knows: `apiKey`, `chatgpt`, …"""
    refusal: RpcRefusal | None = None

    @property
    def version(self) -> str | None:
        """The version that it names."""
        found = _VERSION.search(self.user_agent)
        return None if found is None else found[1]

    @property
    def credential(self) -> Credential:
        """Who pays, in our words."""
        return _CREDENTIALS.get(self.account, "unknown")


# --- notices ------------------------------------------------------------------------------------


class Notice(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What happens, or has happened, in a thread; in none, where it has no name."""

    thread_id: str = ""


class CodexTokenCounts(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How many tokens."""

    input_tokens: int = 0
    cached_input_tokens: int = 0
    cache_write_input_tokens: int = 0
    output_tokens: int = 0
    reasoning_output_tokens: int = 0
    total_tokens: int = 0


class TokenUsage(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a thread has used: in all, and for the last answer of the model."""

    total: CodexTokenCounts
    last: CodexTokenCounts
    model_context_window: int | None = None


class TokenUsageNotice(Notice, frozen=True, kw_only=True):
    """The model has answered, or a thread was taken up again."""

    turn_id: str = ""
    token_usage: TokenUsage


class TurnError(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What went wrong."""

    message: str = ""
    codex_error_info: Json = None


class CodexTurn(msgspec.Struct, frozen=True, kw_only=True):
    """A turn, as far as it has come."""

    id: str
    status: str = ""
    error: TurnError | None = None


class TurnStartResult(msgspec.Struct, frozen=True):
    """The result of `turn/start`."""

    turn: CodexTurn


class TurnStartedNotice(Notice, frozen=True, kw_only=True):
    """A turn has begun."""

    turn: CodexTurn


class TurnEndedNotice(Notice, frozen=True, kw_only=True):
    """A turn is over."""

    turn: CodexTurn
    usage: CodexTokenCounts | None = None
    """What its thread has used, by `codex exec`."""


class ErrorNotice(Notice, frozen=True, kw_only=True):
    """Something went wrong; with `will_retry`, it is tried again."""

    error: TurnError
    will_retry: bool = False
    attempt: int = 0
    """Which one follows, by `codex exec`."""


class ItemStartedNotice(Notice, frozen=True, kw_only=True):
    """An item has begun."""

    item: TurnItem


class ItemEndedNotice(Notice, frozen=True, kw_only=True):
    """An item is whole."""

    item: TurnItem


class CodexDelta(Notice, frozen=True, kw_only=True, gc=False):
    """More of something that streams."""

    item_id: str = ""
    delta: str = ""


class CodexMessageDelta(CodexDelta, frozen=True, kw_only=True, gc=False):
    """More of a message."""


class CodexReasoningDelta(CodexDelta, frozen=True, kw_only=True, gc=False):
    """More of what the model thinks."""


class CodexOutputDelta(CodexDelta, frozen=True, kw_only=True, gc=False):
    """More of what a command prints; not all of it is told."""


class PlanStep(msgspec.Struct, frozen=True):
    """A step of a plan."""

    step: str
    status: str = "pending"


class PlanNotice(Notice, frozen=True, kw_only=True):
    """The plan, as it now is."""

    plan: list[PlanStep] = []


class LimitWindow(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How much of a limit is used up."""

    used_percent: float = 0
    resets_at: float | None = None


class AccountLimits(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How near the account's limits are."""

    limit_id: str | None = None
    primary: LimitWindow | None = None
    secondary: LimitWindow | None = None
    rate_limit_reached_type: str | None = None


class LimitsNotice(Notice, frozen=True, kw_only=True):
    """It has come nearer to a limit, or farther away."""

    rate_limits: AccountLimits


class WarningNotice(Notice, frozen=True, kw_only=True):
    """Something is not as it should be."""

    message: str = ""
    summary: str = ""
    details: str | None = None


class ModelReroutedNotice(Notice, frozen=True, kw_only=True):
    """Another model answers than was asked for."""

    from_model: str = ""
    to_model: str = ""


class ThreadSettings(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What is in force for a thread."""

    approval_policy: Json = None
    approvals_reviewer: str = "user"
    sandbox_policy: Json = None


class ThreadSettingsNotice(Notice, frozen=True, kw_only=True):
    """Something else is in force now."""

    thread_settings: ThreadSettings


class RequestResolvedNotice(Notice, frozen=True, kw_only=True):
    """A request of theirs needs no answer any more."""

    request_id: RpcId


class ThreadRef(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A thread."""

    id: str
    parent_thread_id: str | None = None
    path: str | None = None
    """Where Codex records it."""


class ThreadResult(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The result of a call that is about a thread, as far as it names that."""

    thread: ThreadRef


class ThreadOpenResult(ThreadResult, frozen=True, kw_only=True):
    """The result of opening a thread."""

    model: str | None = None
    cwd: str | None = None
    approval_policy: Json = None
    approvals_reviewer: str = "user"
    sandbox: Json = None

    @property
    def settings(self) -> ThreadSettings:
        """What is in force for the thread."""
        return ThreadSettings(
            approval_policy=self.approval_policy,
            approvals_reviewer=self.approvals_reviewer,
            sandbox_policy=self.sandbox,
        )


class ThreadStartedNotice(Notice, frozen=True, kw_only=True):
    """A thread is there; perhaps that of an agent which another one has called."""

    thread: ThreadRef


class ThreadClosedNotice(Notice, frozen=True, kw_only=True):
    """A thread is no longer loaded."""


class SilentNotice(Notice, frozen=True, kw_only=True):
    """A sign of life that says nothing of what happens."""


class UnknownNotice(Notice, frozen=True, kw_only=True):
    """What we do not know, as it came."""

    method: str
    params: Json = None


CodexFrame: TypeAlias = ServerInfo | RpcAnswer | PeerRequest | Notice | NoFrame
