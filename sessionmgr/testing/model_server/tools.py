"""The choice of the offered tool that a script means, and of its field names.

A script may call a tool by its own name. Or it names the tool's purpose, with field names that are
the same for all agents:

    shell(command)   read(path)   write(path, content)   edit(path, old, new)   agent(prompt)

The tool is then found among those that the request offers; its fields are renamed to those of its
schema, and missing required fields are filled in. An agent without a tool to read, write or edit
gets a patch or a command instead.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from sessionmgr.model import Json
from sessionmgr.testing.model_server.request import ToolOffer
from sessionmgr.testing.model_server.sample_value import SAMPLE_TEXT, sample_value

_ROLES: Final[Mapping[str, tuple[str, ...]]] = {
    "shell": (
        "Bash",
        "exec_command",
        "shell_command",
        "run_shell_command",
        "Shell",
        "bash",
        "shell",
    ),
    "read": ("Read", "read_file", "ReadFile", "read", "view"),
    "write": ("Write", "write_file", "WriteFile", "write", "create"),
    "edit": ("Edit", "replace", "StrReplaceFile", "edit"),
    "agent": ("Agent", "Task", "spawn_agent", "task", "invoke_agent", "delegate"),
}
_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "command": ("command", "cmd"),
    "path": ("file_path", "path", "absolute_path", "filePath"),
    "content": ("content", "contents", "file_text"),
    "old": ("old_string", "old", "old_str", "oldString", "before"),
    "new": ("new_string", "new", "new_str", "newString", "after"),
    "prompt": ("prompt", "message", "instructions"),
}
_FILLED: Final[Mapping[str, Json]] = {
    "subagent_type": "general",
    "agent_name": "generalist",
}
"""Values of required fields whose schema does not list the possible ones."""
_EXTENSION: Final = "developer__"
"""Goose puts the name of the extension before those of its tools."""
_PATCH: Final = "apply_patch"
_PROGRAM: Final = "exec"
"""A tool that takes a program, which calls the other tools."""


class ToolSelection(msgspec.Struct, frozen=True):
    """A tool and its input: an object, or a text for a tool without a schema."""

    name: str
    input: Mapping[str, Json]
    namespace: str | None = None
    text: str | None = None


def choose_tool(tool: str, given: Mapping[str, Json], offers: Sequence[ToolOffer]) -> ToolSelection:
    """Return the call of an offered tool for the script's `tool`.

    A tool that is not offered is called all the same, as models do too; some agents offer tools
    only after a search for them.
    """
    offered = {offer.name: offer for offer in offers}
    if tool in offered and tool not in _ROLES:
        found = offered[tool]
        text = str(given.get("text", "")) if found.schema is None else None
        return ToolSelection(tool, given, found.namespace, text)
    for name in _ROLES.get(tool, ()):
        offer = offered.get(name) or offered.get(f"{_EXTENSION}{name}")
        if offer is not None:
            return ToolSelection(offer.name, _renamed(given, offer.schema or {}), offer.namespace)
    return _fallback_tool(tool, given, offered) or ToolSelection(tool, given)


def _renamed(given: Mapping[str, Json], schema: Mapping[str, Json]) -> dict[str, Json]:
    properties = schema.get("properties")
    known = properties if isinstance(properties, dict) else {}
    renamed: dict[str, Json] = {}
    for field, value in given.items():
        there = next((each for each in _FIELDS.get(field, ()) if each in known), field)
        renamed[there] = value
    if "edit" in known and "old" in renamed:  # Kimi CLI has the texts in an object of their own
        renamed["edit"] = {name: renamed.pop(name) for name in ("old", "new") if name in renamed}
    filling = sample_value(schema)
    missing = filling if isinstance(filling, dict) else {}
    named = {
        name: _FILLED.get(name, each) if each == SAMPLE_TEXT else each
        for name, each in missing.items()
    }
    return {**{name: each for name, each in named.items() if name not in renamed}, **renamed}


def _fallback_tool(
    tool: str, given: Mapping[str, Json], offered: Mapping[str, ToolOffer]
) -> ToolSelection | None:
    """Return another call for a purpose that no offered tool has."""
    path = str(given.get("path", ""))
    if tool == "read":
        command = f"cat {shlex.quote(path)}"
        return choose_tool("shell", {"command": command}, tuple(offered.values()))
    if tool in ("write", "edit") and _PATCH in offered:
        return ToolSelection(_PATCH, given, text=_patch(path, given))
    if tool == "write":
        command = f"printf %s {shlex.quote(str(given.get('content', '')))} > {shlex.quote(path)}"
        return choose_tool("shell", {"command": command}, tuple(offered.values()))
    if tool == "shell" and _PROGRAM in offered:
        input = json.dumps({"cmd": given.get("command", "")})  # noqa: A001
        return ToolSelection(_PROGRAM, given, text=f"text(await tools.exec_command({input}))")
    return None


def _patch(path: str, given: Mapping[str, Json]) -> str:
    if "content" in given:
        added = str(given["content"]).splitlines()
        lines = [f"*** Add File: {path}", *(f"+{line}" for line in added)]
    else:
        old, new = str(given.get("old", "")), str(given.get("new", ""))
        lines = [f"*** Update File: {path}", "@@"]
        lines += [*(f"-{line}" for line in old.splitlines())]
        lines += [*(f"+{line}" for line in new.splitlines())]
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch"])
