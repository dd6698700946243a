"""Which texts may stand for a provider's session on a command line."""

from __future__ import annotations

import unicodedata
from typing import Final

from sessionmgr.process.errors import SessionIdInvalid

LONGEST: Final = 1024
# Control, format (among them what turns the direction of writing), surrogate, line and paragraph.
_REFUSED: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def validate_session_id(given: str) -> str:
    """Return the id of a provider's session as it was given.

    Raises:
        ResumeIdRefused: it is blank, could be read as an option, or holds what nobody can see.
    """
    if not given.strip():
        raise SessionIdInvalid(given, "it is blank")
    if given != given.strip():
        raise SessionIdInvalid(given, "white space stands around it")
    if given.startswith("-"):
        raise SessionIdInvalid(given, "it begins with '-', like an option")
    for character in given:
        if unicodedata.category(character) in _REFUSED:
            raise SessionIdInvalid(given, f"it holds the control character {character!r}")
    if len(given) > LONGEST:
        raise SessionIdInvalid(given, f"it has {len(given)} characters, of at most {LONGEST}")
    return given
