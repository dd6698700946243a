"""Which of the tools on offer a script means, and what its fields are called there.

A script may call a tool by its own name. Or it says what the tool is for, and gives the fields
names that are the same for all agents:

    shell(command)   read(path)   write(path, content)   edit(path, old, new)   agent(prompt)

Then the tool is looked for among those that the request offers, its fields are renamed to what its
schema calls them, and required fields that the script does not know are filled in. An agent that
has no tool to read, write or edit is told to do so by a patch or a command.
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
"""A tool that takes a program, which calls the others."""


class ToolSelection(msgspec.Struct, frozen=True):
    """A tool, and what it is called with: an object, or a text where it takes no other."""

    name: str
    input: Mapping[str, Json]
    namespace: str | None = None
    text: str | None = None


def choose_tool(tool: str, given: Mapping[str, Json], offers: Sequence[ToolOffer]) -> ToolSelection:
    """Return what a script calls when it calls `tool`.

    One that nobody offers is called all the same. Models do that too, and some agents offer tools
    only when they are searched for.
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
    """Say in another way what no tool on offer is for."""
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
