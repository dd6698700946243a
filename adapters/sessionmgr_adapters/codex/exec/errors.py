"""What `codex exec` complains of, in words, because it has no classes: cleaned, and given a kind.

The words are Codex's own sentences, at the start of a message that comes as an error. Whatever is
not known to the letter is what the class `other` is: something that went wrong, and nothing more.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import msgspec

from sessionmgr.model import Failure, FailureKind
from sessionmgr_adapters.codex.failures import failure_of, retry_failure, without_places

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

# What it says on stderr where no turn has come of it.
_AT_THE_START: Final = (
    ("no rollout found", FailureKind.SESSION_NOT_FOUND),
    ("already has an active writer", FailureKind.SESSION_BUSY),
    ("Error loading config.toml", FailureKind.CONFIG_INVALID),
    ("Error finding codex home", FailureKind.CONFIG_INVALID),
    ("Output schema file", FailureKind.CONFIG_INVALID),
    ("Model provider `", FailureKind.CONFIG_INVALID),
    ("No prompt provided", FailureKind.CONFIG_INVALID),
    ("Input exceeds the maximum length", FailureKind.CONFIG_INVALID),
    ("error: unexpected argument", FailureKind.CONFIG_INVALID),
    ("error: invalid value", FailureKind.CONFIG_INVALID),
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


def turn_failure(message: str, *, before: str | None = None) -> Failure:
    """Return what it is that a turn failed with; `before` is what was tried again last."""
    earlier = None if before is None else _class_of(before)
    return failure_of(_class_of(message), cleaned(message), before=earlier)


def retried(message: str) -> tuple[int, Failure] | None:
    """Return which attempt comes next and why, if a message says that something is tried again."""
    found = _AGAIN.match(message)
    if found is None:
        return None
    attempt, why = found.groups()
    return int(attempt or 1), retry_failure(_class_of(why or ""), cleaned(why or message))


def start_kind(stderr: str) -> FailureKind | None:
    """Return what its last words say it died of; None if nothing that is known."""
    return next((kind for words, kind in _AT_THE_START if words in stderr), None)


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
