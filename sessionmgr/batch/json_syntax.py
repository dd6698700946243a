"""Describes a JSON syntax error in a line: the column, and the mistake in plain words."""

from __future__ import annotations

import json


def json_syntax_error(line: bytes, why: str) -> tuple[int, str]:
    """Return the column of a syntax error, from 1, and its description; `why` if it is unknown."""
    text = line.decode("utf-8", "replace").rstrip()
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        before, rest = text[: error.pos].rstrip(), text[error.pos :]
        if rest.startswith(("}", "]")) and before.endswith(","):
            return len(before), "invalid JSON: remove the comma after the last element"
        if rest.startswith(",") and rest[1:].lstrip().startswith(("}", "]")):
            return error.pos + 1, "invalid JSON: remove the comma after the last element"
        return error.pos + 1, f"invalid JSON: {_plain_message(error.msg, rest)}"
    except (ValueError, RecursionError):
        pass
    return 1, f"invalid JSON: {why[:1].lower()}{why[1:]}"


def _plain_message(message: str, rest: str) -> str:
    letter = json.dumps(rest[:1], ensure_ascii=False)
    if not rest or message.startswith("Unterminated string"):
        return "the object does not end on this line (one object per line)"
    if message == "Extra data":
        commas = ", no commas between lines" if rest.startswith(",") else ""
        return f"unexpected {letter} after the object (one object per line{commas})"
    if rest.startswith("'"):
        return "strings take double quotes, not single ones"
    if message.startswith("Expecting property name"):
        return f"keys take double quotes, got {letter}"
    if message.startswith("Expecting") and message.endswith("delimiter"):
        return f"expected {message.split(chr(39))[1]!r}, got {letter}"
    if message == "Expecting value":
        return f"unexpected {letter}"
    return message[:1].lower() + message[1:]
