"""The dialect of the OpenAI Chat Completions API, as most agents can use it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from sessionmgr.model import Json, encode_json, parse_json
from sessionmgr.testing.model_server.agent_texts import purpose_of, session_of, without_reminders
from sessionmgr.testing.model_server.dialect import (
    DelayedBytes,
    PlainAnswer,
    ReplyWriter,
    as_object,
    data_event,
    last_prompt,
    list_member,
    retry_headers,
    split_text,
    text_of,
)
from sessionmgr.testing.model_server.http import HttpRequest
from sessionmgr.testing.model_server.request import (
    ModelMessage,
    ModelRequest,
    ModelToolCall,
    ModelToolResult,
    RequestItem,
    ToolOffer,
    TruncatedReply,
    UserInterrupt,
    UserPrompt,
    call_id,
)
from sessionmgr.testing.model_server.script import (
    OPENING,
    SUMMARY,
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

MODEL: Final = "scripted"
"""The model that the server lists; it accepts any other name as well."""

_CREATED: Final = 1_700_000_000
_KINDS: Final[Mapping[int, tuple[str, str]]] = {
    400: ("invalid_request_error", "invalid_request_error"),
    401: ("invalid_request_error", "invalid_api_key"),
    403: ("request_forbidden", "unsupported_country_region_territory"),
    404: ("invalid_request_error", "model_not_found"),
    429: ("requests", "rate_limit_exceeded"),
}
"""The type and the code of the error for each status."""
_REASONS: Final[Mapping[str, str]] = {
    "end_turn": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "refusal": "content_filter",
    "pause_turn": "stop",
}
_COMPACTED: Final = "Your context was compacted"
"""The start of goose's own message after a summary, in the name of the model."""
_SESSION_HEADERS: Final = ("x-session-id", "agent-session-id")


class ChatDialect:
    """OpenAI Chat Completions, streaming or not, and the list of models."""

    name = "chat"
    malformed = "data: {not json\n\n"

    def read(self, http: HttpRequest) -> ModelRequest | PlainAnswer | None:
        """Read a request; None if it does not belong to this API."""
        if "://" in http.target:
            return None
        if http.method == "GET" and http.path.endswith("/v1/models"):
            return PlainAnswer(body={"object": "list", "data": [_model(MODEL)]})
        if http.method == "GET" and "/v1/models/" in http.path:
            return PlainAnswer(body=_model(http.path.partition("/v1/models/")[2]))
        if http.method != "POST" or not http.path.endswith("/chat/completions"):
            return None
        body = parse_json(http.body)
        if not isinstance(body, dict) or not isinstance(body.get("messages"), list):
            message = "the body is not a Chat Completions request"
            return _error(400, *_KINDS[400], message)
        return _read(http, body)

    def reply_writer(
        self, request: ModelRequest, reply: int, stop: ModelStop | None, use: ModelUse | None
    ) -> ReplyWriter:
        """Return the writer of a reply, and the stop reason for its end."""
        return _ChatReplyWriter(request, reply, stop, use)

    def refuse(self, refusal: ModelRefuse | ModelUsageLimit) -> PlainAnswer:
        """Return the answer for an error."""
        if isinstance(refusal, ModelUsageLimit):
            quota = "insufficient_quota"
            return _error(429, quota, quota, refusal.message)
        headers = retry_headers(refusal)
        kind, code = _KINDS.get(refusal.status, ("server_error", "server_error"))
        if refusal.kind is not None:
            kind = code = refusal.kind
        return _error(refusal.status, kind, code, refusal.message, headers)

    def limits(self, limits: ModelLimits) -> Mapping[str, str]:
        """Return the headers for limits."""
        left = max(0, round((1 - limits.used) * 1000))
        seconds = max(0, round(limits.resets_at - time.time()))
        return {
            "x-ratelimit-limit-requests": "1000",
            "x-ratelimit-remaining-requests": str(left),
            "x-ratelimit-reset-requests": f"{seconds}s",
        }


