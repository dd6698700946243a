"""Text goes to stdout and notes to stderr, in order if both are the same file."""

import os
from collections.abc import Generator
from pathlib import Path
from typing import TextIO

import pytest

from sessionmgr.cli.terminal.console import Console
from sessionmgr.cli.terminal.render_events import RunNoteLine, RunText
from sessionmgr.cli.terminal.stdout import ReaderGoneError
from tests.cli.pipes import pipe, unread_pipe


@pytest.fixture
def files(tmp_path: Path) -> Generator[tuple[TextIO, TextIO]]:
    with (
        (tmp_path / "out").open("w+", encoding="utf-8") as out,
        (tmp_path / "err").open("w+", encoding="utf-8") as err,
    ):
        yield out, err


def read(stream: TextIO) -> str:
    return Path(stream.name).read_text(encoding="utf-8")


async def test_text_and_notes_go_their_ways(files: tuple[TextIO, TextIO]) -> None:
    out, err = files
    outlet = Console(out, err)
    await outlet.write(
        [RunText("Hel"), RunNoteLine("· Bash"), RunText("lo", ends=True), RunText("x\n", ends=True)]
    )
    await outlet.write([])
    assert (read(out), read(err)) == ("Hello\nx\n", "· Bash\n")


async def test_what_is_for_a_pipe_is_as_the_agent_wrote_it(files: tuple[TextIO, TextIO]) -> None:
    out, err = files
    await Console(out, err).write([RunText("\x1b[31mred"), RunNoteLine("\x1b[31mred")])
    assert (read(out), read(err)) == ("\x1b[31mred", "red\n")


async def test_in_one_place_a_note_begins_a_line_of_its_own(files: tuple[TextIO, TextIO]) -> None:
    out, _ = files
    both = Console(out, out)
    await both.write(
        [
            RunText("Hel"),
            RunNoteLine("· Bash"),
            RunText("lo"),
            RunText("", ends=True),
            RunNoteLine("end"),
        ]
    )
    assert read(out) == "Hel\n· Bash\nlo\nend\n"


@pytest.mark.parametrize(
    ("loudness", "said"), [(0, "bad\n"), (1, "faint\nbad\n"), (2, "faint\ndetail\nbad\n")]
)
async def test_as_loud_as_is_asked(loudness: int, said: str, files: tuple[TextIO, TextIO]) -> None:
    out, err = files
    outlet = Console(out, err, loudness=loudness)
    await outlet.write(
        [RunNoteLine("faint"), RunNoteLine("detail", detail=True), RunNoteLine("bad", "bad")]
    )
    assert read(err) == said


async def test_lines_are_printed_instead_of_text(files: tuple[TextIO, TextIO]) -> None:
    out, err = files
    outlet = Console(out, err, text=False)
    await outlet.write([RunText("never")])
    await outlet.write_line(b'{"type":"x"}')
    assert read(out) == '{"type":"x"}\n'


async def test_who_reads_no_notes_gets_the_text_all_the_same() -> None:
    with pipe() as (ours, out), unread_pipe() as err:
        outlet = Console(out, err)
        await outlet.write(
            [RunNoteLine("one"), RunText("two"), RunNoteLine("three"), RunText("four", ends=True)]
        )
        assert os.read(ours, 100) == b"twofour\n"
        await Console(out, None).write([RunNoteLine("one"), RunText("two", ends=True)])
        assert os.read(ours, 100) == b"two\n"


async def test_without_a_reader_of_the_text_that_is_reported() -> None:
    with unread_pipe() as out, pytest.raises(ReaderGoneError):
        await Console(out, None).write([RunText("one")])
    with pytest.raises(ReaderGoneError):
        await Console(None, None).write([RunText("one")])


async def test_a_full_disk_is_said_to_be_that() -> None:
    with open("/dev/full", "w", encoding="utf-8") as out:  # noqa: ASYNC230, PTH123
        with pytest.raises(OSError, match="No space left") as raised:
            await Console(out, None).write([RunText("one")])
        assert raised.value.filename == "/dev/full"
