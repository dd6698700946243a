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
from sessionmgr.testing.model_server.sample_value import sample_value

_ROLES: Final[Mapping[str, tuple[str, ...]]] = {
    "shell": ("Bash", "exec_command", "shell_command", "run_shell_command", "Shell"),
    "read": ("Read", "read_file", "ReadFile"),
    "write": ("Write", "write_file", "WriteFile"),
    "edit": ("Edit", "replace", "StrReplaceFile"),
    "agent": ("Agent", "Task", "spawn_agent"),
}
_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "command": ("command", "cmd"),
    "path": ("file_path", "path", "absolute_path"),
    "content": ("content", "contents"),
    "old": ("old_string", "old"),
    "new": ("new_string", "new"),
    "prompt": ("prompt", "message"),
}
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
    if tool in offered:
        found = offered[tool]
        text = str(given.get("text", "")) if found.schema is None else None
        return ToolSelection(tool, given, found.namespace, text)
    for name in _ROLES.get(tool, ()):
        if name in offered:
            found = offered[name]
            return ToolSelection(name, _renamed(given, found.schema or {}), found.namespace)
    return _fallback_tool(tool, given, offered) or ToolSelection(tool, given)


def _renamed(given: Mapping[str, Json], schema: Mapping[str, Json]) -> dict[str, Json]:
    properties = schema.get("properties")
    known = properties if isinstance(properties, dict) else {}
    renamed: dict[str, Json] = {}
    for field, value in given.items():
        there = next((each for each in _FIELDS.get(field, ()) if each in known), field)
        renamed[there] = value
    filling = sample_value(schema)
    missing = filling if isinstance(filling, dict) else {}
    return {**{name: each for name, each in missing.items() if name not in renamed}, **renamed}


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