def _model(name: str) -> Json:
    return {"id": name, "object": "model", "created": _CREATED, "owned_by": "scripted"}


def _error(
    status: int, kind: str, code: str, message: str, headers: Mapping[str, str] | None = None
) -> PlainAnswer:
    error: Json = {"message": message, "type": kind, "param": None, "code": code}
    return PlainAnswer(status, {"error": error}, headers or {})


# --- reading -----------------------------------------------------------------------------------


def _read(http: HttpRequest, body: dict[str, Json]) -> ModelRequest:
    messages = [as_object(each) for each in list_member(body, "messages")]
    items = list(_conversation(messages))
    tools = tuple(offer for each in list_member(body, "tools") for offer in _offer(as_object(each)))
    system = "\n".join(
        text_of(each.get("content"))
        for each in messages
        if each.get("role") in ("system", "developer")
    )
    last = last_prompt(items)
    purpose = purpose_of(system, last, offers_tools=bool(tools))
    if purpose == "compaction" and OPENING in system:
        items.insert(0, UserPrompt(system))  # goose puts the conversation there
    return ModelRequest(
        face=ChatDialect.name,
        model=str(body.get("model", "")),
        items=tuple(items),
        tools=tools,
        stream=body.get("stream") is True,
        purpose=purpose,
        schema=_schema(as_object(body.get("response_format"))),
        session=_session(http, body) or session_of(system),
        body=body,
    )


def _session(http: HttpRequest, body: Mapping[str, Json]) -> str:
    for name in _SESSION_HEADERS:
        if http.headers.get(name):
            return http.headers[name]
    key = body.get("prompt_cache_key")
    return key if isinstance(key, str) else ""


def _schema(form: Mapping[str, Json]) -> Mapping[str, Json] | None:
    if form.get("type") == "json_object":
        return {"type": "object"}
    schema = as_object(form.get("json_schema")).get("schema")
    return schema if isinstance(schema, dict) else None


def _conversation(messages: Sequence[Mapping[str, Json]]) -> Iterator[RequestItem]:
    ended = len(messages)
    while ended and messages[ended - 1].get("role") == "assistant":
        ended -= 1
    prompted = False
    for number, message in enumerate(messages):
        items = list(_items(message))
        prompts = [item.text for item in items if isinstance(item, UserPrompt)]
        if prompted and prompts:
            yield UserInterrupt()  # Copilot CLI forgets a reply that was cancelled
        yield from items
        if number >= ended:
            yield TruncatedReply()  # Kimi Code has a broken reply continued
        if prompts:
            prompted = not any(SUMMARY in text for text in prompts)
        elif message.get("role") != "user":
            prompted = False


def _items(message: Mapping[str, Json]) -> Iterator[RequestItem]:
    content = message.get("content")
    match message:
        case {"role": "user"}:
            parts = content if isinstance(content, list) else [content]
            for part in parts:
                text = without_reminders(text_of([part] if isinstance(part, dict) else part))
                if text.strip():
                    yield UserPrompt(text)
        case {"role": "assistant"}:
            text = text_of(content)
            if text and not text.startswith(_COMPACTED):
                yield ModelMessage(text)
            for each in list_member(message, "tool_calls"):
                called = as_object(each)
                name = as_object(called.get("function") or called.get("custom")).get("name")
                yield ModelToolCall(str(called.get("id", "")), str(name))
        case {"role": "tool", "tool_call_id": str(id)}:
            yield ModelToolResult(id, text_of(content))
        case _:
            pass


def _offer(tool: Mapping[str, Json]) -> Iterator[ToolOffer]:
    function = as_object(tool.get("function"))
    if isinstance(name := function.get("name"), str):
        yield ToolOffer(name, as_object(function.get("parameters")))
    elif isinstance(name := as_object(tool.get("custom")).get("name"), str):
        yield ToolOffer(name, None)


# --- writing -----------------------------------------------------------------------------------


