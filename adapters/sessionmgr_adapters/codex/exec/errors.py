"""What `codex exec` complains of, in words: cleaned, and given the class that it has elsewhere.

The words are Codex's own sentences, at the start of a message that comes as an error. Whatever is
not known to the letter is of the class `other`: something went wrong, and nothing more is known.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import msgspec

from sessionmgr_adapters.codex.failures import without_places
from sessionmgr_adapters.codex.frames import Failing, TurnError

if TYPE_CHECKING:
    from sessionmgr.model import Json

_NO_STATUS: Final[dict[str, Json]] = {"httpStatusCode": None}
_CLASSES: Final[tuple[tuple[str, Json], ...]] = (
    ("Codex ran out of room in the model's context window", "contextWindowExceeded"),
    ("You've hit your usage limit", "usageLimitExceeded"),
    ("Quota exceeded. Check your plan", "usageLimitExceeded"),
    ("Selected model is at capacity", "serverOverloaded"),
    ("We're currently experiencing high demand", "internalServerError"),
    ("stream disconnected before completion", {"responseStreamDisconnected": _NO_STATUS}),
    ("Connection failed: ", {"httpConnectionFailed": _NO_STATUS}),
)
_STATUS: Final = re.compile(r"(?:unexpected status|exceeded retry limit, last status:) (\d{3})\b")
_AGAIN: Final = re.compile(
    r"Reconnecting\.\.\. (?:(\d+)/\d+|waiting for network)(?: \((.*)\))?$", re.DOTALL
)

# What says nothing to anybody: what it does with its input, where it asked, the number of an error.
_CHATTER: Final = re.compile(
    r"^(Reading (additional input|prompt) from stdin\.\.\.|WARNING: .*)$\n?", re.MULTILINE
)
_ASIDES: Final = re.compile(
    r"(, url: [^\s,]+|, (request id|cf-ray): [\w-]+| \(code -?\d+\)(, data: \{.*\})?)"
)
_LABELS: Final = re.compile(r"^(Error: |ERROR: )+", re.MULTILINE)
_REPEATED: Final = re.compile(r"\b((?:thread|turn)/\w+: )(?=(?:thread|turn)/\w+ failed)")


def cleaned(message: str) -> str:
    """Return a message without what is for machines only, and without where files are."""
    said = _words_of(message.strip())
    said = _ASIDES.sub("", _LABELS.sub("", _CHATTER.sub("", said)))
    return without_places(_REPEATED.sub("", said)).strip()


def turn_error(message: str) -> TurnError:
    """Return what a turn failed with, as an app-server would tell it."""
    return TurnError(message=cleaned(message), codex_error_info=_class_of(message))


def failing(message: str) -> Failing:
    """Return what an error is: an attempt that follows, or what the turn fails with next."""
    found = _AGAIN.match(message)
    if found is None:
        return Failing(error=turn_error(message))
    attempt, why = found.groups()
    error = TurnError(message=cleaned(why or message), codex_error_info=_class_of(why or ""))
    return Failing(error=error, will_retry=True, attempt=int(attempt or 1))


def _class_of(message: str) -> Json:
    """Return the class that the error has elsewhere."""
    said = message.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    found = _STATUS.match(said)
    if found is not None:
        return {"httpConnectionFailed": {"httpStatusCode": int(found[1])}}
    return next((known for words, known in _CLASSES if said.startswith(words)), "other")


def _words_of(message: str) -> str:
    """Return what a server's answer says, where that is all there is."""
    if not message.startswith("{"):
        return message
    try:
        answer: Json = msgspec.json.decode(message)
    except (msgspec.DecodeError, RecursionError):
        return message
    match answer:
        case {"error": {"message": str(words)}} if words:
            return words
        case _:
            return message
