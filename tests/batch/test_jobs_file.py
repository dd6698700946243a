"""Files of other formats are recognized, and errors in a jobs file name their place."""

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from sessionmgr.batch.file_format import foreign_format_error
from sessionmgr.batch.job import Job
from sessionmgr.batch.jobs_file import JobSource, parse_job
from sessionmgr.batch.problems import SHOWN, Problem, Problems

GOOD = b'{"id": "a", "prompt": "x"}\n'
PER_LINE = "a jobs file has one JSON object per line"
FOREIGN: dict[str, tuple[bytes, str]] = {
    "an array": (
        b'[\n  {"id": "a"},\n  {"id": "b"}\n]\n',
        "this is a JSON array; " + PER_LINE + ": convert it with `jq -c '.[]' FILE`",
    ),
    "an array on one line": (b'[{"id": "a"}]', "this is a JSON array; "),
    "an empty array": (b"[]", "this is a JSON array; "),
    "pretty-printed": (
        b'{\n "id": "a",\n "prompt": "x"\n}\n',
        f"a job spans several lines here; {PER_LINE}: convert it with `jq -c . FILE`",
    ),
    "pretty-printed from the second field on": (b'{"id": "a",\n "prompt": "x"}\n', "a job spans"),
    "pretty-printed and broken": (b'{\n "id": a\n}\n', "a job spans several lines here; "),
    "YAML": (
        b"- id: a\n  prompt: x\n",
        f"this looks like YAML; {PER_LINE}: convert it with `yq -o=json -I=0 '.[]' FILE`",
    ),
    "YAML with a header": (b"---\nid: a\n", "this looks like YAML; "),
    "YAML mapping": (b"jobs:\n  - id: a\n", "this looks like YAML; "),
    "CSV": (b"id,prompt\na,x\n", f"this looks like CSV; {PER_LINE}"),
    "TOML": (b'[[job]]\nid = "a"\n', f"this looks like TOML; {PER_LINE}"),
    "HTML": (b"<!doctype html>\n<p>", "this looks like XML or HTML; "),
    "all of a line": (b"x" * 40 + b"\n", f"expected a JSON object, got '{'x' * 40}'; "),
    "half of a line": (b"x" * 41 + b"\n", f"expected a JSON object, got '{'x' * 39}…'; "),
    "prose": (b"Fix the tests\nPlease\n", "expected a JSON object, got 'Fix the tests'; "),
    "UTF-16": (
        GOOD.decode().encode("utf-16"),
        (
            "this is UTF-16 text; a jobs file is UTF-8: "
            "convert it with `iconv -f UTF-16 -t UTF-8 FILE`"
        ),
    ),
    "UTF-16 without a mark": (GOOD.decode().encode("utf-16-le"), "this is UTF-16 text; "),
    "UTF-16, the other way": (GOOD.decode().encode("utf-16-be"), "this is UTF-16 text; "),
    "a program": (Path("/bin/sh").read_bytes()[:4096], f"this is not a text file; {PER_LINE}"),
    "compressed": (
        gzip.compress(GOOD).replace(b"\0", b"\1"),
        "this file is compressed: use `gunzip -c FILE | sessionmgr batch -`",
    ),
}


JSONISH = st.text(st.sampled_from("{}[]\",:\\ \n'abid0123.eE-truefalsn"), max_size=40)
"""Text that resembles a job but is not one."""


def read(path: Path) -> list[Job | Problem]:
    found: list[Job | Problem] = []
    for _, each in JobSource(path):
        found += each if isinstance(each, list) else [each]
    return found


@pytest.mark.parametrize("what", FOREIGN)
def test_another_kind_of_file_is_named_once_with_how_to_convert_it(
    tmp_path: Path, what: str
) -> None:
    data, said = FOREIGN[what]
    path = tmp_path / "jobs"
    path.write_bytes(data)
    (problem,) = read(path)
    assert isinstance(problem, Problem)
    assert str(problem).startswith(f"{path}: {said.replace('FILE', str(path))}")


