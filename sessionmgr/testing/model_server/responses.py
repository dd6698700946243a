"""The dialect of the OpenAI Responses API, as Codex uses it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from sessionmgr.model import Json, encode_json, parse_json
from sessionmgr.testing.model_server.agent_texts import purpose_of
from sessionmgr.testing.model_server.dialect import (
    DelayedBytes,
    PlainAnswer,
    ReplyWriter,
    as_object,
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
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_exceeded",
}
_SUMMARY: Final = "You are performing a CONTEXT CHECKPOINT COMPACTION"
_ABORTED: Final = "<turn_aborted>"
# Codex's own additions to the user's messages.
_CONTEXT: Final = ("<environment_context>", "<user_instructions>", "# AGENTS.md instructions")
_OWN: Final = "functions"
"""The namespace of tools that have none."""
_INCOMPLETE: Final = {"max_tokens": "max_output_tokens", "refusal": "content_filter"}


class ResponsesDialect:
    """OpenAI Responses, streaming or not."""

    name = "responses"
    malformed = "event: response.output_text.delta\ndata: {not json\n\n"

    def read(self, http: HttpRequest) -> ModelRequest | PlainAnswer | None:
        """Read a request; None if it does not belong to this API."""
        if http.method != "POST" or http.path != "/v1/responses":
            return None
        body = parse_json(http.body)
        if not isinstance(body, dict):
            return _error(400, "invalid_request_error", "the body is not a Responses request")
        return _read(http, body)

    def reply_writer(
        self, request: ModelRequest, reply: int, stop: ModelStop | None, use: ModelUse | None
    ) -> ReplyWriter:
        """Return the writer of a reply, and the stop reason for its end."""
        return _ResponsesReplyWriter(request, reply, stop, use)

    def refuse(self, refusal: ModelRefuse | ModelUsageLimit) -> PlainAnswer:
        """Return the answer for an error."""
        if isinstance(refusal, ModelUsageLimit):
            headers = _used(1.0, refusal.resets_at)
            more: Mapping[str, Json] = {"resets_at": refusal.resets_at, "plan_type": "plus"}
            return _error(429, "usage_limit_reached", refusal.message, headers, more)
        headers = retry_headers(refusal)
        kind = refusal.kind or _KINDS.get(refusal.status, "server_error")
        return _error(refusal.status, kind, refusal.message, headers)

    def limits(self, limits: ModelLimits) -> Mapping[str, str]:
        """Return the headers for limits."""
        return _used(limits.used, limits.resets_at)


def _error(
    status: int,
    kind: str,
    message: str,
    headers: Mapping[str, str] | None = None,
    more: Mapping[str, Json] | None = None,
) -> PlainAnswer:
    error: Json = {"message": message, "type": kind, "code": kind, **(more or {})}
    return PlainAnswer(status, {"error": error}, headers or {})


def _used(used: float, resets_at: int) -> dict[str, str]:
    return {
        "x-codex-primary-used-percent": f"{used * 100:g}",
        "x-codex-primary-window-minutes": "300",
        "x-codex-primary-reset-at": str(resets_at),
    }


# --- reading -----------------------------------------------------------------------------------


def _read(http: HttpRequest, body: dict[str, Json]) -> ModelRequest:
    inputs = [as_object(each) for each in list_member(body, "input")]
    text = body.get("input")
    items: list[RequestItem] = [UserPrompt(text)] if isinstance(text, str) else []
    for each in inputs:
        items.extend(_items(each))
    tools = list_member(body, "tools")
    for each in inputs:  # models that write programs get their tools in the input
        if each.get("type") == "additional_tools":
            tools = tools + list_member(each, "tools")
    last = last_prompt(items)
    purpose: Purpose = purpose_of("", last, offers_tools=True)
    if last.lstrip().startswith(_SUMMARY):
        purpose = "compaction"
    form = as_object(as_object(body.get("text")).get("format"))
    schema = form.get("schema")
    return ModelRequest(
        face=ResponsesDialect.name,
        model=str(body.get("model", "")),
        items=tuple(items),
        tools=tuple(offer for each in tools for offer in _offers(as_object(each))),
        stream=body.get("stream") is True,
        purpose=purpose,
        schema=schema if isinstance(schema, dict) else None,
        session=http.headers.get("thread-id") or http.headers.get("session-id", ""),
        body=body,
    )


def _items(item: Mapping[str, Json]) -> Iterator[RequestItem]:
    match item:
        case {"type": "message" | None, "role": str(role)} | {"role": str(role)}:
            yield from _message(role, text_of(item.get("content")))
        case {
            "type": "function_call" | "custom_tool_call",
            "call_id": str(id),
            "name": str(name),
        }:
            yield ModelToolCall(id, name)
        case {
            "type": "function_call_output" | "custom_tool_call_output",
            "call_id": str(id),
        }:
            yield ModelToolResult(id, text_of(item.get("output")))
        case _:
            pass


def _message(role: str, text: str) -> Iterator[RequestItem]:
    if role == "assistant":
        yield ModelMessage(text)
    elif role != "user" or text.lstrip().startswith(_CONTEXT):
        return
    elif text.lstrip().startswith(_ABORTED):
        yield UserInterrupt()
    else:
        yield UserPrompt(text)


def _offers(tool: Mapping[str, Json], namespace: str | None = None) -> Iterator[ToolOffer]:
    name = tool.get("name")
    if not isinstance(name, str):
        return  # a tool of the provider itself, such as a search
    if tool.get("type") == "namespace":
        for each in list_member(tool, "tools"):
            yield from _offers(as_object(each), None if name == _OWN else name)
        return
    full = name if namespace is None else f"{namespace}__{name}"
    if tool.get("type") == "custom":
        yield ToolOffer(full, None, namespace)
    else:
        yield ToolOffer(full, as_object(tool.get("parameters")), namespace)


# --- writing -----------------------------------------------------------------------------------


class _ResponsesReplyWriter(ReplyWriter):
    """The writer of a response, item by item."""

    conversation = "input"

    def __init__(
        self, request: ModelRequest, reply: int, stop: ModelStop | None, use: ModelUse | None
    ) -> None:
        super().__init__(request, reply, stop, use)
        self._output: Final[list[Json]] = []

    def open(self) -> bytes:
        """Return the start of the stream."""
        return server_event("response.created", {"response": self._response("in_progress")})

    def encode_move(self, move: ModelSay | ModelThink | ModelCall) -> Iterator[DelayedBytes]:
        """Yield the bytes of a move."""
        index = len(self._output)
        if isinstance(move, ModelCall):
            item = self._call(move)
            self._output.append(item)
            yield DelayedBytes(self._item("added", index, item) + self._item("done", index, item))
            return
        self.characters += len(move.text)
        id = f"{self.request.key}_{self.reply}_{index}_{self.request.attempt}"
        if isinstance(move, ModelSay):
            begun: dict[str, Json] = {"type": "message", "role": "assistant", "id": f"msg_{id}"}
            empty: Json = []
            content: Json = [{"type": "output_text", "text": move.text, "annotations": []}]
            field, kind, place = "content", "response.output_text.delta", "content_index"
        else:
            begun = {"type": "reasoning", "id": f"rs_{id}", "encrypted_content": None}
            empty = []
            content = [{"type": "summary_text", "text": move.text}]
            field, kind = "summary", "response.reasoning_summary_text.delta"
            place = "summary_index"
        at: dict[str, Json] = {"item_id": begun["id"], "output_index": index, place: 0}
        yield DelayedBytes(self._item("added", index, {**begun, field: empty}))
        if isinstance(move, ModelThink):
            part: Json = {"type": "summary_text", "text": ""}
            yield DelayedBytes(
                server_event("response.reasoning_summary_part.added", {**at, "part": part})
            )
        for text in split_text(move.text, move.deltas):
            yield DelayedBytes(server_event(kind, {**at, "delta": text}), move.pause)
        whole: Json = {**begun, field: content}
        self._output.append(whole)
        if not isinstance(move, ModelSay) or move.whole:
            yield DelayedBytes(self._item("done", index, whole))

    def fault(self, fault: ModelFault) -> bytes:
        """Return an error in the middle of the stream."""
        error: Json = {"code": fault.kind, "message": fault.message}
        failed = {**self._response("failed"), "error": error}
        return server_event("response.failed", {"response": failed})

    def close(self) -> bytes:
        """Return the regular end of the stream."""
        ended = self._ended()
        return server_event(f"response.{ended['status']}", {"response": ended})

    def whole(self) -> Json:
        """Return the complete reply, for a client that does not stream."""
        return self._ended()

    def _call(self, move: ModelCall) -> Json:
        chosen = choose_tool(move.tool, move.input, self.request.tools)
        id = call_id("call", self.request, self.reply, len(self._output))
        name, namespace = chosen.name, chosen.namespace
        if namespace is None and name.startswith("mcp__") and name.count("__") > 1:
            namespace = name.rpartition("__")[0]  # a tool that must be searched for
        called: dict[str, Json] = {"call_id": id, "id": f"fc_{id}"}
        if namespace is not None:
            called["namespace"] = namespace
            name = name.removeprefix(f"{namespace}__")
        called["name"] = name
        if chosen.text is not None:
            written = chosen.text if move.broken is None else move.broken
            item: Json = {"type": "custom_tool_call", **called, "input": written}
        else:
            written = encode_json(dict(chosen.input)).decode()
            written = written if move.broken is None else move.broken
            item = {"type": "function_call", **called, "arguments": written}
        self.characters += len(written)
        return item

    def _item(self, what: str, index: int, item: Json) -> bytes:
        return server_event(f"response.output_item.{what}", {"output_index": index, "item": item})

    def _ended(self) -> dict[str, Json]:
        reason = None if self.stop is None else self.stop.reason
        if reason in _INCOMPLETE:
            details: Json = {"reason": _INCOMPLETE[reason]}
            return {**self._response("incomplete"), "incomplete_details": details}
        ended = self._response("completed")
        return {**ended, "end_turn": False} if reason == "pause_turn" else ended

    def _response(self, status: str) -> dict[str, Json]:
        begun: dict[str, Json] = {
            "id": f"resp_{self.key}",
            "object": "response",
            "model": self.request.model,
            "status": status,
            "output": list(self._output),
        }
        return begun if status == "in_progress" else {**begun, "usage": self._usage()}

    def _usage(self) -> Json:
        use = self.use
        read = use.input + use.cached_input + use.cache_write
        return {
            "input_tokens": read,
            "input_tokens_details": {"cached_tokens": use.cached_input},
            "output_tokens": use.output,
            "output_tokens_details": {"reasoning_tokens": use.reasoning},
            "total_tokens": read + use.output,
        }
