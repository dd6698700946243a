"""The printed schemas describe what the commands print."""

import json
import subprocess

import pytest

from sessionmgr.adapter.kit.structured_output import find_validator_factory
from sessionmgr.batch import Job
from sessionmgr.cli import main as command_line
from tests.cli.command import COMMAND
from tests.cli.command_terminal import CommandTerminal


@pytest.mark.parametrize("name", ["event", "result"])
def test_the_schema_of_what_we_print_is_json_on_stdout(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command_line.main(["schema", name]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["title"] == f"A sessionmgr {name}"
    assert said.err == ""


def test_a_job_is_described(terminal: CommandTerminal) -> None:
    code, out, _ = terminal.bare("schema", "job")
    assert code == 0
    properties = json.loads(out)["$defs"]["Job"]["properties"]
    assert set(properties) == set(Job.__struct_fields__)


@pytest.mark.parametrize(("deadline", "is_right"), [(900, True), ("15m", True), ("soon", False)])
def test_the_schema_of_a_job_takes_what_a_file_of_jobs_may_hold(
    terminal: CommandTerminal, deadline: int | str, is_right: bool
) -> None:
    validator = find_validator_factory()
    assert validator is not None
    schema = json.loads(terminal.bare("schema", "job")[1])
    faults = list(validator(schema).iter_errors({"id": "a", "prompt": "x", "deadline": deadline}))
    assert (faults == []) is is_right


@pytest.mark.parametrize(
    ("provider", "option"), [("shell", "timeout"), ("claude", "tools"), ("codex", "home")]
)
def test_the_options_of_a_provider_are_described(
    terminal: CommandTerminal, provider: str, option: str
) -> None:
    code, out, _ = terminal.bare("schema", "options", provider)
    assert code == 0
    assert option in json.loads(out)["$defs"][f"{provider.title()}Options"]["properties"]


def test_what_only_a_program_can_give_is_described_as_that(terminal: CommandTerminal) -> None:
    _, out, _ = terminal.bare("schema", "options", "codex")
    tool = json.loads(out)["$defs"]["FunctionTool"]["properties"]
    assert tool["call"] == {"not": {}, "description": "an object of Python: for programs only"}


def test_a_result_is_described_as_far_as_a_provider_fills_it(terminal: CommandTerminal) -> None:
    code, out, _ = terminal.bare("schema", "output", "shell")
    assert code == 0
    properties = json.loads(out)["$defs"]["RunResult"]["properties"]
    assert properties["provider"]["const"] == "shell"
    assert properties["structured"]["const"] is None
    assert properties["images"]["maxItems"] == 0


def test_a_reader_that_has_had_enough_of_a_schema_is_no_error() -> None:
    with subprocess.Popen(
        [*COMMAND, "schema", "event"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.close()
        _, err = process.communicate(timeout=60)
    assert process.returncode == 0
    assert err == b""
