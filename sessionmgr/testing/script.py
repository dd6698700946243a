"""Scripts for the scripted provider: what an agent does, step by step, as plain data.

A script is a list of steps; in JSON, each is an object whose `do` names it:

    [{"do": "say", "text": "Hello", "deltas": 3}, {"do": "wait", "seconds": 2}, {"do": "finish"}]

or an object with `steps` and what else a `Script` has. A script that tells no end is finished with
stop reason `end_turn`. All times are seconds of trio's clock.
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
    """What all steps are."""


class Say(ScriptMove, frozen=True, kw_only=True):
    """Say something; before it is said whole, in so many `deltas`, with a `pause` before each."""

    text: str
    deltas: int = 0
    pause: float = 0.0
    whole: bool = True
    """False: the whole message never comes."""


class Think(ScriptMove, frozen=True, kw_only=True):
    """Think aloud."""

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
    """Ask whether a tool may be called, and call it if so; a denied call is a failed one."""

    tool: str
    input: Json = None
    output: Json = None
    effect: Effect = "other"
    paths: tuple[str, ...] = ()
    reason: str | None = None
    id: str = ""
    withdraw_after: float | None = None
    """When to take the question back, if there is no answer yet."""


class Wait(ScriptMove, frozen=True, kw_only=True):
    """Do nothing for a while."""

    seconds: float


class Hang(ScriptMove, frozen=True, kw_only=True):
    """Be silent for ever."""


class Alive(ScriptMove, frozen=True, kw_only=True):
    """Give signs of life and nothing else: one each `every` seconds."""

    every: float
    times: int = 1


class Use(ScriptMove, frozen=True, kw_only=True):
    """Report tokens and money as used since the last report."""

    input: int = 0
    cached_input: int = 0
    cache_write: int = 0
    output: int = 0
    reasoning: int = 0
    usd: float | None = None
    provenance: Provenance = Provenance.REPORTED


class Flood(ScriptMove, frozen=True, kw_only=True):
    """Stream so many deltas of so many characters each, as fast as there is room for them."""

    events: int
    size: int = 100


class Error(ScriptMove, frozen=True, kw_only=True):
    """Report an error that ends nothing."""

    message: str = "something went wrong"
    kind: FailureKind = FailureKind.PROVIDER_ERROR
    severity: Literal["warning", "error"] = "error"


class Emit(ScriptMove, frozen=True, kw_only=True):
    """Tell any event, word for word; terminal ones, too."""

    event: KnownEvent
    blobs: tuple[bytes, ...] = ()
    """What the event names by sha256."""


class TurnEnd(ScriptMove, frozen=True, kw_only=True):
    """End the turn, and not yet the run."""

    stop_reason: str | None = "end_turn"
    open_tasks: int = 0


class Finish(ScriptMove, frozen=True, kw_only=True):
    """Tell that the run is done, and well. Steps that follow are played all the same."""

    stop_reason: str | None = "end_turn"
    structured: Json = None


class Fail(ScriptMove, frozen=True, kw_only=True):
    """Tell that the run went wrong."""

    message: str = "it went wrong"
    kind: FailureKind = FailureKind.PROVIDER_ERROR
    retryable: bool = False
    resumable: bool = False


class RateLimited(ScriptMove, frozen=True, kw_only=True):
    """Tell that a limit is reached, and end the run with that."""

    bucket: str = "requests"
    resets_at: str | None = None


class Crash(ScriptMove, frozen=True, kw_only=True):
    """Raise an exception, so deep in nurseries."""

    message: str = "as the script says"
    depth: int = 0


class CrashAdapter(ScriptMove, frozen=True, kw_only=True):
    """Crash not this run but the provider's adapter, on which all its runs depend."""

    message: str = "as the script says"


class Deaf(ScriptMove, frozen=True, kw_only=True):
    """For so long, hear no interrupt and hold off every cancellation."""

    seconds: float


class Hear(ScriptMove, frozen=True, kw_only=True):
    """Wait for a message that is appended, and repeat it."""


class Leave(ScriptMove, frozen=True, kw_only=True):
    """Tell no end, unless a later step does."""


class Repeat(ScriptMove, frozen=True, kw_only=True):
    """Play some steps again and again."""

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
    """The steps of one run, and how it takes what comes from outside."""

    steps: tuple[Step, ...] = ()
    starts: bool = True
    """Whether it begins by telling that it has started."""
    provider_session_id: str | None = None
    """What the provider calls its session, if not by a name made from ours."""
    interrupt: Literal["end", "done", "ignore", "crash", "hang"] = "end"
    """Asked to end, it says that the turn was interrupted; or claims to be done; or is deaf."""
    unwinds: float = 0.0
    """How long it takes to end once it was asked to."""
    append: Literal["accept", "refuse", "crash", "hang", "slow", "lost"] = "accept"
    """What it makes of a message into the turn: `slow` takes it after ten seconds, `lost` takes it
    and never says so."""


Scripts: TypeAlias = (
    Mapping[str, Script | Sequence[Step]] | Callable[[str, int], Script | Sequence[Step]]
)
"""Scripts by prompt: a table, or a function of the prompt and how often it was played before."""

_script: Final = msgspec.json.Decoder(Script)
_steps: Final = msgspec.json.Decoder(tuple[Step, ...])


def parse_script(text: str) -> Script:
    """Read a script from JSON.

    Raises:
        msgspec.ValidationError: It is no script; the text says where.
        msgspec.DecodeError: It is no JSON.
    """
    if text.lstrip().startswith("["):
        return Script(steps=_steps.decode(text))
    return _script.decode(text)


def write_script(script: Script) -> str:
    """Write a script as JSON, as short as it can be: for a prompt, say.

    Args:
        script: The script.
    """
    return msgspec.json.encode(script).decode()


def choose_script(scripts: Scripts | None, prompt: str, attempt: int) -> Script:
    """Return the script for a prompt: from `scripts`, or the prompt itself; else it is echoed."""
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
