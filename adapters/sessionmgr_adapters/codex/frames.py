"""The frames of a Codex app-server: answers, requests, and notices of events.

The frames are open: `decode` returns an unknown method, or unknown parameters, unchanged.
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
    """The app-server's description of itself, sent once; or its refusal of the connection."""

    user_agent: str = ""
    account: str = ""
    """The kind of account that pays, as the app-server reports it: `apiKey`, `chatgpt`, …"""
    refusal: RpcRefusal | None = None

    @property
    def version(self) -> str | None:
        """The version that the app-server reports."""
        found = _VERSION.search(self.user_agent)
        return None if found is None else found[1]

    @property
    def credential(self) -> Credential:
        """The kind of account that pays, as a `Credential`."""
        return _CREDENTIALS.get(self.account, "unknown")


# --- notices ------------------------------------------------------------------------------------


class Notice(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """An event in a thread; `thread_id` is "" if it is about none."""

    thread_id: str = ""


class CodexTokenCounts(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Numbers of tokens."""

    input_tokens: int = 0
    cached_input_tokens: int = 0
    cache_write_input_tokens: int = 0
    output_tokens: int = 0
    reasoning_output_tokens: int = 0
    total_tokens: int = 0


class TokenUsage(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The usage of a thread: in total, and of the model's last answer."""

    total: CodexTokenCounts
    last: CodexTokenCounts
    model_context_window: int | None = None


class TokenUsageNotice(Notice, frozen=True, kw_only=True):
    """The model has answered, or a thread was resumed."""

    turn_id: str = ""
    token_usage: TokenUsage


class TurnError(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """An error of a turn."""

    message: str = ""
    codex_error_info: Json = None


class CodexTurn(msgspec.Struct, frozen=True, kw_only=True):
    """A turn, at some point of its progress."""

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
    """A turn has ended."""

    turn: CodexTurn
    usage: CodexTokenCounts | None = None
    """The usage of its thread, reported by `codex exec` only."""


class ErrorNotice(Notice, frozen=True, kw_only=True):
    """An error has occurred; with `will_retry`, Codex tries again."""

    error: TurnError
    will_retry: bool = False
    attempt: int = 0
    """The number of the next attempt, reported by `codex exec` only."""


class ItemStartedNotice(Notice, frozen=True, kw_only=True):
    """An item has started."""

    item: TurnItem


class ItemEndedNotice(Notice, frozen=True, kw_only=True):
    """An item is complete."""

    item: TurnItem


class CodexDelta(Notice, frozen=True, kw_only=True, gc=False):
    """A further piece of something that streams."""

    item_id: str = ""
    delta: str = ""


class CodexMessageDelta(CodexDelta, frozen=True, kw_only=True, gc=False):
    """A further piece of a message."""


class CodexReasoningDelta(CodexDelta, frozen=True, kw_only=True, gc=False):
    """A further piece of the model's reasoning."""


class CodexOutputDelta(CodexDelta, frozen=True, kw_only=True, gc=False):
    """A further piece of a command's output; Codex does not report all of it."""


class PlanStep(msgspec.Struct, frozen=True):
    """A step of a plan."""

    step: str
    status: str = "pending"


class PlanNotice(Notice, frozen=True, kw_only=True):
    """The plan in its present state."""

    plan: list[PlanStep] = []


class LimitWindow(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The used part of one limit."""

    used_percent: float = 0
    resets_at: float | None = None


class AccountLimits(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The account's limits, and how much of each is used."""

    limit_id: str | None = None
    primary: LimitWindow | None = None
    secondary: LimitWindow | None = None
    rate_limit_reached_type: str | None = None


class LimitsNotice(Notice, frozen=True, kw_only=True):
    """The usage of the account's limits has changed."""

    rate_limits: AccountLimits


class WarningNotice(Notice, frozen=True, kw_only=True):
    """A warning."""

    message: str = ""
    summary: str = ""
    details: str | None = None


class ModelReroutedNotice(Notice, frozen=True, kw_only=True):
    """Another model answers than the one requested."""

    from_model: str = ""
    to_model: str = ""


class ThreadSettings(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The settings in force for a thread."""

    approval_policy: Json = None
    approvals_reviewer: str = "user"
    sandbox_policy: Json = None


class ThreadSettingsNotice(Notice, frozen=True, kw_only=True):
    """A thread's settings have changed."""

    thread_settings: ThreadSettings


class RequestResolvedNotice(Notice, frozen=True, kw_only=True):
    """A request of the app-server no longer needs an answer."""

    request_id: RpcId


class ThreadRef(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A thread."""

    id: str
    parent_thread_id: str | None = None
    path: str | None = None
    """The file in which Codex records the thread."""


class ThreadResult(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The result of a call about a thread, where it names the thread."""

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
        """The settings in force for the thread."""
        return ThreadSettings(
            approval_policy=self.approval_policy,
            approvals_reviewer=self.approvals_reviewer,
            sandbox_policy=self.sandbox,
        )


class ThreadStartedNotice(Notice, frozen=True, kw_only=True):
    """A thread was started; it may be that of an agent."""

    thread: ThreadRef


class ThreadClosedNotice(Notice, frozen=True, kw_only=True):
    """A thread is no longer loaded."""


class SilentNotice(Notice, frozen=True, kw_only=True):
    """A sign of life without information about the run."""


class UnknownNotice(Notice, frozen=True, kw_only=True):
    """A notice of unknown type, unchanged."""

    method: str
    params: Json = None


CodexFrame: TypeAlias = ServerInfo | RpcAnswer | PeerRequest | Notice | NoFrame
