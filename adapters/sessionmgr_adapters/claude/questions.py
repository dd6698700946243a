"""What Claude Code asks before it uses a tool, in the words of the port."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from sessionmgr.adapter import ApprovalRequest
from sessionmgr.adapter.kit.paths import as_seen_from
from sessionmgr_adapters.claude.protected_paths import is_protected

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessionmgr.adapter.question import Effect
    from sessionmgr.model import Json
    from sessionmgr_adapters.claude.frames import Ask

_EFFECTS: Final[dict[str, Effect]] = {
    "Read": "read",
    "Glob": "read",
    "Grep": "read",
    "LS": "read",
    "NotebookRead": "read",
    "Edit": "edit",
    "MultiEdit": "edit",
    "Write": "edit",
    "NotebookEdit": "edit",
    "Bash": "command",
    "PowerShell": "command",
    "Monitor": "command",
    "WebFetch": "network",
    "WebSearch": "network",
}
_PATHS: Final = ("file_path", "notebook_path", "path")
SAFETY_CHECK: Final = "safetyCheck"
"""Why Claude Code asks in any mode: it may be an edit, and will have other effects one day."""


def effect_of(tool_name: str) -> Effect:
    """Return what a tool does, as far as its name says."""
    return _EFFECTS.get(tool_name, "other")


def approval_request(ask: Ask, directories: Sequence[str]) -> ApprovalRequest:
    """Return the request whether a run that may work in `directories` may use a tool.

    The first of `directories` is the run's own: relative paths are resolved against it.
    """
    effect = effect_of(ask.tool_name)
    said = _paths(ask.input)
    paths = tuple(as_seen_from(directories, each) for each in said)
    if effect == "edit" and (
        ask.decision_reason_type == SAFETY_CHECK
        # Claude Code resolves these against the directory in which its last command ended.
        or any(not PurePath(each).is_absolute() for each in said)
        or any(is_protected(each, directories) for each in (*said, *paths))
    ):
        effect = "other"
    return ApprovalRequest(
        tool_name=ask.tool_name,
        tool_input=ask.input,
        tool_call_id=ask.tool_use_id,
        reason=ask.decision_reason or ask.description,
        effect=effect,
        paths=paths,
    )


def _paths(tool_input: Json) -> tuple[str, ...]:
    if not isinstance(tool_input, dict):
        return ()
    found = (tool_input.get(name) for name in _PATHS)
    return tuple(each for each in found if isinstance(each, str))
