"""Tool calls of one run, as the fields of the protocol's updates. No I/O."""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import TYPE_CHECKING, Final, cast

from sessionmgr.acp_server.dialect import tool_text
from sessionmgr.model import Json, ToolCallCompleted, tool_summary

if TYPE_CHECKING:
    from sessionmgr.acp_server.dialect import AcpDialect
    from sessionmgr.acp_server.params import JsonObject
    from sessionmgr.model import ToolApproval, ToolCallEnded, ToolCallStarted, ToolCallUpdated

LONGEST_OUTPUT: Final = 16_384
"""Characters of the end of a running tool's output that an update repeats."""
REPEATS: Final = 16
"""How often a character of the output may be repeated; further output waits for the next update."""

_KINDS: Final = {
    "read": "read view cat open ls list notebookread",
    "edit": "edit write multiedit notebookedit patch applypatch filechange replace create",
    "delete": "delete remove",
    "move": "move rename",
    "search": "search grep glob find",
    "execute": "bash shell exec execute command commandexecution run terminal",
    "think": "think todowrite task plan updateplan",
    "fetch": "fetch webfetch websearch web browse",
    "switch_mode": "exitplanmode enterplanmode",
}
_KIND_OF: Final = {word: kind for kind, words in _KINDS.items() for word in words.split()}
_PATHS: Final = ("file_path", "path", "notebook_path", "filePath")


def tool_kind(name: str) -> str:
    """Return the protocol's kind of a tool, by the words of its name."""
    flat = re.sub(r"[^a-z]", "", name.lower())
    if flat in _KIND_OF:
        return _KIND_OF[flat]
    words = [word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)]
    return next((_KIND_OF[word] for word in words if word in _KIND_OF), "other")


def describe_tool(name: str, tool_input: Json, paths: tuple[str, ...] = ()) -> JsonObject:
    """Return the fields that describe a tool call."""
    summary = tool_summary(tool_input)
    title = f"{name}: {summary}" if name and summary else name or summary or "tool"
    fields: JsonObject = {"title": title, "kind": tool_kind(name)}
    if name:
        fields["name"] = name
    if tool_input is not None:
        fields["rawInput"] = tool_input
    if locations := [{"path": path} for path in paths or _input_paths(tool_input)]:
        fields["locations"] = cast("list[Json]", locations)
    return fields


def _input_paths(tool_input: Json) -> list[str]:
    if not isinstance(tool_input, dict):
        return []
    found = (tool_input.get(name) for name in _PATHS)
    return [path for path in found if isinstance(path, str) and PurePath(path).is_absolute()][:1]


class _ServedCall:
    def __init__(self, *, is_named: bool) -> None:
        self.is_named: Final = is_named
        """Whether the provider named the call; otherwise its approval request is all of it."""
        self.is_denied = False
        self.output = ""
        self.delta = ""

    def take_delta(self) -> tuple[str, str]:
        """Return the new output, and all of it or its end."""
        delta, self.delta = self.delta, ""
        self.output = (self.output + delta)[-LONGEST_OUTPUT:]
        return delta, self.output


def unique_id(run_id: str | None, id_: str) -> str:
    """Return an id that is unique in its session: some providers reuse theirs in the next run."""
    return f"{(run_id or '').removeprefix('run_')}:{id_}"


