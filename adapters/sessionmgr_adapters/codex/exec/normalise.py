"""What `codex exec` says beyond an app-server's frames: which thread it is on, and its last word.

Nothing is streamed here: a message comes whole. All else is what `codex.normalise` makes of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sessionmgr.model import ProviderSessionUpdated
from sessionmgr_adapters.codex import frames
from sessionmgr_adapters.codex.failures import failure_of_end
from sessionmgr_adapters.codex.normalise import normalise as of_turn, started
from sessionmgr_adapters.codex.state import State

if TYPE_CHECKING:
    from sessionmgr.model import Event, Failure, Permission
    from sessionmgr_adapters.codex.frames import Frame


class ExecState(State):
    """What must be remembered of a run from one frame to the next."""

    def __init__(self, permission: Permission | None = None, model: str | None = None) -> None:
        super().__init__()
        self.permission = permission
        self.model = model  # it does not say which one it takes
        self.started = True  # its thread is what it tells first: nothing is held back until then
        self.last_turn: frames.TurnEnded | None = None
        self.complaint: frames.TurnError | None = None
        """What went wrong last, whether a turn's end has come of it or not."""

    @property
    def failure(self) -> Failure | None:
        """What its turn has failed with, or what went wrong where no end of a turn came."""
        if self.last_turn is not None:
            return failure_of_end(self.last_turn.turn, self)
        if self.complaint is not None:
            return failure_of_end(frames.Turn(id="", status="failed", error=self.complaint), self)
        return None


def normalise(frame: Frame, state: ExecState) -> list[Event]:
    """Return the events that a frame is; none if it is not about what happens in the run."""
    match frame:
        case frames.ThreadStarted(thread=thread):
            before, state.thread = state.thread, thread.id
            if not before:
                return started(state)
            is_new = before != thread.id
            return [ProviderSessionUpdated(provider_session_id=thread.id)] if is_new else []
        case frames.TurnEnded():
            state.last_turn = frame
        case frames.Failing(will_retry=False, error=error):
            state.complaint = error
        case _:
            pass
    return of_turn(frame, state)
