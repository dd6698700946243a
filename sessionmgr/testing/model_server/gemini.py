"""The dialect of the Gemini API, as Gemini CLI uses it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from sessionmgr.model import Json, encode_json, parse_json
from sessionmgr.testing.model_server.agent_texts import purpose_of, session_of, without_reminders
from sessionmgr.testing.model_server.dialect import (
    DelayedBytes,
    PlainAnswer,
    ReplyWriter,
    as_object,
    data_event,
    estimate_tokens,
    last_prompt,
    list_member,
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

MODEL: Final = "scripted"
"""The model that the server lists; it accepts any other name as well."""

_PATH: Final = re.compile(r"/v1(?:beta|alpha)?/models/([^/:]+):(\w+)")
_LISTED: Final = re.compile(r"/v1(?:beta|alpha)/models(?:/([^/:]+))?")
_STATUSES: Final[Mapping[int, str]] = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
_CODES: Final = {name: code for code, name in _STATUSES.items()}
_REASONS: Final[Mapping[str, str]] = {
    "end_turn": "STOP",
    "tool_use": "STOP",
    "max_tokens": "MAX_TOKENS",
    "refusal": "SAFETY",
    "pause_turn": "OTHER",
}
_CONTEXT: Final = "<session_context>"
_ACKNOWLEDGED: Final = "Got it. Thanks for the additional context!"
"""The agent's own answer to a summary, in the name of the model."""
_EMPTY: Final = "[System: You previously returned an empty response"
_TYPE: Final = "type.googleapis.com/google.rpc."
_METRIC: Final = "generativelanguage.googleapis.com/generate_content_free_tier_requests"
_PER_MINUTE: Final = "GenerateRequestsPerMinutePerProjectPerModel-FreeTier"
_PER_DAY: Final = "GenerateRequestsPerDayPerProjectPerModel-FreeTier"


class GeminiDialect:
    """The Gemini API: replies, streaming or not, the count of tokens, and the models."""

    name = "gemini"
    malformed = "data: {not json\n\n"

    def read(self, http: HttpRequest) -> ModelRequest | PlainAnswer | None:
        """Read a request; None if it does not belong to this API."""
        listed = _LISTED.fullmatch(http.path)
        if http.method == "GET" and listed is not None:
            name = listed.group(1)
            return PlainAnswer(body=_model(name) if name else {"models": [_model(MODEL)]})
        asked = _PATH.fullmatch(http.path)
        if http.method != "POST" or asked is None:
            return None
        model, method = asked.groups()
        body = parse_json(http.body)
        if not isinstance(body, dict):
            return _error(400, _STATUSES[400], "the body is not a Gemini request")
        match method:
            case "countTokens":
                return PlainAnswer(body={"totalTokens": estimate_tokens(len(http.body))})
            case "generateContent":
                return _read(model, body, stream=False)
            case "streamGenerateContent" if "alt=sse" in http.target.partition("?")[2]:
                return _read(model, body, stream=True)
            case "streamGenerateContent":
                return _error(400, _STATUSES[400], "a stream has the form of events: add ?alt=sse")
            case _:
                return None

    def reply_writer(
        self, request: ModelRequest, reply: int, stop: ModelStop | None, use: ModelUse | None
    ) -> ReplyWriter:
        """Return the writer of a reply, and the stop reason for its end."""
        return _GeminiReplyWriter(request, reply, stop, use)

    def refuse(self, refusal: ModelRefuse | ModelUsageLimit) -> PlainAnswer:
        """Return the answer for an error; a delay is a detail of it, and not a header."""
        if isinstance(refusal, ModelUsageLimit):
            details = [_quota(_PER_DAY), _retry_info(1)]
            return _error(429, _STATUSES[429], refusal.message, details)
        details = [_quota(_PER_MINUTE)] if refusal.status == 429 else []
        if refusal.retry_after is not None:
            details.append(_retry_info(refusal.retry_after))
        kind = refusal.kind or _STATUSES.get(refusal.status, "UNKNOWN")
        return _error(refusal.status, kind, refusal.message, details, refusal.headers)

    def limits(self, limits: ModelLimits) -> Mapping[str, str]:
        """Return no headers: the API does not report limits."""
        return {}


def _model(name: str) -> Json:
    return {
        "name": f"models/{name}",
        "displayName": name,
        "inputTokenLimit": 1_000_000,
        "outputTokenLimit": 65_536,
        "supportedGenerationMethods": ["generateContent", "countTokens"],
    }


def _quota(id: str) -> Json:
    violation: Json = {"quotaMetric": _METRIC, "quotaId": id}
    return {"@type": f"{_TYPE}QuotaFailure", "violations": [violation]}


def _retry_info(seconds: float) -> Json:
    return {"@type": f"{_TYPE}RetryInfo", "retryDelay": f"{seconds:g}s"}


def _error(
    status: int,
    kind: str,
    message: str,
    details: list[Json] | None = None,
    headers: Mapping[str, str] | None = None,
) -> PlainAnswer:
    error: dict[str, Json] = {"code": status, "message": message, "status": kind}
    if details:
        error["details"] = details
    return PlainAnswer(status, {"error": error}, headers or {})


# --- reading -----------------------------------------------------------------------------------


