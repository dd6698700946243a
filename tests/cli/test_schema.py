"""What is printed is described."""

import json
import subprocess

import pytest

from sessionmgr.cli import main as command_line
from tests.cli.command import COMMAND


@pytest.mark.parametrize("name", ["event", "result"])
def test_the_schema_of_what_we_print_is_json_on_stdout(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command_line.main(["schema", name]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["title"] == f"A sessionmgr {name}"
    assert said.err == ""


def test_a_reader_that_has_had_enough_of_a_schema_is_no_error() -> None:
    with subprocess.Popen(
        [*COMMAND, "schema", "event"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.close()
        _, err = process.communicate(timeout=60)
    assert process.returncode == 0
    assert err == b""
