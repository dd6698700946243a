"""What a Codex app-server says, as frames: answers, requests, and notices of what happens.

A message is taken apart twice: its envelope by `sessionmgr.wire.json_rpc`, its parameters here, by
its method. The frames are open: a method that we do not know, and parameters of another shape than
we know, are carried as they came.
"""

from __future__ import annotations

from typing import Final, TypeAlias, TypeVar

import msgspec

from sessionmgr.model import Json
from sessionmgr.model.json import Unreadable, parse_json
from sessionmgr.wire import Id, NoFrame, Notification, Request, Untyped
from sessionmgr_adapters.codex.items import Item, read_item

T = TypeVar("T")


class Refusal(msgspec.Struct, frozen=True):
    """Why a request was not served."""

    code: int
    message: str


class Hello(msgspec.Struct, frozen=True, rename="camel"):
    """What the app-server says of itself, once; or that it does not want to talk."""

    user_agent: str = ""
    codex_home: str = ""
    account: str = ""
    """Who pays, as far as it knows: `apiKey`, `chatgpt`, …"""
    refusal: Refusal | None = None


class Answer(msgspec.Struct, frozen=True):
    """The answer to a call of ours: JSON, or a refusal."""

    call: int
    method: str
    result: bytes = b""
    refusal: Refusal | None = None


class Asking(msgspec.Struct, frozen=True):
    """A request of theirs, which wants an answer."""

    id: Id
    method: str
    params: dict[str, Json] = {}


# --- notices ------------------------------------------------------------------------------------


