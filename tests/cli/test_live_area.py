"""The live area stays at the bottom of a terminal, through resizing and with lines above."""

import fcntl
import struct
import termios
from collections.abc import Generator
from typing import TextIO

import pytest

from sessionmgr.cli.terminal.live_area import LiveArea
from sessionmgr.cli.terminal.render_progress import Line, StyledText
from tests.cli.pipes import pseudo_terminal, read_terminal
from tests.cli.terminal_emulator import EmulatedScreen


class LiveAreaSetup:
    """A terminal with a live area, and its screen."""

    def __init__(self, ours: int, theirs: TextIO) -> None:
        self._ours = ours
        self._theirs = theirs
        self.screen = EmulatedScreen(40, 10)
        self.resize(40, 10)
        self.painter = LiveArea(theirs)
        self.writes = 0

    def resize(self, columns: int, rows: int) -> None:
        self.screen.resize(columns, rows)
        self.tell_size(columns, rows)

    def tell_size(self, columns: int, rows: int) -> None:
        size = struct.pack("HHHH", rows, columns, 0, 0)
        fcntl.ioctl(self._theirs, termios.TIOCSWINSZ, size)

    def paint(self, *lines: str, above: tuple[str, ...] = ()) -> list[str]:
        self.painter.draw(
            [(StyledText(line, "good"),) for line in lines], [(line, "bad") for line in above]
        )
        said = read_terminal(self._ours, self._theirs.fileno())
        self.writes += bool(said)
        self.screen.feed(said.decode())
        shown = self.screen.lines()
        while shown and not shown[-1]:
            shown.pop()
        return shown


@pytest.fixture(params=["colour", "none"])
def easel(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Generator[LiveAreaSetup]:
    monkeypatch.setenv("TERM", "xterm-256color")
    if request.param == "none":
        monkeypatch.setenv("NO_COLOR", "1")
    else:
        monkeypatch.delenv("NO_COLOR", raising=False)
    with pseudo_terminal() as (ours, terminal):
        yield LiveAreaSetup(ours, terminal)


def test_a_picture_takes_the_place_of_the_one_before(easel: LiveAreaSetup) -> None:
    assert easel.paint("one", "two", "three") == ["one", "two", "three"]
    assert easel.paint("four", "five") == ["four", "five"]
    assert easel.paint() == []


def test_the_same_picture_is_not_painted_twice(easel: LiveAreaSetup) -> None:
    easel.paint("one")
    easel.paint("one")
    assert easel.writes == 1


def test_lines_go_by_above_the_picture(easel: LiveAreaSetup) -> None:
    easel.paint("picture")
    assert easel.paint("picture", above=("news",)) == ["news", "picture"]
    assert easel.paint("pictures", above=("more news",)) == ["news", "more news", "pictures"]


def test_a_line_above_may_be_longer_than_the_terminal_is_wide(easel: LiveAreaSetup) -> None:
    easel.paint("picture")
    assert easel.paint("picture", above=("x" * 50,)) == ["x" * 40, "x" * 10, "picture"]
    assert easel.paint("picture", above=("\x1b[2Jy",))[-2:] == ["y", "picture"]


def test_a_picture_stays_at_the_bottom_when_the_screen_is_full(easel: LiveAreaSetup) -> None:
    shown = [easel.paint("first", "second", above=(f"line {n}",)) for n in range(30)]
    assert shown[-1] == [*(f"line {n}" for n in range(23, 30)), "first", "second"]
    assert easel.screen.scrolled == [f"line {n}" for n in range(23)]


def test_nothing_of_a_wide_picture_is_left_when_the_terminal_gets_narrow(
    easel: LiveAreaSetup,
) -> None:
    easel.paint("a" * 39, "b" * 25, above=("news",))
    easel.resize(20, 10)
    assert easel.paint("c" * 19) == ["news", "c" * 19]
    easel.resize(40, 6)
    assert easel.paint("d" * 39) == ["news", "d" * 39]


def test_a_terminal_that_tells_no_size_is_taken_for_a_usual_one(easel: LiveAreaSetup) -> None:
    easel.tell_size(0, 0)
    assert easel.painter.size() == (80, 24)


def test_who_has_no_such_characters_gets_others() -> None:
    with pseudo_terminal("ascii") as (ours, terminal):
        lines: list[Line] = [(StyledText("━━─ …"),)]
        LiveArea(terminal).draw(lines)
        assert b"##- ~" in read_terminal(ours, terminal.fileno())
