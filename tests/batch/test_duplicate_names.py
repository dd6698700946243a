import json

import pytest
from hypothesis import given, strategies as st

from sessionmgr.batch.duplicate_names import find_duplicate_names
from sessionmgr.batch.jobs_file import parse_job
from sessionmgr.batch.problems import Problem


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"id": "a"}', []),
        ('{"deadline": 10, "deadline": 2e1}', [("deadline", '"10" and "2e1"')]),
        ('{"x": {"A": "1", "B": "1", "A": null}}', [("x.A", '"1" and null')]),
        ('{"o": [{}, {"x": [], "x": {}, "x": true}]}', [("o[1].x", "[…] and {…} and true")]),
        ('{"\\u0061": "' + "x" * 50 + '", "a": 1}', [("a", '"' + "x" * 38 + '… and "1"')]),
        ('{"a": ' + "9" * 5000 + "}", []),
    ],
)
def test_a_duplicate_name_is_found(text: str, expected: list[tuple[str, str]]) -> None:
    said = [
        (name, what[what.index("(") + 1 : what.index(")")])
        for name, what in find_duplicate_names(text)
    ]
    assert said == expected


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_nothing_is_found_without_a_duplicate_name(value: object) -> None:
    assert find_duplicate_names(json.dumps(value)) == []


def test_a_job_with_a_doubled_name_is_refused() -> None:
    assert parse_job(b'{"id": "a", "prompt": "x", "prompt": "y"}', "jobs.jsonl:3") == [
        Problem("jobs.jsonl:3", "prompt", 'it occurs 2 times ("x" and "y"); keep one')
    ]


@pytest.mark.parametrize("field", ["env", "options"])
def test_values_that_may_be_secrets_are_not_shown(field: str) -> None:
    text = json.dumps({field: {"A": "sk-secret", "B": "sk-secret"}}).replace('"B"', '"A"')
    assert find_duplicate_names(text) == [(f"{field}.A", "it occurs 2 times; keep one")]
