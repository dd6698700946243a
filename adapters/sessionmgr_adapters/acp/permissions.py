"""Requests for permission: what they ask for, in our terms, and which option answers them.

An option is chosen by its kind and never by its place. Options that count for later calls
(`…_always`) are never chosen, because some agents store them.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from sessionmgr.adapter import ApprovalRequest, Deny
from sessionmgr.adapter.kit import is_protected, resolve_within
from sessionmgr_adapters.acp.tool_calls import request_input

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from msgspec import UnsetType

    from sessionmgr.adapter import Decision, Effect
    from sessionmgr.model import Json
    from sessionmgr_adapters.acp.frames import PermissionOption, PermissionRequest
    from sessionmgr_adapters.acp.tool_calls import AcpToolCall
    from sessionmgr_adapters.acp.updates import ToolLocation

_PATHS: Final = ("path", "file_path", "filePath", "absolute_path", "notebook_path")
ALLOW: Final = "allow_once"
REJECT: Final = "reject_once"
_EFFECTS: Final[dict[str, Effect]] = {
    "read": "read",
    "search": "read",
    "edit": "edit",
    "execute": "command",
    "fetch": "network",
}
"""The effects of the kinds of tools. Files that are moved or deleted are no edits."""


def is_question(request: PermissionRequest) -> bool:
    """Whether a request asks the user to choose, and so is none for permission."""
    return sum(each.kind == ALLOW for each in request.options) > 1


def permission_question(
    request: PermissionRequest,
    call: AcpToolCall | None,
    directories: Sequence[str],
    edit_tools: Collection[str] = (),
) -> ApprovalRequest:
    """Return a request as the question to the run; relative paths start at the first directory.

    The `edit_tools` are known to write only the files that their calls show.
    """
    title = request.title or (call.title if call is not None else "") or "permission"
    if is_question(request):
        choices: list[Json] = [
            {"id": each.option_id, "name": each.name, "kind": each.kind} for each in request.options
        ]
        return ApprovalRequest(
            tool_name=(call.name if call is not None else "") or "question",
            tool_input={"question": title, "options": choices},
            tool_call_id=None if call is None else call.id,
            reason=request.description or title,
            effect="question",
        )
    if call is None or request.tool_call is None:
        command = request.command
        return ApprovalRequest(
            tool_name=title,
            tool_input=request.subject if command is None else {"command": command},
            reason=request.description,
            effect="other" if command is None else "command",
        )
    asked, kind = request.tool_call, call.kind or ""
    tool_input = request_input(asked, call)
    shown = [*_shown_paths(call.locations, call.content)]
    shown += _shown_paths(asked.locations or (), asked.content or ())
    if shown and call.tool_name in edit_tools:
        kind, shown = "edit", [*shown, *_input_paths(tool_input)]
    named = [*dict.fromkeys(shown)] or _input_paths(tool_input)
    paths = tuple(dict.fromkeys(resolve_within(directories, each) for each in named))
    return ApprovalRequest(
        tool_name=call.tool_name,
        tool_input=tool_input,
        tool_call_id=call.id,
        reason=request.description or title,
        effect=_effect(kind, named, paths, directories),
        paths=paths,
    )


def _effect(
    kind: str, named: Sequence[str], paths: Sequence[str], directories: Sequence[str]
) -> Effect:
    effect = _EFFECTS.get(kind, "other")
    if effect == "edit" and any(
        is_protected(each, directories) or not PurePath(each).is_absolute()
        for each in (*named, *paths)
    ):
        return "other"  # it may run something later, or its place is not certain
    return effect


def _input_paths(shown: Json) -> list[str]:
    """Return the paths in the input of a tool, of an agent that reports no locations."""
    given = shown if isinstance(shown, dict) else {}
    return [each for name in _PATHS if isinstance(each := given.get(name), str)]


def _shown_paths(locations: Iterable[ToolLocation], content: Iterable[Json]) -> Iterator[str]:
    """Yield the files that a call, or the request for it, shows."""
    for each in locations:
        yield each.path
    for item in content:
        match item:
            case {"type": "diff", "path": str(path)}:
                yield path
            case _:
                pass


def chosen_option(request: PermissionRequest, decision: Decision) -> str | None:
    """Return the option that expresses a decision; None if there is none: it is then cancelled."""
    if isinstance(decision, Deny):
        return _option_of_kind(request.options, REJECT)
    if is_question(request):
        return _answered_option(request.options, decision.tool_input)
    return _option_of_kind(request.options, ALLOW)


def unchosen_option(request: PermissionRequest, tool: str) -> str:
    """Return the warning that no option expresses what was allowed, and what would."""
    message = f"{tool}: no option of the agent is what was decided; it was denied"
    if not is_question(request):
        return message
    able = [f"{each.option_id!r} ({each.name})" for each in request.options if each.kind == ALLOW]
    return f"{message}; let approve answer with the tool_input {' or '.join(able)}"


def _option_of_kind(options: Sequence[PermissionOption], kind: str) -> str | None:
    return next((each.option_id for each in options if each.kind == kind), None)


def _answered_option(options: Sequence[PermissionOption], answer: Json | UnsetType) -> str | None:
    """Return the option that an answer names by its id or its name."""
    if isinstance(answer, dict):
        answers = answer.get("answers")
        if isinstance(answers, dict) and len(answers) == 1:
            [answer] = answers.values()
        else:
            answer = answer.get("option")
    ids = [each.option_id for each in options if answer in (each.option_id, each.name)]
    return ids[0] if ids else None