def _read(model: str, body: dict[str, Json], *, stream: bool) -> ModelRequest:
    contents = [as_object(each) for each in list_member(body, "contents")]
    items = tuple(item for each in contents for item in _items(each))
    tools = tuple(
        _offer(as_object(each))
        for group in list_member(body, "tools")
        for each in list_member(as_object(group), "functionDeclarations")
    )
    system = text_of(as_object(body.get("systemInstruction")).get("parts"))
    context = text_of(contents[0].get("parts")) if contents else ""
    started = context if context.lstrip().startswith(_CONTEXT) else ""
    last = last_prompt(items)
    return ModelRequest(
        face=GeminiDialect.name,
        model=model,
        items=items,
        tools=tools,
        stream=stream,
        purpose=purpose_of(system, last, offers_tools=bool(tools)),
        session=session_of(system + started),
        schema=_schema(as_object(body.get("generationConfig"))),
        body=body,
    )


def _schema(config: Mapping[str, Json]) -> Mapping[str, Json] | None:
    for name in ("responseJsonSchema", "responseSchema"):
        schema = config.get(name)
        if isinstance(schema, dict):
            return schema
    return {"type": "object"} if config.get("responseMimeType") == "application/json" else None


def _items(content: Mapping[str, Json]) -> Iterator[RequestItem]:
    ours = content.get("role") == "model"
    for each in list_member(content, "parts"):
        match as_object(each):
            case {"thought": True}:
                pass
            case {"text": str(text)} if ours:
                if text and text != _ACKNOWLEDGED:
                    yield ModelMessage(text)
            case {"text": str(text)} if _EMPTY in text:
                yield TruncatedReply()
            case {"text": str(text)}:
                if (text := without_reminders(text)).strip():
                    yield UserPrompt(text)
            case {"functionCall": {"name": str(name)} as call}:
                yield ModelToolCall(str(as_object(call).get("id", "")), name)
            case {"functionResponse": dict(response)}:
                yield _result(as_object(response))
            case _:
                pass


def _result(response: Mapping[str, Json]) -> ModelToolResult:
    answer = as_object(response.get("response"))
    failed = "error" in answer
    value = answer.get("error" if failed else "output", response.get("response"))
    text = value if isinstance(value, str) else encode_json(value).decode()
    return ModelToolResult(str(response.get("id", "")), text, failed)


def _offer(tool: Mapping[str, Json]) -> ToolOffer:
    schema = tool.get("parametersJsonSchema") or tool.get("parameters")
    return ToolOffer(str(tool.get("name", "")), as_object(schema))


# --- writing -----------------------------------------------------------------------------------


class _GeminiReplyWriter(ReplyWriter):
    """The writer of a reply, part by part."""

    conversation = "contents"

    def __init__(
        self, request: ModelRequest, reply: int, stop: ModelStop | None, use: ModelUse | None
    ) -> None:
        super().__init__(request, reply, stop, use)
        self._parts: Final[list[Json]] = []

    def open(self) -> bytes:
        """Return nothing: the stream has no start of its own."""
        return b""

    def encode_move(self, move: ModelSay | ModelThink | ModelCall) -> Iterator[DelayedBytes]:
        """Yield the bytes of a move."""
        if isinstance(move, ModelCall):
            part = self._call(move)
            self._parts.append(part)
            yield DelayedBytes(data_event(self._response([part])))
            return
        thought: dict[str, Json] = {"thought": True} if isinstance(move, ModelThink) else {}
        self.characters += len(move.text)
        self._parts.append({"text": move.text, **thought})
        yield DelayedBytes(b"")  # a text has no start of its own
        for text in split_text(move.text, move.deltas):
            part = {"text": text, **thought}
            yield DelayedBytes(data_event(self._response([part])), move.pause)

    def fault(self, fault: ModelFault) -> bytes:
        """Return an error in the middle of the stream."""
        kind = fault.kind if fault.kind in _CODES else "UNAVAILABLE"
        error: Json = {"code": _CODES[kind], "message": fault.message, "status": kind}
        return data_event({"error": error})

    def close(self) -> bytes:
        """Return the regular end of the stream."""
        return data_event(self._response([], self._why()))

    def whole(self) -> Json:
        """Return the complete reply, for a client that does not stream."""
        return self._response(self._parts, self._why())

    def _call(self, move: ModelCall) -> Json:
        chosen = choose_tool(move.tool, move.input, self.request.tools)
        id = call_id("call", self.request, self.reply, len(self._parts))
        # The arguments are an object; a text that is none becomes a field that no tool has.
        broken = move.broken
        read = None if broken is None else parse_json(broken.encode())
        given: Json = dict(chosen.input)
        if broken is not None:
            given = read if isinstance(read, dict) else {"arguments": broken}
        self.characters += len(encode_json(given))
        return {"functionCall": {"id": id, "name": chosen.name, "args": given}}

    def _why(self) -> str:
        return "STOP" if self.stop is None else _REASONS[self.stop.reason]

    def _response(self, parts: list[Json], finish: str | None = None) -> dict[str, Json]:
        candidate: dict[str, Json] = {"content": {"role": "model", "parts": list(parts)}}
        if finish is not None:
            candidate["finishReason"] = finish
        candidate["index"] = 0
        response: dict[str, Json] = {"candidates": [candidate]}
        if finish is not None:
            response["usageMetadata"] = self._usage()
        return {**response, "modelVersion": self.request.model, "responseId": self.key}

    def _usage(self) -> Json:
        use = self.use
        read = use.input + use.cached_input + use.cache_write
        return {
            "promptTokenCount": read,
            "cachedContentTokenCount": use.cached_input,
            "candidatesTokenCount": max(0, use.output - use.reasoning),
            "thoughtsTokenCount": use.reasoning,
            "totalTokenCount": read + max(use.output, use.reasoning),
        }
