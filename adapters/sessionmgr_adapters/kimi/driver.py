"""Driver of one run: initializes the process, sets its plan mode, prompts, and reads the turn."""

from __future__ import annotations

import base64
from functools import partial
from typing import TYPE_CHECKING, Final

import trio
from msgspec.structs import replace

from sessionmgr.adapter.kit import (
    ConversationRun,
    FollowUps,
    FunctionTools,
    ImageRefusedError,
    JsonRpcCaller,
    PeerRequest,
    RpcAnswer,
    RpcCall,
    RpcOutgoing,
    config_failure,
    read_images,
)
from sessionmgr.model import (
    ErrorOccurred,
    Failure,
    FailureKind,
    PermissionMode,
    PolicyViolation,
    RunStarted,
    TurnCompleted,
)
from sessionmgr.wire import NoiseLine
from sessionmgr_adapters.kimi.failures import answer_failure, refusal_failure
from sessionmgr_adapters.kimi.frames import KimiEvent, KimiFrame, fields_of
from sessionmgr_adapters.kimi.installation import (
    ARCHIVED,
    INSTALL,
    last_message,
    session_directory,
    version_fault,
)
from sessionmgr_adapters.kimi.launch import YOLO, is_command
from sessionmgr_adapters.kimi.normalise import KimiState, end_turn, normalise
from sessionmgr_adapters.kimi.options import KimiOptions
from sessionmgr_adapters.kimi.request_handler import KimiRequestHandler

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sessionmgr.adapter import RunContext
    from sessionmgr.model import Json
    from sessionmgr_adapters.kimi.sdk import KimiProcess

PROMPT: Final = "prompt"
TASKS_END: Final = "commands in the background end with the run: Kimi does not report their ends"


