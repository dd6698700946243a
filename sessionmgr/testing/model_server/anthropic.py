"""The dialect of the Anthropic Messages API, as Claude Code uses it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from sessionmgr.model import Json, encode_json, parse_json
from sessionmgr.testing.model_server.agent_texts import purpose_of
from sessionmgr.testing.model_server.dialect import (
    DelayedBytes,
    PlainAnswer,
    ReplyWriter,
    as_object,
    estimate_tokens,
    last_prompt,
    list_member,
    retry_headers,
    server_event,
    split_text,
    text_of,
)
from sessionmgr.testing.model_server.http import HttpRequest
from sessionmgr.testing.model_server.request import (
    ModelMessage,
    ModelRequest,
    ModelToolCall,
    ModelToolResult,
    Purpose,
    RequestItem,
    ToolOffer,
    TruncatedReply,
    UserInterrupt,
    UserPrompt,
    call_id,
)
from sessionmgr.testing.model_server.script import (
    ModelCall,
    ModelFault,
    ModelLimits,
    ModelRefuse,
    ModelSay,
    ModelStop,
    ModelThink,
    ModelUsageLimit,
    ModelUse,
)
from sessionmgr.testing.model_server.tools import choose_tool

_KINDS: Final[Mapping[int, str]] = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}
_SUMMARY: Final = "Your task is to create a detailed summary"
_INTERRUPTED: Final = "[Request interrupted by user"
_CUT_OFF: Final = "Your response above was cut off mid-stream"
# The user's message to a running turn, in the instructions that Claude Code adds for the model.
_STEERING: Final = re.compile(
    r"The user sent a new message while you were working:\n(.*?)"
    r"(?:\n\n(?:This is how Claude Code|IMPORTANT: ).*)?",
    re.DOTALL,
)
_REMINDER: Final = re.compile(r"\s*<system-reminder>.*?</system-reminder>\s*", re.DOTALL)
_SESSION: Final = re.compile(r"session_([0-9a-f-]{36})|\"session_id\":\s*\"([^\"]+)\"")


class AnthropicDialect:
    """Anthropic Messages, streaming or not, and the counting of tokens."""

    name = "anthropic"
    malformed = "event: content_block_delta\ndata: {not json\n\n"  # others are ignored

    def read(self, http: HttpRequest) -> ModelRequest | PlainAnswer | None:
        """Read a request; None if it does not belong to this API."""
        if http.method == "HEAD" and http.path in ("/", "/api/hello"):
            return PlainAnswer()  # Claude Code checks that the server is there
        if http.method != "POST" or not http.path.startswith("/v1/messages"):
            return None
        body = parse_json(http.body)
        if not isinstance(body, dict) or not isinstance(body.get("messages"), list):
            return _error(400, "invalid_request_error", "the body is not a Messages request")
        if http.path == "/v1/messages/count_tokens":
            return PlainAnswer(body={"input_tokens": estimate_tokens(len(http.body))})
        if http.path != "/v1/messages":
            return None
        return _read(http, body)

    def reply_writer(
        self, request: ModelRequest, reply: int, stop: ModelStop | None, use: ModelUse | None
    ) -> ReplyWriter:
        """Return the writer of a reply, and the stop reason for its end."""
        return _AnthropicReplyWriter(request, reply, stop, use)

    def refuse(self, refusal: ModelRefuse | ModelUsageLimit) -> PlainAnswer:
        """Return the answer for an error."""
        if isinstance(refusal, ModelUsageLimit):
            headers = _unified(refusal.resets_at, "rejected", 1.0)
            return _error(429, "rate_limit_error", refusal.message, headers)
        headers = retry_headers(refusal)
        kind = refusal.kind or _KINDS.get(refusal.status, "api_error")
        return _error(refusal.status, kind, refusal.message, headers)

    def limits(self, limits: ModelLimits) -> Mapping[str, str]:
        """Return the headers for limits."""
        return _unified(limits.resets_at, limits.status, limits.used)


def _error(
    status: int, kind: str, message: str, headers: Mapping[str, str] | None = None
) -> PlainAnswer:
    body: Json = {
        "type": "error",
        "error": {"type": kind, "message": message},
        "request_id": "req_scripted",
    }
    return PlainAnswer(status, body, headers or {})


def _unified(resets_at: int, status: str, used: float) -> dict[str, str]:
    prefix = "anthropic-ratelimit-unified"
    return {
        f"{prefix}-status": status,
        f"{prefix}-reset": str(resets_at),
        f"{prefix}-representative-claim": "five_hour",
        f"{prefix}-5h-status": status,
        f"{prefix}-5h-reset": str(resets_at),
        f"{prefix}-5h-utilization": f"{used:g}",
        f"{prefix}-overage-status": "rejected",
    }


# --- reading -----------------------------------------------------------------------------------


def _read(http: HttpRequest, body: dict[str, Json]) -> ModelRequest:
    items = [item for each in list_member(body, "messages") for item in _items(as_object(each))]
    last = last_prompt(items)
    system = text_of(body.get("system"))
    purpose: Purpose = purpose_of(system, last, offers_tools=bool(body.get("tools")))
    if _SUMMARY in last:
        purpose = "compaction"
    elif body.get("max_tokens") == 1:
        purpose = "probe"
    form = as_object(as_object(body.get("output_config")).get("format"))
    schema = form.get("schema")
    session = http.headers.get("x-claude-code-session-id", "")
    if not session:
        found = _SESSION.search(str(as_object(body.get("metadata")).get("user_id", "")))
        session = (found.group(1) or found.group(2)) if found else ""
    return ModelRequest(
        face=AnthropicDialect.name,
        model=str(body.get("model", "")),
        items=tuple(items),
        tools=tuple(_offer(as_object(each)) for each in list_member(body, "tools")),
        stream=body.get("stream") is True,
        purpose=purpose,
        schema=schema if isinstance(schema, dict) else None,
        session=session,
        body=body,
    )


def _items(message: Mapping[str, Json]) -> Iterator[RequestItem]:
    role, content = message.get("role"), message.get("content")
    text_alone: list[Json] = [{"type": "text", "text": content}]
    blocks = content if isinstance(content, list) else text_alone
    for each in blocks:
        block = as_object(each)
        match block:
            case {"type": "text", "text": str(text)}:
                item = _text(str(role), text)
                if item is not None:
                    yield item
            case {"type": "tool_use", "id": str(id), "name": str(name)}:
                yield ModelToolCall(id, name)
            case {"type": "tool_result", "tool_use_id": str(id)}:
                text = text_of(block.get("content"))
                yield ModelToolResult(id, text, failed=block.get("is_error") is True)
            case _:
                pass


def _text(role: str, text: str) -> RequestItem | None:
    if role == "assistant":
        return ModelMessage(text)
    if role != "user":  # the agent's own messages, between turns or within
        steering = _STEERING.fullmatch(text)
        return UserPrompt(steering.group(1)) if steering else None
    if text.startswith(_INTERRUPTED):
        return UserInterrupt()
    text = _REMINDER.sub("", text)
    if text.startswith(_CUT_OFF):
        return TruncatedReply()
    return UserPrompt(text) if text.strip() else None


def _offer(tool: Mapping[str, Json]) -> ToolOffer:
    schema = tool.get("input_schema")
    return ToolOffer(str(tool.get("name", "")), schema if isinstance(schema, dict) else {})


# --- writing -----------------------------------------------------------------------------------


class _AnthropicReplyWriter(ReplyWriter):
    """The writer of a message, block by block."""

    conversation = "messages"

    def __init__(
        self, request: ModelRequest, reply: int, stop: ModelStop | None, use: ModelUse | None
    ) -> None:
        super().__init__(request, reply, stop, use)
        self._content: Final[list[Json]] = []
        self._called = False

    def open(self) -> bytes:
        """Return the start of the stream."""
        return server_event("message_start", {"message": self._head(None, {"output_tokens": 1})})

    def encode_move(self, move: ModelSay | ModelThink | ModelCall) -> Iterator[DelayedBytes]:
        """Yield the bytes of a move."""
        index = len(self._content)
        if isinstance(move, ModelSay):
            begun: dict[str, Json] = {"type": "text", "text": ""}
            deltas = [
                {"type": "text_delta", "text": text} for text in split_text(move.text, move.deltas)
            ]
            self._content.append({"type": "text", "text": move.text})
            self.characters += len(move.text)
        elif isinstance(move, ModelThink):
            signature = "c2NyaXB0ZWQ="
            begun = {"type": "thinking", "thinking": "", "signature": ""}
            texts = split_text(move.text, move.deltas)
            deltas = [{"type": "thinking_delta", "thinking": text} for text in texts]
            deltas.append({"type": "signature_delta", "signature": signature})
            self._content.append({**begun, "thinking": move.text, "signature": signature})
            self.characters += len(move.text)
        else:
            begun, written = self._call(move)
            deltas = [
                {"type": "input_json_delta", "partial_json": text}
                for text in split_text(written, 3)
            ]
        yield DelayedBytes(
            server_event("content_block_start", {"index": index, "content_block": begun})
        )
        pause = 0.0 if isinstance(move, ModelCall) else move.pause
        for delta in deltas:
            event = server_event("content_block_delta", {"index": index, "delta": {**delta}})
            yield DelayedBytes(event, pause)
        if not isinstance(move, ModelSay) or move.whole:
            yield DelayedBytes(server_event("content_block_stop", {"index": index}))

    def fault(self, fault: ModelFault) -> bytes:
        """Return an error in the middle of the stream."""
        return server_event("error", {"error": {"type": fault.kind, "message": fault.message}})

    def close(self) -> bytes:
        """Return the regular end of the stream."""
        delta: Json = {"stop_reason": self._why(), "stop_sequence": None}
        ended = server_event("message_delta", {"delta": delta, "usage": self._usage()})
        return ended + server_event("message_stop", {})

    def whole(self) -> Json:
        """Return the complete reply, for a client that does not stream."""
        return self._head(self._why(), {})

    def _call(self, move: ModelCall) -> tuple[dict[str, Json], str]:
        chosen = choose_tool(move.tool, move.input, self.request.tools)
        id = call_id("toolu", self.request, self.reply, len(self._content))
        begun: dict[str, Json] = {"type": "tool_use", "id": id, "name": chosen.name, "input": {}}
        written = move.broken
        if written is None:
            written = encode_json(dict(chosen.input)).decode()
        self._content.append({**begun, "input": dict(chosen.input)})
        self._called = True
        self.characters += len(written)
        return begun, written

    def _why(self) -> str:
        if self.stop is not None:
            return self.stop.reason
        return "tool_use" if self._called else "end_turn"

    def _usage(self) -> dict[str, Json]:
        use = self.use
        return {
            "input_tokens": use.input,
            "cache_creation_input_tokens": use.cache_write,
            "cache_read_input_tokens": use.cached_input,
            "output_tokens": use.output,
        }

    def _head(self, stop: str | None, usage: Mapping[str, Json]) -> dict[str, Json]:
        return {
            "id": f"msg_{self.key}",
            "type": "message",
            "role": "assistant",
            "model": self.request.model,
            "content": list(self._content),
            "stop_reason": stop,
            "stop_sequence": None,
            "usage": {**self._usage(), **usage},
        }
