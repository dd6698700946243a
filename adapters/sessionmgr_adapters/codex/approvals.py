"""Approval requests of Codex as the port's `ApprovalRequest`, and decisions as Codex's answers."""

from __future__ import annotations

import shlex
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from msgspec import UNSET, UnsetType

from sessionmgr.adapter import Allow, ApprovalRequest, Deny
from sessionmgr.adapter.kit import resolve_within
from sessionmgr.model import Json
from sessionmgr_adapters.codex.items import (
    PATCH_TOOL,
    SHELL_TOOL,
    FileChangeItem,
    McpToolCallItem,
    bare_script,
    describe_tool_call,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sessionmgr.adapter import Decision
    from sessionmgr.adapter.kit import PeerRequest
    from sessionmgr.wire import RpcId
    from sessionmgr_adapters.codex.items import KnownItem

COMMAND: Final = "item/commandExecution/requestApproval"
EDIT: Final = "item/fileChange/requestApproval"
PERMISSIONS: Final = "item/permissions/requestApproval"
USER: Final = "item/tool/requestUserInput"
ELICITATION: Final = "mcpServer/elicitation/request"
CALL: Final = "item/tool/call"
OLD_COMMAND: Final = "execCommandApproval"
OLD_EDIT: Final = "applyPatchApproval"
PROTECTED_DIRECTORIES: Final = frozenset({".git", ".codex", ".agents"})
"""Directories whose contents Codex protects, even where commands may write."""
APPROVALS: Final = frozenset({COMMAND, EDIT, PERMISSIONS, USER, ELICITATION, OLD_COMMAND, OLD_EDIT})


def request_name(id_: RpcId) -> str:
    """Return the name of a request; the ids 1 and "1" have different names."""
    return repr(id_)


def approval_request(
    asking: PeerRequest, calls: Mapping[str, KnownItem], cwd: str, directories: Sequence[str]
) -> ApprovalRequest:
    """Return the approval request of a run that may work in `directories`."""
    params = asking.params
    call_id = _call_id(params)
    reason = _text(params.get("reason"))
    match asking.method:
        case "item/commandExecution/requestApproval" | "execCommandApproval":
            return ApprovalRequest(
                tool_name=SHELL_TOOL,
                tool_input=_command(params),
                tool_call_id=call_id,
                reason=reason,
                effect="network" if params.get("networkApprovalContext") else "command",
                tool_cwd=_directory(params, cwd, directories),
            )
        case "item/fileChange/requestApproval" | "applyPatchApproval":
            return _edit(params, calls.get(call_id or ""), cwd, directories)
        case "item/permissions/requestApproval":
            return ApprovalRequest(
                tool_name="request_permissions",
                tool_input=params.get("permissions"),
                tool_call_id=call_id,
                reason=reason,
            )
        case "item/tool/requestUserInput":
            return ApprovalRequest(
                tool_name="request_user_input",
                tool_input={"questions": params.get("questions")},
                tool_call_id=call_id,
            )
        case _:
            return _elicitation(params, calls)


def _call_id(params: dict[str, Json]) -> str | None:
    return _text(params.get("itemId")) or _text(params.get("callId"))


def _edit(
    params: dict[str, Json], item: KnownItem | None, cwd: str, directories: Sequence[str]
) -> ApprovalRequest:
    """Return the approval request for a patch."""
    paths = tuple(resolve_within(directories, each) for each in _patched_files(item, params, cwd))
    return ApprovalRequest(
        tool_name=PATCH_TOOL,
        tool_input=describe_tool_call(item)[1] if isinstance(item, FileChangeItem) else params,
        tool_call_id=_call_id(params),
        reason=_text(params.get("reason")),
        effect="other" if _is_protected(directories, paths) else "edit",
        paths=paths,
    )


def _elicitation(params: dict[str, Json], calls: Mapping[str, KnownItem]) -> ApprovalRequest:
    """Return the approval request of an MCP server, or of Codex for one of its tools."""
    server, reason = params.get("serverName"), _text(params.get("message"))
    meta = params.get("_meta")
    if not isinstance(meta, dict) or meta.get("codex_approval_kind") != "mcp_tool_call":
        return ApprovalRequest(tool_name=f"mcp__{server}", tool_input=params, reason=reason)
    tool = meta.get("tool_name")
    named = (
        each.id
        for each in calls.values()
        if isinstance(each, McpToolCallItem) and (each.server, each.tool) == (server, tool)
    )
    return ApprovalRequest(
        tool_name=f"mcp__{server}__{tool}",
        tool_input=meta.get("tool_params"),
        tool_call_id=next(named, None),
        reason=reason,
    )


def _command(params: dict[str, Json]) -> Json:
    command = params.get("command")
    if isinstance(command, list):
        command = shlex.join(map(str, command))
    found: dict[str, Json] = {
        "command": bare_script(command) if isinstance(command, str) else None,
        "cwd": params.get("cwd"),
    }
    for name in ("additionalPermissions", "networkApprovalContext"):
        if params.get(name) is not None:
            found[name] = params[name]
    return found


def _directory(params: dict[str, Json], cwd: str, directories: Sequence[str]) -> str:
    """Return the directory of a command. The model chooses it, inside or outside the sandbox."""
    named = params.get("cwd")
    if not isinstance(named, str) or not named:
        return ""
    return resolve_within(directories, str(PurePath(cwd) / named))


def _patched_files(item: KnownItem | None, params: dict[str, Json], cwd: str) -> list[str]:
    """Return the files that a patch changes; empty if they are not known for certain."""
    if not isinstance(item, FileChangeItem) or not item.changes:
        return []
    root = params.get("grantRoot")
    paths = [root] if isinstance(root, str) else []
    for change in item.changes:
        paths.append(change.path)
        match change.kind:
            case {"move_path": str(path)}:
                paths.append(path)
            case _:
                pass
    whole = [str(PurePath(cwd) / path) for path in paths]
    return [] if any("\0" in path for path in whole) else whole


def _is_protected(directories: Sequence[str], paths: Sequence[str]) -> bool:
    """Whether a patch changes protected files: programs may run what those contain."""
    return any(
        not PROTECTED_DIRECTORIES.isdisjoint(PurePath(path).relative_to(directory).parts)
        for path in paths
        for directory in directories
        if PurePath(path).is_relative_to(directory)
    )


def is_expressible(asking: PeerRequest, question: ApprovalRequest, decision: Decision) -> bool:
    """Whether Codex's protocol can express a decision: a call runs unchanged, or not at all."""
    if isinstance(decision, Deny) or decision.tool_input in (UNSET, question.tool_input):
        return True
    is_form = asking.method == ELICITATION and not isinstance(asking.params.get("_meta"), dict)
    return is_form or asking.method in {USER, PERMISSIONS}


def verdict(asking: PeerRequest, decision: Decision) -> Json:
    """Return a decision in Codex's protocol."""
    allowed = isinstance(decision, Allow)
    stop = not isinstance(decision, Allow) and decision.stop
    match asking.method:
        case "item/permissions/requestApproval":
            return {"permissions": _granted_permissions(asking, decision), "scope": "turn"}
        case "item/tool/requestUserInput":
            return {"answers": _answers(decision)}
        case "mcpServer/elicitation/request":
            content = decision.tool_input if isinstance(decision, Allow) else None
            if isinstance(asking.params.get("_meta"), dict):
                content = None  # a tool call is allowed unchanged, or denied
            action = "accept" if allowed else "cancel" if stop else "decline"
            return {"action": action, "content": content if isinstance(content, dict) else None}
        case "execCommandApproval" | "applyPatchApproval":
            return {"decision": "approved" if allowed else "abort" if stop else "denied"}
        case _:
            return {"decision": "accept" if allowed else "cancel" if stop else "decline"}


def _granted_permissions(asking: PeerRequest, decision: Decision) -> Json:
    """Return the permissions that a decision grants: those of its own input, or those requested."""
    if isinstance(decision, Deny):
        return {}
    given = decision.tool_input
    return asking.params.get("permissions") if isinstance(given, UnsetType) else given


def _answers(decision: Decision) -> dict[str, Json]:
    """Return the answers in a decision, by the names of the questions."""
    given = decision.tool_input if isinstance(decision, Allow) else None
    answers = given.get("answers") if isinstance(given, dict) else None
    if not isinstance(answers, dict):
        return {}
    return {
        name: {"answers": list(map(str, each)) if isinstance(each, list) else [str(each)]}
        for name, each in answers.items()
    }


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) else None
