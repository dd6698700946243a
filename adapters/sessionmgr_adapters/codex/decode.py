"""The decoder from lines of a Codex app-server to frames.

`read_notices` decodes a notice in one pass, envelope and parameters together; nearly every line of
a streaming text is one. `sessionmgr.wire.json_rpc` decodes the envelope of every other line, and
`decode_notice` and `peer_request_of` decode its contents.
"""

from __future__ import annotations

from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Final, Protocol, TypeVar, Union, cast

import msgspec

from sessionmgr.adapter.kit import PeerRequest
from sessionmgr.model import UnreadableJson, parse_json
from sessionmgr.wire import RpcNotification, RpcRequest, UntypedFrame
from sessionmgr_adapters.codex import frames
from sessionmgr_adapters.codex.items import KnownItem, read_item

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sessionmgr.model import Json
    from sessionmgr.wire import Line, NoFrame, RpcErrorResponse, RpcMessage, RpcResponse
    from sessionmgr_adapters.codex.frames import CodexFrame, Notice

T = TypeVar("T")

_SILENT_METHODS: Final = (
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
    *("model/safetyBuffering/updated", "thread/status/changed"),
)
_NOTICES: Final[dict[str, type[Notice]]] = {
    "error": frames.ErrorNotice,
    "turn/started": frames.TurnStartedNotice,
    "turn/completed": frames.TurnEndedNotice,
    "turn/plan/updated": frames.PlanNotice,
    "thread/started": frames.ThreadStartedNotice,
    "thread/closed": frames.ThreadClosedNotice,
    "thread/tokenUsage/updated": frames.TokenUsageNotice,
    "thread/settings/updated": frames.ThreadSettingsNotice,
    "item/agentMessage/delta": frames.CodexMessageDelta,
    "item/reasoning/summaryTextDelta": frames.CodexReasoningDelta,
    "item/reasoning/textDelta": frames.CodexReasoningDelta,
    "item/commandExecution/outputDelta": frames.CodexOutputDelta,
    "serverRequest/resolved": frames.RequestResolvedNotice,
    "account/rateLimits/updated": frames.LimitsNotice,
    "model/rerouted": frames.ModelReroutedNotice,
    "warning": frames.WarningNotice,
    "guardianWarning": frames.WarningNotice,
    "configWarning": frames.WarningNotice,
    "deprecationNotice": frames.WarningNotice,
    **dict.fromkeys(_SILENT_METHODS, frames.SilentNotice),
}


class _ItemNotice(msgspec.Struct, rename="camel"):
    item: msgspec.Raw
    thread_id: str = ""


class _KnownItemNotice(msgspec.Struct, rename="camel"):
    item: KnownItem
    thread_id: str = ""


_REFUSALS: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
_DECODERS: Final = {method: msgspec.json.Decoder(of) for method, of in _NOTICES.items()}
_ITEM: Final = msgspec.json.Decoder(_ItemNotice)
_ITEMS: Final[dict[str, type[frames.ItemStartedNotice | frames.ItemEndedNotice]]] = {
    "item/started": frames.ItemStartedNotice,
    "item/completed": frames.ItemEndedNotice,
}


class _NoticeEnvelope(Protocol):
    @property
    def params(self) -> Notice: ...


class _ItemEnvelope(Protocol):
    @property
    def notice(self) -> _KnownItemNotice: ...


def _with_item(
    of: type[frames.ItemStartedNotice | frames.ItemEndedNotice], envelope: _ItemEnvelope
) -> Notice:
    return of(thread_id=envelope.notice.thread_id, item=envelope.notice.item)


def _line_decoder() -> msgspec.json.Decoder[_NoticeEnvelope]:
    """Return the decoder of whole lines, tagged by their method."""
    envelopes = [
        msgspec.defstruct("_Envelope", [("params", of)], tag_field="method", tag=method, gc=False)
        for method, of in _NOTICES.items()
    ]
    envelopes += [
        msgspec.defstruct(
            "_Envelope",
            [("notice", _KnownItemNotice, msgspec.field(name="params"))],
            namespace={"params": property(partial(_with_item, of))},
            tag_field="method",
            tag=method,
        )
        for method, of in _ITEMS.items()
    ]
    union: object = Union[tuple(envelopes)]  # noqa: UP007  # of as many as there are
    return cast("msgspec.json.Decoder[_NoticeEnvelope]", msgspec.json.Decoder(union))


_LINE_DECODER: Final = _line_decoder()
_params: Final = cast("Callable[[_NoticeEnvelope], Notice]", attrgetter("params"))


def read_notices(lines: Sequence[Line]) -> list[Notice | None]:
    """Return the notice in each line; None where `json_rpc` must decode the line."""
    found: list[Notice | None] = []
    rest = iter(cast("Sequence[bytes]", lines))
    while len(found) < len(lines):
        try:
            # No Python code runs per line; after a refusal the list has what was read before.
            found.extend(map(_params, map(_LINE_DECODER.decode, rest)))
        except (*_REFUSALS, TypeError):  # a line that was too long is a TypeError
            found.append(None)
    return found


def decode_notice(message: RpcNotification) -> Notice | UntypedFrame:
    """Return the notice in a notification."""
    method, params = message.method, message.params or b"{}"
    try:
        if method in _ITEMS:
            notice = _ITEM.decode(params)
            item = read_item(bytes(notice.item))
            return _ITEMS[method](thread_id=notice.thread_id, item=item)
        if method in _DECODERS:
            return _DECODERS[method].decode(params)
    except _REFUSALS as refusal:
        value: dict[str, Json] = {"method": method, "params": _json(params)}
        return UntypedFrame(value, str(refusal))
    value_ = _json(params)
    return frames.UnknownNotice(method=method, params=value_, thread_id=params_thread(value_) or "")


def decode_frame(message: RpcMessage | NoFrame) -> CodexFrame | RpcResponse | RpcErrorResponse:
    """Return the frame for a message; an answer is returned unchanged, for its caller."""
    match message:
        case RpcNotification():
            return decode_notice(message)
        case RpcRequest():
            return peer_request_of(message)
        case _:
            return message


def frame_thread(frame: CodexFrame | RpcResponse | RpcErrorResponse) -> str:
    """Return the thread that a frame is about, or ""."""
    match frame:
        case frames.ThreadStartedNotice(thread=thread):
            return thread.id
        case PeerRequest(params=params) | UntypedFrame(value={"params": params}):
            return params_thread(params) or ""
        case frames.Notice():
            return frame.thread_id
        case _:
            return ""


def peer_request_of(message: RpcRequest) -> PeerRequest:
    """Return the `PeerRequest` for a request of the app-server."""
    params = _json(message.params or b"{}")
    id_ = message.id if message.id is not None else ""
    return PeerRequest(id_, message.method, params if isinstance(params, dict) else {})


def params_thread(params: Json) -> str | None:
    """Return the thread that parameters name, or None."""
    match params:
        case {"threadId": str(name)} | {"conversationId": str(name)}:
            return name
        case _:
            return None


def decode_result(data: bytes, of: type[T]) -> T | None:
    """Return the result of a call as the given type; None if it has another form."""
    try:
        return msgspec.json.decode(data, type=of)
    except _REFUSALS:
        return None


def _json(data: bytes) -> Json:
    value = parse_json(data)
    return None if isinstance(value, UnreadableJson) else value