class KimiDriver(ConversationRun[RpcOutgoing, KimiFrame]):
    """Driver of one run on one process."""

    process: KimiProcess
    """Set before the conversation is opened."""

    def __init__(self, run: RunContext) -> None:
        super().__init__(run)
        self.state: Final = KimiState()
        self.failure: Failure | None = None
        """Why the run fails, whatever the turn's end."""
        self.is_archived = False
        """Whether the program has said that it is not maintained any more."""
        self.prompted = False
        """Whether the prompt was sent."""
        self.answer: RpcAnswer | None = None
        """The answer to the prompt, which ends the turn."""
        functions = FunctionTools(KimiOptions.of(run.options).tools)
        self._requests: Final = KimiRequestHandler(self, self.state, functions)
        self._follow_ups: Final = FollowUps(run)
        self._steered: Final[list[str]] = []
        """The messages that were accepted and have not reached the model, in their order."""
        self._calls: Final = JsonRpcCaller(self._send, lambda _: False)

    # --- from the start to the end of the turn ---------------------------------------------------

    async def begin(self) -> None:
        """Configure the process, and send the prompt."""
        run, content = self.run, None
        try:
            content = await _content(run)
            self.failure = await self._configure()
        except ImageRefusedError as error:
            self.failure = config_failure(str(error))
        if self.failure is not None or run.cancelling is not None:
            self.finish()
            return
        self.state.start = RunStarted(
            provider_session_id=self.process.spec.session,
            model=run.model,
            cwd=run.cwd,
            cli_version=self.process.version,
        )
        self.prompted = True
        await self.conversation.send(RpcCall(0, PROMPT, {"user_input": content}))

    async def _configure(self) -> Failure | None:
        process, plans = self.process, self.run.permission.asked is PermissionMode.PLAN
        if process.version is None:
            answer = await self._calls.call("initialize", process.spec.introduction)
            if answer.refusal is not None:
                return refusal_failure(answer.refusal, phase="start")
            found = fields_of(answer)
            version = str(_field(found.get("server"), "version") or "unknown")
            tools, why = _field(found.get("external_tools"), "rejected"), version_fault(version)
            if why is None and tools:
                why = f"options.tools: Kimi refused {tools}; give them other names or schemas"
            if why is not None:
                return config_failure(why)
            process.version = version
        # A session that is resumed may be in the plan mode of an earlier run.
        answer = await self._calls.call("set_plan_mode", {"enabled": plans})
        if fields_of(answer).get("plan_mode") is plans:
            return None
        message = (
            f"Kimi did not set its plan mode to {plans}: {answer.refusal or fields_of(answer)}"
        )
        return Failure(kind=FailureKind.PERMISSION_REFUSED, message=message, phase="start")

    def _end_turn(self, answer: RpcAnswer) -> None:
        status, spec = fields_of(answer).get("status"), self.process.spec
        place = session_directory(spec.command.env, spec.command.cwd, spec.session)
        whole = last_message(place) if status == "finished" else None
        self.emit(*end_turn(self.state, status, whole))
        self.emit(TurnCompleted(stop_reason=str(status or "error")))
        unread = self._follow_ups.undelivered
        is_whole = status == "finished" and self.failure is None and self.run.cancelling is None
        if is_whole and unread and not is_command(next(iter(unread.values()))):
            self.start(self._prompt_again, unread)
            return
        if self.state.has_tasks:
            why = Failure(kind=FailureKind.CAPABILITY_MISSING, message=TASKS_END, phase="turn")
            self.emit(ErrorOccurred(failure=why, severity="warning"))
        self.answer = answer
        self.failure = self.failure or answer_failure(answer, has_output=self.state.has_output)
        self.finish()

    async def _prompt_again(self, unread: Mapping[str, str]) -> None:
        """Start a further turn for messages that Kimi accepted as its turn ended, and discards."""
        if self.run.cancelling is not None:
            await trio.lowlevel.checkpoint()
            self.finish()
            return
        for name in unread:
            self._steered.remove(name)
            self._follow_ups.mark_heard(name)
        prompt: Json = "\n\n".join(unread.values())
        await self.conversation.send(RpcCall(0, PROMPT, {"user_input": prompt}))

    # --- frames ----------------------------------------------------------------------------------

    def handle_frames(self, frames: Sequence[KimiFrame]) -> None:
        """Emit events, and act on answers and requests."""
        state = self.state
        for frame in frames:
            if self.prompted or not isinstance(frame, KimiEvent):
                self.emit(*normalise(frame, state), blobs=state.images.collect())
            match frame:
                case RpcAnswer(method=method):
                    if method == PROMPT:
                        self._end_turn(frame)
                    else:
                        self._calls.resolve(frame)
                case PeerRequest():
                    self._requests.handle(frame)
                case KimiEvent("ApprovalResponse", {"request_id": str(name)}):
                    self._requests.withdraw(name)
                case KimiEvent("SteerInput") if self._steered:
                    self._follow_ups.mark_heard(self._steered.pop(0))
                case NoiseLine(line=line):
                    self.is_archived = self.is_archived or ARCHIVED.encode() in line
                case _:
                    pass
        self._check_mode()

    def _check_mode(self) -> None:
        """End a run in which a tool has acted without the request that its mode requires."""
        tool, permission = self.state.unasked, self.run.permission
        is_free = permission.effective == YOLO
        plans = permission.asked is PermissionMode.PLAN and tool != "Shell"  # writes of its plan
        if tool is None or is_free or plans or self.failure is not None:
            return
        message = f"Kimi used {tool} without asking, although its mode is {permission.asked}"
        self.failure = Failure(kind=FailureKind.PERMISSION_REFUSED, message=message, phase="turn")
        self.emit(PolicyViolation(rule="permission_mode", detail=message))
        self.start(self.interrupt)

    # --- the end, and messages to the turn -------------------------------------------------------

    async def interrupt(self) -> None:
        """Ask the agent to end its turn; before there is one, end the conversation."""
        if self.prompted:
            await super().interrupt()
        else:
            await trio.lowlevel.checkpoint()
            self.finish()

    async def add(self, content: str, message_id: str) -> bool:
        """Offer another message to the turn, and return whether the agent accepted it."""
        if not self.prompted or self.is_over or self.run.cancelling is not None:
            await trio.lowlevel.checkpoint()
            return False
        steer = partial(self._steer, message_id, content)
        return await self._follow_ups.offer(message_id, content, steer)

    async def _send(self, call: RpcCall) -> None:
        await self.conversation.send(call)

    async def _steer(self, message_id: str, content: str) -> None:
        self._steered.append(message_id)
        answer = await self._calls.call("steer", {"user_input": content})
        if answer.refusal is None:
            self._follow_ups.accept(message_id)
        else:
            self._steered.remove(message_id)
            self._follow_ups.refuse(message_id)

    def on_leave(self) -> None:
        """Release the messages that wait for an answer."""
        self._follow_ups.end()

    def lost_failure(self, failure: Failure) -> Failure:
        """Return the failure for a process that exited before the run ended."""
        if self.is_archived:
            return config_failure(f"this release of kimi-cli is {ARCHIVED}; {INSTALL}")
        has_begun = self.prompted and self.state.start is None  # then Kimi has stored the prompt
        phase = "turn" if has_begun else "start"
        return replace(failure, phase=phase, retryable=has_begun, resumable=has_begun)


async def _content(run: RunContext) -> Json:
    """Return the prompt with its images."""
    images = await read_images(run.images, run.cwd)
    if not images:
        return run.prompt
    content: list[Json] = [{"type": "text", "text": run.prompt}]
    for each in images:
        url = f"data:{each.media_type};base64,{base64.b64encode(each.data).decode()}"
        content.append({"type": "image_url", "image_url": {"url": url}})
    return content


def _field(value: Json, name: str) -> Json:
    return value.get(name) if isinstance(value, dict) else None
