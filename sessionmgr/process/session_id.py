"""Validation of provider session ids, which appear on a command line."""

from __future__ import annotations

import unicodedata
from typing import Final

from sessionmgr.process.errors import SessionIdInvalid

LONGEST: Final = 1024
# Unicode categories: control, format (which contains the bidirectional overrides), surrogate, line
# and paragraph separators.
_REFUSED: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def validate_session_id(given: str) -> str:
    """Return the session id unchanged.

    Raises:
        SessionIdInvalid: It is blank, looks like an option, or contains an invisible character.
    """
    if not given.strip():
        raise SessionIdInvalid(given, "it is blank")
    if given != given.strip():
        raise SessionIdInvalid(given, "it has surrounding white space")
    if given.startswith("-"):
        raise SessionIdInvalid(given, "it begins with '-', like an option")
    for character in given:
        if unicodedata.category(character) in _REFUSED:
            raise SessionIdInvalid(given, f"it contains the control character {character!r}")
    if len(given) > LONGEST:
        raise SessionIdInvalid(given, f"it has {len(given)} characters; the maximum is {LONGEST}")
    return given
