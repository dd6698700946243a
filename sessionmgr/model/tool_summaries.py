"""One-line summaries of a tool's input: its command, its path, its query."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

if TYPE_CHECKING:
    from sessionmgr.model.json_codec import Json

WIDTH: Final = 200
# The fields of a tool call that identify it best, in order of preference.
_TELLING: Final = (
    *("command", "cmd", "script", "file_path", "path", "pattern", "url", "query"),
    *("prompt", "description"),
)


def tool_summary(tool_input: Json, width: int = WIDTH) -> str:
    """Return the most informative text of a tool's input, cut to a width; empty without one."""
    said = " ".join(_most_telling(tool_input).split())
    return said if len(said) <= width else said[: width - 1] + "…"


def _most_telling(tool_input: Json) -> str:
    if isinstance(tool_input, str):
        return tool_input
    if not isinstance(tool_input, dict):
        return ""
    fields = cast("dict[str, object]", tool_input)
    for name in (*_TELLING, *fields):
        value = fields.get(name)
        if isinstance(value, str):
            return value
        if isinstance(value, list) and value:
            texts = [_text_of(each) for each in cast("list[Json]", value)]
            return " ".join(filter(None, texts))
    return ""


def _text_of(value: Json) -> str:
    """Return one of several values, such as the path of a file change."""
    return _most_telling(value) if isinstance(value, dict) else str(value)