class _ChatReplyWriter(ReplyWriter):
    """The writer of a completion, delta by delta."""

    conversation = "messages"

    def __init__(
        self, request: ModelRequest, reply: int, stop: ModelStop | None, use: ModelUse | None
    ) -> None:
        super().__init__(request, reply, stop, use)
        self._said = ""
        self._thought = ""
        self._calls: Final[list[Json]] = []

    def open(self) -> bytes:
        """Return the start of the stream."""
        return self._delta({"role": "assistant", "content": ""})

    def encode_move(self, move: ModelSay | ModelThink | ModelCall) -> Iterator[DelayedBytes]:
        """Yield the bytes of a move."""
        if isinstance(move, ModelCall):
            yield from map(DelayedBytes, self._call(move))
            return
        self.characters += len(move.text)
        if isinstance(move, ModelSay):
            self._said += move.text
            field = "content"
        else:
            self._thought += move.text
            field = "reasoning_content"
        yield DelayedBytes(b"")  # a text has no start of its own
        for text in split_text(move.text, move.deltas):
            yield DelayedBytes(self._delta({field: text}), move.pause)

    def fault(self, fault: ModelFault) -> bytes:
        """Return an error in the middle of the stream."""
        return data_event(
            {"error": {"message": fault.message, "type": fault.kind, "code": fault.kind}}
        )

    def close(self) -> bytes:
        """Return the regular end of the stream."""
        ended = self._delta({}, self._why())
        if as_object(self.request.body.get("stream_options")).get("include_usage") is True:
            ended += data_event({**self._head("chat.completion.chunk"), "usage": self._usage()})
        return ended + b"data: [DONE]\n\n"

    def whole(self) -> Json:
        """Return the complete reply, for a client that does not stream."""
        message: dict[str, Json] = {"role": "assistant", "content": self._said or None}
        if self._thought:
            message["reasoning_content"] = self._thought
        if self._calls:
            message["tool_calls"] = list(self._calls)
        choice: Json = {"index": 0, "message": message, "finish_reason": self._why()}
        head = self._head("chat.completion")
        return {**head, "choices": [choice], "usage": self._usage()}

    def _call(self, move: ModelCall) -> Iterator[bytes]:
        """Yield a call in three pieces: its name, and its arguments in two."""
        chosen = choose_tool(move.tool, move.input, self.request.tools)
        index = len(self._calls)
        kind, field = ("function", "arguments") if chosen.text is None else ("custom", "input")
        written = move.broken
        if written is None:
            written = chosen.text or encode_json(dict(chosen.input)).decode()
        self.characters += len(written)
        id = call_id("call", self.request, self.reply, index)
        begun: dict[str, Json] = {"id": id, "type": kind}
        self._calls.append({**begun, kind: {"name": chosen.name, field: written}})
        first: Json = {"index": index, **begun, kind: {"name": chosen.name, field: ""}}
        yield self._delta({"tool_calls": [first]})
        for text in split_text(written, 2):
            yield self._delta({"tool_calls": [{"index": index, kind: {field: text}}]})

    def _why(self) -> str:
        if self.stop is not None:
            return _REASONS[self.stop.reason]
        return "tool_calls" if self._calls else "stop"

    def _delta(self, delta: Mapping[str, Json], finish: str | None = None) -> bytes:
        choice: Json = {"index": 0, "delta": {**delta}, "finish_reason": finish}
        return data_event({**self._head("chat.completion.chunk"), "choices": [choice]})

    def _head(self, kind: str) -> dict[str, Json]:
        return {
            "id": f"chatcmpl-{self.key}",
            "object": kind,
            "created": _CREATED,
            "model": self.request.model,
            "choices": [],
        }

    def _usage(self) -> Json:
        use = self.use
        read = use.input + use.cached_input + use.cache_write
        return {
            "prompt_tokens": read,
            "completion_tokens": use.output,
            "total_tokens": read + use.output,
            "prompt_tokens_details": {"cached_tokens": use.cached_input},
            "completion_tokens_details": {"reasoning_tokens": use.reasoning},
        }
