"""How the toy agent says what every agent says."""

from sessionmgr.testing.player import Dialect, ExpectStep, WriteStep, line
from sessionmgr.testing.toy.frames import ToyHello, ToyTextDelta, ToyTurnEnded

TOY = Dialect(
    opening=(
        ExpectStep({"type": "open"}),
        WriteStep(line(ToyHello("played"))),
        ExpectStep({"type": "say"}),
    ),
    word=lambda text: line(ToyTextDelta(text, "m1")),
    end=line(ToyTurnEnded("done")),
)
