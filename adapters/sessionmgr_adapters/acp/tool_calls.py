"""A tool call of an ACP agent, from what its updates report piece by piece.

Agents differ in how they report the input. It is in `rawInput`, which may be empty or incomplete at
first; or the content of the call streams it as text until the call runs. A call is announced once
its input is known, and at the latest with its result.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from msgspec import UNSET, UnsetType

from sessionmgr.model import (
    ToolCallCompleted,
    ToolCallFailed,
    ToolCallStarted,
    UnreadableJson,
    parse_json,
)
from sessionmgr_adapters.acp.decode import as_dict, as_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sessionmgr.adapter.kit import ImageCollector
    from sessionmgr.model import Event, Json
    from sessionmgr_adapters.acp.updates import ToolCallUpsert, ToolLocation

ENDED: Final = frozenset({"completed", "failed", "cancelled"})
_OTHER: Final = "other"
_SUCCEEDED: Final = "completed"
# An id that contains the name of the tool: `read_file__read_file_1795003062150_0`, or with the
# model's id of the call in place of the second name.
_NAMING_ID: Final = re.compile(r"(\w+?)__(?:\1_\d+_\d+|call_\w+)")
_NAME: Final = re.compile(r"[\w.:/-]+")
# Members that an agent knows before it has the model's input.
_EARLY_MEMBERS: Final = frozenset({"cwd"})
DESCRIPTION: Final = frozenset({"title", "paths", "content"})
"""The members of what stands in for an input that the agent does not report."""


@dataclass(slots=True)
class AcpToolCall:
    """A tool call, as reported so far."""

    id: str
    name: str = ""
    """Name of the tool; it does not change once the call is announced."""
    title: str = ""
    kind: str = _OTHER
    status: str = "pending"
    input: Json = None
    output: Json = None
    content: list[Json] = field(default_factory=list["Json"])
    locations: tuple[ToolLocation, ...] = ()
    is_announced: bool = False
    announced_input: Json = None
    shown: str = ""
    """The output that was reported by events."""

    def merge(self, update: ToolCallUpsert) -> None:
        """Record what an update reports; null leaves what cannot be removed as it was."""
        self._merge_description(update)
        if update.status:
            self.status = update.status
        if update.raw_input is not UNSET:
            self.input = update.raw_input
        if update.raw_output is not UNSET:
            self.output = update.raw_output
        if update.content is not UNSET:
            self.content = [*(update.content or ())]
        if update.locations is not UNSET:
            self.locations = update.locations or ()
        if not self.input and not self.has_ended:
            self.input = self._streamed_input()

    def merge_request(self, update: ToolCallUpsert) -> None:
        """Record what a request for permission reports, unless the call is announced.

        A request may describe the input in another way than the updates, and its text is no output.
        """
        if self.is_announced:
            return
        self._merge_description(update)
        self.input = request_input(update, self)

    def _merge_description(self, update: ToolCallUpsert) -> None:
        if not self.is_announced:
            # The first title is a name in many agents; later ones contain the input.
            self.name = _tool_name(update) or self.name or _word(update.title)
        self.title = update.title or self.title
        self.kind = update.kind or self.kind

    @property
    def has_ended(self) -> bool:
        """Whether the call has its result."""
        return self.status in ENDED

    @property
    def text(self) -> str | None:
        """The text of the content; None if the content is something else."""
        texts = [_text(each) for each in self.content]
        return "".join(each or "" for each in texts) if any(t is not None for t in texts) else None

    @property
    def terminals(self) -> list[str]:
        """The terminals that the content shows."""
        found = [
            as_text(as_dict(each).get("terminalId"))
            for each in self.content
            if as_dict(each).get("type") == "terminal"
        ]
        return [each for each in found if each]

    def is_ready(self, update: ToolCallUpsert, *, is_new: bool) -> bool:
        """Whether the input is known, so that the call can be announced."""
        if self.has_ended:
            return True
        if not self.input and self._streams_input():
            return False
        if self.status != "pending":
            return True
        is_early = isinstance(self.input, dict) and self.input.keys() <= _EARLY_MEMBERS
        return bool(self.input and not is_early) or (not is_new and update.raw_input is not UNSET)

    def announce(self) -> list[Event]:
        """Return the event for the start of the call, unless it was reported before."""
        if self.is_announced:
            return []
        if self.input is None:
            self.input = _description(self.title, self.locations, self.content) or None
        self.is_announced, self.announced_input = True, self.input
        return [
            ToolCallStarted(tool_call_id=self.id, tool_name=self.tool_name, tool_input=self.input)
        ]

    def new_output(self) -> str:
        """Return the output that was not reported yet, of a call that runs."""
        text = self.text
        if not self.is_announced or not text or self._is_input(text):
            return ""
        known, self.shown = self.shown, text
        return text[len(known) :] if text.startswith(known) else ""

    def end(self, images: ImageCollector, terminals: Mapping[str, str]) -> list[Event]:
        """Return the events for the result; `terminals` has the output of terminals."""
        ended = ToolCallCompleted if self.status == _SUCCEEDED else ToolCallFailed
        output, events = images.extract([_image_or_item(each) for each in self.content])
        return [
            *events,
            ended(
                tool_call_id=self.id,
                tool_name=self.tool_name,
                tool_input=None if self.input == self.announced_input else self.input,
                tool_output=self._result(output, terminals),
            ),
        ]

    def abandon(self) -> list[Event]:
        """Return the events for a call that gets no result."""
        events = self.announce()
        changed = None if self.input == self.announced_input else self.input
        failed = ToolCallFailed(
            tool_call_id=self.id, tool_name=self.tool_name, tool_input=changed, synthetic=True
        )
        return [*events, failed]

    @property
    def tool_name(self) -> str:
        """The name of the tool, or what is known in its place."""
        return self.name or (self.kind if self.kind != _OTHER else self.title or self.kind)

    def _result(self, content: Json, terminals: Mapping[str, str]) -> Json:
        if self.output is not None:
            return self.output
        shown = [terminals[name] for name in self.terminals if name in terminals]
        if shown and len(shown) == len(self.content):
            return "".join(shown)
        texts = [_text(each) for each in self.content]
        if texts and all(each is not None for each in texts):
            return "".join(each or "" for each in texts)
        return content or None

    def _streamed_input(self) -> Json:
        """Return the input that the content streams, if it is complete."""
        value = parse_json(self.text or "")
        return value if isinstance(value, dict) else self.input

    def _streams_input(self) -> bool:
        text = self.text
        return text is not None and (not text or text.lstrip().startswith("{"))

    def _is_input(self, text: str) -> bool:
        if not text.lstrip().startswith("{"):
            return False
        value = parse_json(text)
        return not isinstance(value, UnreadableJson) and value == self.input


def _tool_name(update: ToolCallUpsert) -> str:
    """Return the name that the update itself has; a title may contain the input."""
    if update.name:
        return update.name
    for each in as_dict(update.meta).values():
        extension = as_dict(each)
        name = extension.get("toolName", as_dict(extension.get("toolCall")).get("toolName"))
        if isinstance(name, str):
            return name
    found = _NAMING_ID.fullmatch(update.tool_call_id)
    return "" if found is None else found[1]


def _word(title: str | UnsetType | None) -> str:
    """Return a title that is a name, and not a description of the call."""
    return title if title and _NAME.fullmatch(title) else ""


def live_output(meta: Json) -> str:
    """Return the output that an agent reports in the extensions of an update."""
    match meta:
        case {"terminal_output_delta": {"data": str(text)}}:
            return text
        case {"toolNotification": {"type": "live_output", "params": {"chunks": list(chunks)}}}:
            return "".join(as_text(as_dict(each).get("output")) for each in chunks)
        case _:
            return ""


def request_input(update: ToolCallUpsert, call: AcpToolCall | None) -> Json:
    """Return the input of a call for which permission is requested.

    It has what the request reports, and what the updates reported before. If neither has an input,
    it is a description: the title, the files, and the changes.
    """
    known = None if call is None else call.input
    given = None if update.raw_input is UNSET else update.raw_input
    if isinstance(known, dict) and isinstance(given, dict):
        return {**known, **given}
    if given or known:
        return given or known
    content = () if update.content is UNSET else update.content or ()
    locations = () if update.locations is UNSET else update.locations or ()
    return _description(update.title or "", locations, content)


def _description(
    title: str, locations: Sequence[ToolLocation], content: Sequence[Json]
) -> dict[str, Json]:
    """Return what stands in for an input that the agent does not report."""
    given: dict[str, Json] = {
        "title": title,
        "paths": [each.path for each in locations],
        "content": [each for each in content if _text(each) is None],
    }
    return {name: value for name, value in given.items() if value}


def _text(item: Json) -> str | None:
    """Return the text of an item of a call's content; None if it is something else."""
    match item:
        case {"type": "content", "content": {"type": "text", "text": str(text)}}:
            return text
        case _:
            return None


def _image_or_item(item: Json) -> Json:
    """Return an item, an image in the form that `ImageCollector` takes."""
    match item:
        case {"type": "content", "content": dict(block)}:
            return image_source(block) or item
        case _:
            return item


def image_source(block: Json) -> Json:
    """Return a block with an image in the form that `ImageCollector` takes; None if it is none."""
    match block:
        case {"type": "image", "data": str(data), "mimeType": str(media_type)}:
            source: Json = {"type": "base64", "data": data, "media_type": media_type}
            return {"type": "image", "source": source}
        case _:
            return None