class _Notice(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    thread_id: str = ""


class TokenCounts(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How many tokens."""

    input_tokens: int = 0
    cached_input_tokens: int = 0
    cache_write_input_tokens: int = 0
    output_tokens: int = 0
    reasoning_output_tokens: int = 0
    total_tokens: int = 0


class TokenUsage(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a thread has used: in all, and for the last answer of the model."""

    total: TokenCounts
    last: TokenCounts
    model_context_window: int | None = None


class TokensUsed(_Notice, frozen=True, kw_only=True):
    """The model has answered, or a thread was taken up again."""

    turn_id: str = ""
    token_usage: TokenUsage


class TurnError(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What went wrong."""

    message: str = ""
    codex_error_info: Json = None
    additional_details: str | None = None


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """A turn, as far as it has come."""

    id: str
    status: str = ""
    error: TurnError | None = None


class TurnStarted(_Notice, frozen=True, kw_only=True):
    """A turn has begun."""

    turn: Turn


class TurnEnded(_Notice, frozen=True, kw_only=True):
    """A turn is over."""

    turn: Turn


class Failing(_Notice, frozen=True, kw_only=True):
    """Something went wrong; with `will_retry`, it is tried again."""

    turn_id: str = ""
    error: TurnError
    will_retry: bool = False


class ItemStarted(msgspec.Struct, frozen=True, kw_only=True):
    """An item has begun."""

    thread_id: str = ""
    turn_id: str = ""
    item: Item


class ItemEnded(msgspec.Struct, frozen=True, kw_only=True):
    """An item is whole."""

    thread_id: str = ""
    turn_id: str = ""
    item: Item


class _Delta(_Notice, frozen=True, kw_only=True):
    turn_id: str = ""
    item_id: str = ""
    delta: str = ""


class MessageDelta(_Delta, frozen=True, kw_only=True):
    """More of a message."""


class ReasoningDelta(_Delta, frozen=True, kw_only=True):
    """More of what the model thinks."""


class OutputDelta(_Delta, frozen=True, kw_only=True):
    """More of what a command prints; not all of it is told."""


class Step(msgspec.Struct, frozen=True):
    """A step of a plan."""

    step: str
    status: str = "pending"


class PlanChanged(_Notice, frozen=True, kw_only=True):
    """The plan, as it now is."""

    turn_id: str = ""
    plan: list[Step] = []


class Window(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How much of a limit is used up."""

    used_percent: float = 0
    window_duration_mins: float | None = None
    resets_at: float | None = None


class Limits(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How near the account's limits are."""

    limit_id: str | None = None
    primary: Window | None = None
    secondary: Window | None = None
    rate_limit_reached_type: str | None = None


class LimitsChanged(_Notice, frozen=True, kw_only=True):
    """It has come nearer to a limit, or farther away."""

    rate_limits: Limits


class Warned(_Notice, frozen=True, kw_only=True):
    """Something is not as it should be."""

    message: str = ""
    summary: str = ""
    details: str | None = None


class Rerouted(_Notice, frozen=True, kw_only=True):
    """Another model answers than was asked for."""

    from_model: str = ""
    to_model: str = ""
    reason: Json = None


class Settings(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What is in force for a thread."""

    approval_policy: Json = None
    approvals_reviewer: str = "user"
    sandbox_policy: Json = None
    model: str | None = None


class SettingsChanged(_Notice, frozen=True, kw_only=True):
    """Something else is in force now."""

    thread_settings: Settings


class Resolved(_Notice, frozen=True, kw_only=True):
    """A request of theirs needs no answer any more."""

    request_id: Id


class ThreadRef(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A thread."""

    id: str
    parent_thread_id: str | None = None


class ThreadStarted(msgspec.Struct, frozen=True, kw_only=True):
    """A thread is there; perhaps that of an agent which another one has called."""

    thread: ThreadRef


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """What a thread does."""

    type: str = ""


class StatusChanged(_Notice, frozen=True, kw_only=True):
    """A thread does something else now."""

    status: Status


class ThreadClosed(_Notice, frozen=True, kw_only=True):
    """A thread is no longer loaded."""


class Quiet(_Notice, frozen=True, kw_only=True):
    """A sign of life that says nothing of what happens."""


class Unknown(msgspec.Struct, frozen=True):
    """What we do not know, as it came."""

    method: str
    params: Json = None
    thread_id: str = ""


Notice: TypeAlias = (
    TokensUsed
    | TurnStarted
    | TurnEnded
    | Failing
    | ItemStarted
    | ItemEnded
    | MessageDelta
    | ReasoningDelta
    | OutputDelta
    | PlanChanged
    | LimitsChanged
    | Warned
    | Rerouted
    | SettingsChanged
    | Resolved
    | ThreadStarted
    | StatusChanged
    | ThreadClosed
    | Quiet
    | Unknown
)
Frame: TypeAlias = Hello | Answer | Asking | Notice | NoFrame

_QUIET: Final = (
    *("thread/readState/changed", "thread/archived", "thread/deleted", "thread/unarchived"),
    *("thread/reverted", "thread/name/updated", "thread/section/changed", "thread/goal/updated"),
    *("thread/goal/cleared", "thread/attachment/updated", "thread/prediction/updated"),
    *("thread/queue/changed", "thread/project/updated", "thread/environment/connected"),
    *("thread/environment/disconnected", "thread/compacted", "turn/diff/updated"),
    *("turn/moderationMetadata", "hook/started", "hook/completed", "skills/changed"),
    *("project/changed", "account/updated", "account/login/completed", "app/list/updated"),
    *("account/gatewayOAuth/changed", "remoteControl/status/changed", "fs/changed"),
    *("mcpServer/startupStatus/updated", "mcpServer/oauthLogin/completed"),
    *("item/plan/delta", "item/reasoning/summaryPartAdded", "item/mcpToolCall/progress"),
    *("item/fileChange/outputDelta", "item/fileChange/patchUpdated"),
    *("item/commandExecution/terminalInteraction", "model/verification"),
    *("item/autoApprovalReview/started", "item/autoApprovalReview/completed"),
    *("modelProvider/authRecoveryStarted", "modelProvider/authRecoveryCompleted"),
    "model/safetyBuffering/updated",
)
_NOTICES: Final[dict[str, type[Notice]]] = {
    "error": Failing,
    "turn/started": TurnStarted,
    "turn/completed": TurnEnded,
    "turn/plan/updated": PlanChanged,
    "thread/started": ThreadStarted,
    "thread/status/changed": StatusChanged,
    "thread/closed": ThreadClosed,
    "thread/tokenUsage/updated": TokensUsed,
    "thread/settings/updated": SettingsChanged,
    "item/agentMessage/delta": MessageDelta,
    "item/reasoning/summaryTextDelta": ReasoningDelta,
    "item/reasoning/textDelta": ReasoningDelta,
    "item/commandExecution/outputDelta": OutputDelta,
    "serverRequest/resolved": Resolved,
    "account/rateLimits/updated": LimitsChanged,
    "model/rerouted": Rerouted,
    "warning": Warned,
    "guardianWarning": Warned,
    "configWarning": Warned,
    "deprecationNotice": Warned,
    **dict.fromkeys(_QUIET, Quiet),
}


class _ItemNotice(msgspec.Struct, rename="camel"):
    item: msgspec.Raw
    thread_id: str = ""
    turn_id: str = ""


_REFUSALS: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
_DECODERS: Final = {method: msgspec.json.Decoder(of) for method, of in _NOTICES.items()}
_ITEM: Final = msgspec.json.Decoder(_ItemNotice)
_ITEMS: Final[dict[str, type[ItemStarted | ItemEnded]]] = {
    "item/started": ItemStarted,
    "item/completed": ItemEnded,
}


def notice_of(message: Notification) -> Notice | Untyped:
    """Return what a notification says."""
    method, params = message.method, message.params or b"{}"
    try:
        if method in _ITEMS:
            told = _ITEM.decode(params)
            item = read_item(bytes(told.item))
            return _ITEMS[method](thread_id=told.thread_id, turn_id=told.turn_id, item=item)
        if method in _DECODERS:
            return _DECODERS[method].decode(params)
    except _REFUSALS as refusal:
        value: dict[str, Json] = {"method": method, "params": _json(params)}
        return Untyped(value, str(refusal))
    value_ = _json(params)
    return Unknown(method, value_, thread_of(value_) or "")


def asking_of(message: Request) -> Asking:
    """Return what a request of theirs asks."""
    params = _json(message.params or b"{}")
    id_ = message.id if message.id is not None else ""
    return Asking(id_, message.method, params if isinstance(params, dict) else {})


def thread_of(params: Json) -> str | None:
    """Return which thread something is about."""
    match params:
        case {"threadId": str(name)} | {"conversationId": str(name)}:
            return name
        case _:
            return None


def decoded(data: bytes, of: type[T]) -> T | None:
    """Return the result of a call as the type it should have; None if it has another shape."""
    try:
        return msgspec.json.decode(data, type=of)
    except _REFUSALS:
        return None


def _json(data: bytes) -> Json:
    value = parse_json(data)
    return None if isinstance(value, Unreadable) else value
