"""Scripts for the scripted provider: the steps of an agent, as plain data.

A script is a list of steps; in JSON, each is an object whose `do` names it:

    [{"do": "say", "text": "Hello", "deltas": 3}, {"do": "wait", "seconds": 2}, {"do": "finish"}]

or an object with `steps` and other fields of `Script`. A script without an end finishes with stop
reason `end_turn`. All times are seconds of trio's clock.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal, TypeAlias

import msgspec

from sessionmgr.adapter import Effect
from sessionmgr.model import FailureKind, Json, KnownEvent, Provenance


def _tag(class_name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", class_name).lower()


class ScriptMove(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag=_tag,
    tag_field="do",
    forbid_unknown_fields=True,
):
    """The base of all steps."""


class Say(ScriptMove, frozen=True, kw_only=True):
    """Send a message; before the whole message, in `deltas` pieces, with a `pause` before each."""

    text: str
    deltas: int = 0
    pause: float = 0.0
    whole: bool = True
    """False: only the pieces are sent, never the whole message."""


class Think(ScriptMove, frozen=True, kw_only=True):
    """Send reasoning."""

    text: str
    deltas: int = 0


class Tool(ScriptMove, frozen=True, kw_only=True):
    """Call a tool."""

    name: str
    input: Json = None
    output: Json = None
    prints: tuple[str, ...] = ()
    fails: bool = False
    takes: float = 0.0


class Ask(ScriptMove, frozen=True, kw_only=True):
    """Ask for approval of a tool call, and call it if allowed; a denied call has failed."""

    tool: str
    input: Json = None
    output: Json = None
    effect: Effect = "other"
    paths: tuple[str, ...] = ()
    reason: str | None = None
    id: str = ""
    withdraw_after: float | None = None
    """Seconds after which the request is withdrawn if it has no answer."""


class Wait(ScriptMove, frozen=True, kw_only=True):
    """Wait, without any event."""

    seconds: float


class Hang(ScriptMove, frozen=True, kw_only=True):
    """Wait for ever."""


class Alive(ScriptMove, frozen=True, kw_only=True):
    """Give signs of life without events, one each `every` seconds."""

    every: float
    times: int = 1


class Use(ScriptMove, frozen=True, kw_only=True):
    """Report tokens and costs used since the last report."""

    input: int = 0
    cached_input: int = 0
    cache_write: int = 0
    output: int = 0
    reasoning: int = 0
    usd: float | None = None
    provenance: Provenance = Provenance.REPORTED


class Flood(ScriptMove, frozen=True, kw_only=True):
    """Stream many deltas of some characters each, as fast as there is room for them."""

    events: int
    size: int = 100


class Error(ScriptMove, frozen=True, kw_only=True):
    """Report an error that does not end the run."""

    message: str = "something went wrong"
    kind: FailureKind = FailureKind.PROVIDER_ERROR
    severity: Literal["warning", "error"] = "error"


class Emit(ScriptMove, frozen=True, kw_only=True):
    """Emit any event unchanged, even a terminal one."""

    event: KnownEvent
    blobs: tuple[bytes, ...] = ()
    """Blobs to which the event refers by sha256."""


class TurnEnd(ScriptMove, frozen=True, kw_only=True):
    """End the turn, but not the run."""

    stop_reason: str | None = "end_turn"
    open_tasks: int = 0


class Finish(ScriptMove, frozen=True, kw_only=True):
    """Report that the run has completed. Later steps are played all the same."""

    stop_reason: str | None = "end_turn"
    structured: Json = None


class Fail(ScriptMove, frozen=True, kw_only=True):
    """Report that the run has failed."""

    message: str = "it went wrong"
    kind: FailureKind = FailureKind.PROVIDER_ERROR
    retryable: bool = False
    resumable: bool = False


class RateLimited(ScriptMove, frozen=True, kw_only=True):
    """Report an exhausted rate limit, and end the run with that."""

    bucket: str = "requests"
    resets_at: str | None = None


class Crash(ScriptMove, frozen=True, kw_only=True):
    """Raise an exception inside some nested nurseries."""

    message: str = "as the script says"
    depth: int = 0


class CrashAdapter(ScriptMove, frozen=True, kw_only=True):
    """Crash the provider's adapter, and with it all its runs."""

    message: str = "as the script says"


class Deaf(ScriptMove, frozen=True, kw_only=True):
    """Ignore interrupts and delay cancellation for some seconds."""

    seconds: float


class Hear(ScriptMove, frozen=True, kw_only=True):
    """Wait for a message that is added to the turn, and repeat it."""


class Leave(ScriptMove, frozen=True, kw_only=True):
    """Report no end, unless a later step does."""


class Repeat(ScriptMove, frozen=True, kw_only=True):
    """Repeat some steps."""

    steps: tuple[Step, ...]
    times: int


class Together(ScriptMove, frozen=True, kw_only=True):
    """Play several lists of steps at the same time."""

    parts: tuple[tuple[Step, ...], ...]


Step: TypeAlias = (
    Say
    | Think
    | Tool
    | Ask
    | Wait
    | Hang
    | Alive
    | Use
    | Flood
    | Error
    | Emit
    | TurnEnd
    | Finish
    | Fail
    | RateLimited
    | Crash
    | CrashAdapter
    | Deaf
    | Hear
    | Leave
    | Repeat
    | Together
)


class Script(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The steps of one run, and its reactions to interrupts and messages."""

    steps: tuple[Step, ...] = ()
    starts: bool = True
    """Whether it reports first that the run has started."""
    provider_session_id: str | None = None
    """The provider's session id; by default it is made from ours."""
    interrupt: Literal["end", "done", "ignore", "crash", "hang"] = "end"
    """The reaction to an interrupt: the turn ends as interrupted, ends as completed, or goes on."""
    unwinds: float = 0.0
    """Seconds between an interrupt and the end."""
    append: Literal["accept", "refuse", "crash", "hang", "slow", "lost"] = "accept"
    """The reaction to an added message: `slow` accepts it after ten seconds, `lost` accepts it
    without an answer.
    """


Scripts: TypeAlias = (
    Mapping[str, Script | Sequence[Step]] | Callable[[str, int], Script | Sequence[Step]]
)
"""Scripts by prompt: a table, or a function of the prompt and its number of earlier uses."""

_script: Final = msgspec.json.Decoder(Script)
_steps: Final = msgspec.json.Decoder(tuple[Step, ...])


def parse_script(text: str) -> Script:
    """Read a script from JSON.

    Raises:
        msgspec.ValidationError: The JSON is not a script; the message names the place.
        msgspec.DecodeError: The text is not JSON.
    """
    if text.lstrip().startswith("["):
        return Script(steps=_steps.decode(text))
    return _script.decode(text)


def write_script(script: Script) -> str:
    """Return a script as compact JSON, for use as a prompt.

    Args:
        script: The script.
    """
    return msgspec.json.encode(script).decode()


def choose_script(scripts: Scripts | None, prompt: str, attempt: int) -> Script:
    """Return the script for a prompt: from `scripts`, else from the prompt itself, else an echo."""
    found: Script | Sequence[Step] | None = None
    if callable(scripts):
        found = scripts(prompt, attempt)
    elif scripts is not None:
        found = scripts.get(prompt)
    if found is None and prompt.lstrip()[:1] in ("{", "["):
        found = parse_script(prompt)
    if found is None:
        found = (Say(text=prompt),)
    return found if isinstance(found, Script) else Script(steps=tuple(found))