class ToolCallUpdates:
    """The tool calls of one session that are open, and the updates about them."""

    def __init__(self, dialect: AcpDialect) -> None:
        self._dialect: Final = dialect
        self._open: Final[dict[str, _ServedCall]] = {}

    def start(self, event: ToolCallStarted) -> list[JsonObject]:
        """Return the updates for the start of a call."""
        fields = describe_tool(event.tool_name, event.tool_input)
        if isinstance(event.parent_tool_call_id, str):
            parent = unique_id(event.run_id, event.parent_tool_call_id)
            fields["_meta"] = {"parentToolCallId": parent}
        known = self._open.get(_call_id(event))
        if known is None or not known.is_denied:
            fields["status"] = "in_progress"
        return [self._upsert(_call_id(event), fields)]

    def ask(self, event: ToolApproval) -> list[JsonObject]:
        """Return the updates for an approval request."""
        fields = describe_tool(event.tool_name, event.tool_input)
        call_id = _approval_call(event)
        is_named = event.tool_call_id is not None
        return [self._upsert(call_id, {**fields, "status": "pending"}, is_named=is_named)]

    def grant(self, event: ToolApproval) -> list[JsonObject]:
        """Return the updates for a granted request, whose call may have another input now."""
        call_id = _approval_call(event)
        if call_id not in self._open:
            return []
        fields: JsonObject = {"status": "in_progress"}
        if event.tool_input is not None:
            fields["rawInput"] = event.tool_input
        return [self._dialect.tool_update(call_id, fields)]

    def deny(self, event: ToolApproval) -> list[JsonObject]:
        """Return the updates for a denied request; the provider may report the call's end, too."""
        call_id = _approval_call(event)
        if call_id not in self._open:
            return []
        self._open[call_id].is_denied = True
        fields: JsonObject = {"status": "failed"}
        if event.reason:
            fields["content"] = [tool_text(event.reason)]
        return [self._dialect.tool_update(call_id, fields)]

    def add_output(self, event: ToolCallUpdated) -> None:
        """Note output; `flush` returns the update for all of it."""
        call = self._open.setdefault(_call_id(event), _ServedCall(is_named=True))
        call.delta += event.output_delta

    def flush(self) -> list[JsonObject]:
        """Return the updates for the output since the last call."""
        updates: list[JsonObject] = []
        for call_id, call in self._open.items():
            least = len(call.output) // REPEATS if self._dialect.repeats_output else 0
            if len(call.delta) > least:
                delta, output = call.take_delta()
                updates.append(self._dialect.tool_output(call_id, delta, output))
        return updates

    def end(self, event: ToolCallEnded) -> list[JsonObject]:
        """Return the updates for the end of a call."""
        fields: JsonObject = {
            "status": "completed" if isinstance(event, ToolCallCompleted) else "failed"
        }
        if event.tool_output is not None:
            fields["rawOutput"] = event.tool_output
            if text := _output_text(event.tool_output):
                fields["content"] = [tool_text(text)]
        call_id = _call_id(event)
        if (call := self._open.pop(call_id, None)) is not None:
            if call.delta and "content" not in fields:
                fields["content"] = [tool_text(call.take_delta()[1])]
            return [self._dialect.tool_update(call_id, fields)]
        fields = {**describe_tool(event.tool_name, event.tool_input), **fields}
        return [self._dialect.tool_call(call_id, fields)]

    def end_all(self, *, is_completed: bool) -> list[JsonObject]:
        """Return the updates for the calls that are open at the end of a run."""
        updates = [
            self._dialect.tool_update(
                call_id,
                {"status": "completed" if is_completed and not call.is_named else "failed"},
            )
            for call_id, call in self._open.items()
            if not call.is_denied
        ]
        self._open.clear()
        return updates

    def _upsert(self, call_id: str, fields: JsonObject, *, is_named: bool = True) -> JsonObject:
        if call_id in self._open:
            return self._dialect.tool_update(call_id, fields)
        self._open[call_id] = _ServedCall(is_named=is_named)
        return self._dialect.tool_call(call_id, fields)


def approval_call_id(run_id: str | None, tool_call_id: str | None, approval_id: str) -> str:
    """Return the id of the tool call of an approval request; without one, the request's own."""
    return unique_id(run_id, tool_call_id or approval_id)


def _approval_call(event: ToolApproval) -> str:
    return approval_call_id(event.run_id, event.tool_call_id, event.approval_id)


def _call_id(event: ToolCallStarted | ToolCallUpdated | ToolCallEnded) -> str:
    return unique_id(event.run_id, event.tool_call_id)


def _output_text(output: Json) -> str:
    """Return the text of a tool's output, if it has one."""
    if isinstance(output, str):
        return output
    if isinstance(output, list):
        texts = [each.get("text") for each in output if isinstance(each, dict)]
        return "\n".join(text for text in texts if isinstance(text, str))
    if isinstance(output, dict):
        found = next((output[name] for name in ("output", "text", "content") if name in output), "")
        return found if isinstance(found, str) else ""
    return ""
