"""The refusal of a changed job shows where its work differs from before."""

import pytest

from sessionmgr.batch.job_changes import short_difference
from sessionmgr.model import PermissionMode

LONG = "Read the whole of the file src/parser.py and add tests for "


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        ("echo 1", "echo one", ('"echo 1"', '"echo one"')),
        (f"{LONG}numbers", f"{LONG}names", ('"…tests for numbers"', '"…tests for names"')),
        (LONG, f"{LONG}names", ('"… tests for "', '"… tests for names"')),
        (
            LONG,
            f"Don't {LONG}",
            (
                '"Read the whole of the file src/parser.py…"',
                '"Don\'t Read the whole of the file src/par…"',
            ),
        ),
        (
            f"{LONG}a{LONG}",
            f"{LONG}b{LONG}",
            (
                '"… tests for aRead the whole of the file s…"',
                '"… tests for bRead the whole of the file s…"',
            ),
        ),
        (f"{LONG}\n\na", f"{LONG}\n\nb", ('"…ests for \\n\\na"', '"…ests for \\n\\nb"')),
        (None, "haiku", ("null", '"haiku"')),
        (PermissionMode.PLAN, None, ('"plan"', "null")),
    ],
)
def test_both_are_shown_from_shortly_before_the_first_difference(
    before: object, after: object, shown: tuple[str, str]
) -> None:
    assert short_difference(before, after) == shown