@pytest.mark.parametrize(
    "data",
    [
        GOOD,
        b"\xef\xbb\xbf" + GOOD,
        b"\n\n  \n" + GOOD,
        GOOD.replace(b"\n", b"\r\n"),
        json.dumps({"id": "a", "prompt": "x" * 200_000}).encode(),
        '{"id": "ä", "prompt": "grüße ✓"}'.encode(),
    ],
)
def test_a_jobs_file_is_taken_as_it_is(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "jobs.jsonl"
    path.write_bytes(data)
    (job,) = read(path)
    assert isinstance(job, Job)


SYNTAX: dict[str, tuple[str, str]] = {
    '{"id": "a"},': (
        "12",
        'unexpected "," after the object (one object per line, no commas between lines)',
    ),
    '{"id": "a"} {"id": "b"}': ("13", 'unexpected "{" after the object (one object per line)'),
    '{"id": "a",}': ("11", "remove the comma after the last element"),
    '{"id": "a"': ("11", "the object does not end on this line (one object per line)"),
    "{'id': 'a'}": ("2", "strings take double quotes, not single ones"),
    "{\"id\": 'a'}": ("8", "strings take double quotes, not single ones"),
    "{id: 1}": ("2", 'keys take double quotes, got "i"'),
    '{"id": ä}': ("8", 'unexpected "ä"'),
    '{"ä": nope}': ("7", 'unexpected "n"'),
    '{"id": [1, ]}': ("10", "remove the comma after the last element"),
    '{"id" 1}': ("7", "expected ':', got \"1\""),
    '{"id": "a" "b": 1}': ("12", 'expected \',\', got "\\""'),
    '{"id": "a}': ("8", "the object does not end on this line (one object per line)"),
    "# a comment": ("1", 'unexpected "#"'),
}


@pytest.mark.parametrize("line", SYNTAX)
def test_a_json_error_has_a_column_and_a_plain_description(line: str) -> None:
    column, said = SYNTAX[line]
    (problem,) = _wrong(line.encode())
    assert str(problem) == f"jobs.jsonl:1:{column}: invalid JSON: {said}"


def test_invalid_utf8_is_reported_with_its_column() -> None:
    (problem,) = _wrong(b'{"id": "\xc3\xa4\xe4"}')
    assert str(problem) == "jobs.jsonl:1:10: the line is not UTF-8"


TYPES = {
    '"deadline": "soon"': (
        'deadline: expected a duration like 900, 15m or 2h, got "soon" (a string)'
    ),
    '"deadline": 0': "deadline: expected a duration like 900, 15m or 2h, got 0 (a number)",
    '"deadline": true': "deadline: expected a duration like 900, 15m or 2h, got true",
    '"budget_usd": "1"': 'budget_usd: expected dollars, more than 0, got "1" (a string)',
    '"max_turns": 0': "max_turns: expected a whole number, 1 or more, got 0 (a number)",
    '"max_turns": 1.5': "max_turns: expected a whole number, 1 or more, got 1.5 (a number)",
    '"model": 4': "model: expected a string, got 4 (a number)",
    '"id": 7': "id: expected a string that is not empty, got 7 (a number)",
    '"id": ""': 'id: expected a string that is not empty, got "" (a string)',
    '"tools_allowed": "Read"': 'tools_allowed: expected a list of strings, got "Read" (a string)',
    '"tools_allowed": [1]': "tools_allowed: expected a list of strings, got [1] (a list)",
    '"env": {"KEY": 12345678}': "env: expected an object of strings, got a number for KEY",
    '"env": "KEY=secret"': "env: expected an object of strings, got a string",
    '"options": "secret"': "options: expected an object, got a string",
    '"schema": []': "schema: expected an object, got [] (a list)",
    '"prompt": 5': "prompt: expected a string, got 5 (a number)",
}


@pytest.mark.parametrize("field", TYPES)
def test_a_value_of_a_wrong_type_is_shown_with_the_expected_type(field: str) -> None:
    rest = "" if field.startswith('"id"') else '"id": "a", '
    (problem,) = _wrong(f"{{{rest}{field}}}".encode())
    assert str(problem) == f"jobs.jsonl:1: {TYPES[field]}"


@pytest.mark.parametrize(
    ("written", "seconds"), [("900", 900.0), ('"15m"', 900.0), ('"2h"', 7200.0), ("0.5", 0.5)]
)
def test_a_deadline_may_be_written_with_its_unit(written: str, seconds: float) -> None:
    job = parse_job(f'{{"id": "a", "deadline": {written}}}'.encode(), "jobs.jsonl:1")
    assert isinstance(job, Job)
    assert job.deadline == seconds


def test_a_missing_id_is_reported_as_missing() -> None:
    (problem,) = _wrong(b'{"prompt": "x"}')
    assert str(problem) == 'jobs.jsonl:1: missing "id": every job needs a unique id'


def test_a_problem_that_many_jobs_share_is_printed_once() -> None:
    problems = Problems()
    for line in range(1, 201):
        problems.add(Problem(f"j:{line}:12", "", "unexpected comma"))
    problems.add(Problem("j:7", "model", "unknown"))
    assert problems.lines() == [
        "j:1:12: unexpected comma (and 199 other jobs)",
        "j:7: model: unknown",
    ]
    assert problems.unprinted == 0


def test_one_other_job_is_counted_as_one() -> None:
    problems = Problems()
    for place in ("j:1", "j:2"):
        problems.add(Problem(place, "model", "unknown"))
    assert problems.lines() == ["j:1: model: unknown (and 1 other job)"]


def test_no_more_than_so_many_are_printed() -> None:
    problems = Problems()
    for line in range(100):
        problems.add(Problem(f"j:{line}", "id", f"{line} is already used"))
    assert (len(problems.lines()), problems.unprinted) == (SHOWN, 100 - SHOWN)


@given(st.binary() | st.text().map(str.encode) | JSONISH.map(str.encode))
def test_any_line_is_a_job_or_has_a_described_problem(line: bytes) -> None:
    found = parse_job(line, "jobs.jsonl:1")
    assert isinstance(found, Job) or [each for each in found if not each.what] == []
    assert found


@given(st.binary(max_size=400))
def test_whatever_a_file_begins_with_it_is_recognized_or_not(head: bytes) -> None:
    assert foreign_format_error(head, "FILE") != ""


def _wrong(line: bytes) -> list[Problem]:
    found = parse_job(line, "jobs.jsonl:1")
    assert isinstance(found, list)
    return found
