"""How the toy agent says what every agent says."""

from sessionmgr.testing.player import Dialect, Expect, Write, line
from sessionmgr.testing.toy.frames import Hello, TextDelta, TurnEnded

TOY = Dialect(
    opening=(Expect({"type": "open"}), Write(line(Hello("played"))), Expect({"type": "say"})),
    word=lambda text: line(TextDelta(text, "m1")),
    end=line(TurnEnded("done")),
)
