"""Handler of Kimi's requests in one run: approvals, questions, calls of functions, hooks."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from sessionmgr.adapter import Allow, ApprovalRequest, Deny
from sessionmgr.adapter.kit import (
    TOO_MANY_REQUESTS,
    FunctionTools,
    PeerReply,
    PeerRequest,
    RequestHandler,
    RpcOutgoing,
    ToolOutcome,
    is_protected,
    resolve_within,
)
from sessionmgr.model import Json, UnreadableJson, parse_json
from sessionmgr_adapters.kimi.frames import KimiFrame

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessionmgr.adapter import Effect
    from sessionmgr.adapter.kit import ConversationRun
    from sessionmgr_adapters.kimi.normalise import KimiState

_EDITS: Final = frozenset({"WriteFile", "StrReplaceFile"})


class KimiRequestHandler(RequestHandler[RpcOutgoing, KimiFrame]):
    """Answers the requests of one run."""

    def __init__(
        self,
        driver: ConversationRun[RpcOutgoing, KimiFrame],
        state: KimiState,
        functions: FunctionTools,
    ) -> None:
        super().__init__(driver, takes_input=False)
        self._state: Final = state
        self._functions: Final = functions

    def handle(self, request: PeerRequest) -> None:
        """Answer a request in a task of its own, because Kimi may withdraw it."""
        run, name = self._driver.run, str(request.id)
        if request.method == "ApprovalRequest":
            directories = (run.cwd, *run.directories)
            self.ask(name, approval_request(request.params, self._state, directories))
            return
        refuse = partial(self._send, PeerReply(name, error=TOO_MANY_REQUESTS))
        self.serve(name, partial(self._answer, request), refuse)

    async def _answer(self, request: PeerRequest) -> None:
        name, error = str(request.id), None
        result: dict[str, Json] | None = None
        match request.method:
            case "QuestionRequest":
                result = {"request_id": name, "answers": await self._ask_user(request)}
            case "ToolCallRequest":
                result = {"tool_call_id": name, "return_value": await self._call(request)}
            case "HookRequest":
                result = {"request_id": name, "action": "allow", "reason": ""}
            case kind:
                error = f"this host does not serve {kind!r}"
        await self._send(PeerReply(name, result, error))

    async def _send(self, reply: PeerReply) -> None:
        await self._driver.conversation.send(reply)

    async def _ask_user(self, request: PeerRequest) -> dict[str, Json]:
        """Ask the user. A permission without answers, as a mode gives it, answers nothing."""
        call, asked = request.params.get("tool_call_id"), request.params.get("questions")
        tool, _ = self._state.tools.get(str(call), ("AskUserQuestion", None))
        question = ApprovalRequest(
            tool_name=tool, tool_input={"questions": asked}, tool_call_id=str(call)
        )
        decision = await self._driver.run.ask(question)
        given = decision.tool_input if isinstance(decision, Allow) else None
        answers = given.get("answers") if isinstance(given, dict) else None
        texts = answers.items() if isinstance(answers, dict) else ()
        return {name: str(each) for name, each in texts}

    async def _call(self, request: PeerRequest) -> dict[str, Json]:
        """Call one of the caller's functions."""
        name, text = request.params.get("name"), request.params.get("arguments")
        found = parse_json(str(text or "{}").encode(errors="replace"))
        given = None if isinstance(found, UnreadableJson) else found
        tool = self._functions.find_tool(name)
        question = ApprovalRequest(
            tool_name=str(name), tool_input=given, tool_call_id=str(request.id), effect="other"
        )
        decision = await self._functions.decide(self._driver.run, tool, question)
        if isinstance(decision, Deny):
            outcome = ToolOutcome(decision.reason or "It was not allowed.", failed=True)
        else:
            outcome = await self._functions.call(name, given)
        message = outcome.text if outcome.failed else ""
        value: dict[str, Json] = {"is_error": outcome.failed, "output": outcome.text}
        return {**value, "message": message, "display": []}


def approval_request(
    payload: dict[str, Json], state: KimiState, directories: Sequence[str]
) -> ApprovalRequest:
    """Return the approval request of a run that may work in `directories`."""
    tool, call = str(payload.get("sender")), str(payload.get("tool_call_id"))
    shown = payload.get("display")
    blocks = [each for each in shown if isinstance(each, dict)] if isinstance(shown, list) else []
    # The display shows the call of a sub-agent, or one whose arguments have not arrived.
    _, given = state.tools.get(call, ("", blocks[0] if blocks else None))
    path = given.get("path") if isinstance(given, dict) else None
    named = [each.get("path") for each in blocks if each.get("type") == "diff"] or [path]
    found = [str(each) for each in named if each] if tool in _EDITS else []
    paths = tuple(resolve_within(directories, each) for each in found)
    effect: Effect = "command" if tool == "Shell" else "other"
    if paths and not any(is_protected(each, directories) for each in (*found, *paths)):
        effect = "edit"
    return ApprovalRequest(
        tool_name=tool,
        tool_input=given,
        tool_call_id=call,
        reason=str(payload.get("description") or payload.get("action") or "") or None,
        effect=effect,
        paths=paths,
    )
