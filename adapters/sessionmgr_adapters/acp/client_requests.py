"""What an agent does through its client: refusals of it, and what the user has allowed already."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from sessionmgr.adapter import Allow, ApprovalRequest, Deny
from sessionmgr.adapter.kit import resolve_within
from sessionmgr_adapters.acp.tool_calls import DESCRIPTION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sessionmgr.adapter import RunContext
    from sessionmgr.model import Json
    from sessionmgr_adapters.acp.state import AcpState

INVALID_PARAMS: Final = -32602
NOT_FOUND: Final = -32002
DENIED: Final = -32001  # -32000 asks for a login
REQUEST_CANCELLED: Final = -32800


class ClientRefusal(Exception):
    """A request of the agent is refused: the code and the message of the answer."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class GrantedCalls:
    """Tool calls that were allowed on request: what they name needs no second question.

    Each grant serves for one effect of the kind that was asked about, until the call has its
    result. If the question named no input, because the agent tells it only after the answer, the
    present state of the call counts.
    """

    def __init__(
        self, run: RunContext, state: AcpState, is_stopping: Callable[[], bool] = lambda: False
    ) -> None:
        self._run: Final = run
        self._state: Final = state
        self._is_stopping: Final = is_stopping
        """Whether nothing may be done: no turn runs, or it is being cancelled."""
        self._granted: Final[dict[str, ApprovalRequest]] = {}
        self.directories: Final = (run.cwd, *run.directories)

    def add(self, call_id: str, question: ApprovalRequest) -> None:
        """Note that a tool call was allowed."""
        self._granted[call_id] = question

    async def require(self, question: ApprovalRequest, *named: str) -> None:
        """Ask for permission, unless an allowed call names one of `named`.

        Raises:
            ClientRefusal: It was denied, or the turn is being cancelled.
        """
        self._require_turn()
        granted = next((each for each in self._granted if self._covers(each, question, named)), "")
        if granted:
            del self._granted[granted]
            return
        decision = await self._run.ask(question)
        if isinstance(decision, Deny):
            raise ClientRefusal(DENIED, decision.reason or "permission denied")
        assert isinstance(decision, Allow)
        self._require_turn()

    def _require_turn(self) -> None:
        if self._is_stopping():
            raise ClientRefusal(DENIED, "no turn runs, or it is being cancelled")

    def _covers(self, call_id: str, question: ApprovalRequest, named: Sequence[str]) -> bool:
        """Whether an allowed call is about this, too."""
        asked, call = self._granted[call_id], self._state.call(call_id)
        if call is None:  # it has its result
            return False
        is_command = question.effect == "command"
        if asked.effect not in (("command", "other") if is_command else ("edit", "other")):
            return False
        if is_command and asked.effect == "other" and asked.paths:
            return False  # it is about files
        sentences, texts = [asked.reason or ""], [*asked.paths, *self._texts(asked.tool_input)]
        if not _has_input(asked):
            sentences.append(call.title)
            texts += self._texts(call.input)
        return any(
            each in texts or any(_ends_with(sentence, each, question) for sentence in sentences)
            for each in named
        )

    def _texts(self, given: Json) -> Iterator[str]:
        """Yield the texts of an input, also as paths."""
        for value in given.values() if isinstance(given, dict) else ():
            if isinstance(value, str):
                yield value.strip()
                if "\n" not in value:
                    yield resolve_within(self.directories, value)


def _has_input(asked: ApprovalRequest) -> bool:
    """Whether a question has shown an input, and not a description in its place."""
    given = asked.tool_input
    return bool(given.keys() - DESCRIPTION) if isinstance(given, dict) else given is not None


def _ends_with(sentence: str, named: str, question: ApprovalRequest) -> bool:
    """Whether a sentence is what is named, or ends with it: `Run: ls`, `Write /work/a`.

    The end of a command is another command, so that one must be set off.
    """
    sign = r"(?:: ?| ?`)" if question.effect == "command" else r"(?:: ?| ?`| )"
    form = rf"(?:[A-Z]\w*(?: \w+)*{sign})?{re.escape(named)}`?"
    return re.fullmatch(form, sentence.strip()) is not None
