"""Wrong types in a job's fields, described by the expected and the actual value."""

from __future__ import annotations

from typing import Final

import msgspec

from sessionmgr.batch.job import Job
from sessionmgr.model import EXPECTED as DURATION, field_error, seconds_from

_SPECIAL: Final = {"deadline": DURATION, "budget_usd": "dollars, more than 0"}
_PUBLIC: Final = ("schema", "metadata")
DURATIONS: Final = ("deadline",)


def parse_durations(fields: dict[str, object]) -> dict[str, object]:
    """Return a job's fields, with durations given as text converted to seconds."""
    texts = [name for name in DURATIONS if isinstance(fields.get(name), str)]
    seconds = {name: seconds_from(fields[name]) for name in texts}
    return fields | {name: value for name, value in seconds.items() if value is not None}


def field_type_error(error: msgspec.ValidationError, fields: dict[str, object]) -> tuple[str, str]:
    """Return which field of a job has a wrong value, and why."""
    return field_error(error, fields, Job, expected=_SPECIAL, public=_PUBLIC)
