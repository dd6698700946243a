"""A replay of recorded sessions through the decoders and the normaliser."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sessionmgr.wire import RpcErrorResponse, RpcNotification, RpcRequest, RpcResponse
from sessionmgr.wire.json_rpc import decode_rpc
from sessionmgr_adapters.acp.failures import failure_of_turn
from sessionmgr_adapters.acp.frames import (
    AcpFrame,
    AcpRefusal,
    AgentRequest,
    Initialized,
    PromptAccepted,
    PromptEnded,
    SessionOpened,
    SessionUpdate,
)
from sessionmgr_adapters.acp.normalise import begin_turn, close_turn, normalise
from sessionmgr_adapters.acp.state import AcpState
from sessionmgr_adapters.acp.updates import StateUpdate
from sessionmgr_adapters.acp.v1 import V1, ProtocolV1
from sessionmgr_adapters.acp.v2 import V2

if TYPE_CHECKING:
    from pathlib import Path

    from sessionmgr.model import Event, Failure, Json


@dataclass
class RecordedTurn:
    prompt: str
    events: list[Event] = field(default_factory=list["Event"])
    end: PromptEnded | StateUpdate | AcpRefusal | None = None
    failure: Failure | None = None

    def named(self, type_: str) -> list[Event]:
        return [each for each in self.events if each.type == type_]


@dataclass
class AcpReplay:
    frames: list[AcpFrame] = field(default_factory=list["AcpFrame"])
    turns: list[RecordedTurn] = field(default_factory=list[RecordedTurn])
    between: list[Event] = field(default_factory=list["Event"])
    """Events outside turns."""
    states: dict[str, AcpState] = field(default_factory=dict[str, AcpState])

    @property
    def events(self) -> list[Event]:
        return [*self.between, *(event for turn in self.turns for event in turn.events)]

    def turn(self, scenario: str) -> RecordedTurn:
        return next(each for each in self.turns if f"SCN:{scenario} " in each.prompt)


class _Player:
    def __init__(self, error_text: str | None) -> None:
        self._error_text = error_text
        self.replay = AcpReplay()
        self._sent: dict[str, tuple[str, dict[str, Json]]] = {}
        self._turns: dict[str, RecordedTurn] = {}
        self._wire: ProtocolV1 = V1

    def sent(self, message: dict[str, Json]) -> None:
        method, params = message.get("method"), message.get("params")
        if not isinstance(method, str) or not isinstance(params, dict):
            return
        self._sent[json.dumps(message.get("id"))] = (method, params)
        session = str(params.get("sessionId", ""))
        if method in ("session/load", "session/resume"):
            self._state(session).is_replaying = True
        blocks = params.get("prompt")
        if method == "session/prompt" and session in self.replay.states and blocks:
            begin_turn(self._state(session))
            turn = self._turns[session] = RecordedTurn(json.dumps(blocks))
            self.replay.turns.append(turn)

    def received(self, message: dict[str, Json]) -> None:
        for rpc in decode_rpc(json.dumps(message).encode()):
            match rpc:
                case RpcRequest() | RpcNotification():
                    frame = self._wire.decode(rpc, "name")
                    session = self._wire.session_of(rpc) or ""
                    self._note(frame, session)
                    self._end(session, self._state(session).turn.end)
                case RpcResponse(id=id_) | RpcErrorResponse(id=id_):
                    method, params = self._sent.get(json.dumps(id_), ("", {}))
                    self._answer(method, params, self._wire.decode_answer(method, rpc))
                case _:
                    raise AssertionError(rpc)

    def _answer(self, method: str, params: dict[str, Json], frame: AcpFrame) -> None:
        session = str(params.get("sessionId", ""))
        if isinstance(frame, SessionOpened):
            session = frame.session_id or session
            self._state(session).is_replaying = False
        if isinstance(frame, Initialized) and frame.version == 2:
            self._wire = V2
        self._note(frame, session)
        if method == "session/prompt" and not isinstance(frame, PromptAccepted):
            assert isinstance(frame, PromptEnded | AcpRefusal), frame
            self._end(session, frame)

    def _end(self, session: str, end: PromptEnded | StateUpdate | AcpRefusal | None) -> None:
        turn = self._turns.pop(session, None) if end is not None else None
        if turn is None or end is None:
            return
        state = self._state(session)
        turn.events += close_turn(state)
        turn.end, turn.failure = end, failure_of_turn(end, state, self._error_text)

    def _note(self, frame: AcpFrame, session: str) -> None:
        self.replay.frames.append(frame)
        if isinstance(frame, SessionUpdate | AgentRequest):
            session = frame.session_id
        turn = self._turns.get(session)
        events = normalise(frame, self._state(session))
        (self.replay.between if turn is None else turn.events).extend(events)

    def _state(self, session: str) -> AcpState:
        return self.replay.states.setdefault(session, AcpState(session=session))


def play_recording(path: Path, error_text: str | None = None) -> AcpReplay:
    """Play what was sent and received, in its order."""
    player = _Player(error_text)
    for line in path.read_text(encoding="utf-8").splitlines():
        entry: dict[str, Any] = json.loads(line)
        if isinstance(entry["msg"], str):  # noise, sent or received
            continue
        match entry["dir"]:
            case ">":
                player.sent(entry["msg"])
            case "<":
                player.received(entry["msg"])
            case _:
                pass
    return player.replay
