"""All behaviours, by what they ask of a store."""

from typing import Final

from sessionmgr.testing.store_conformance.appending import APPENDING
from sessionmgr.testing.store_conformance.behaviour import Behaviour
from sessionmgr.testing.store_conformance.ending import ENDING
from sessionmgr.testing.store_conformance.finding import FINDING
from sessionmgr.testing.store_conformance.holding import HOLDING
from sessionmgr.testing.store_conformance.lasting import LASTING
from sessionmgr.testing.store_conformance.reading import READING
from sessionmgr.testing.store_conformance.removing import REMOVING
from sessionmgr.testing.store_conformance.shelf import SHELF
from sessionmgr.testing.store_conformance.waiting import WAITING

STORE_BEHAVIOURS: Final[tuple[Behaviour, ...]] = (
    *APPENDING.behaviours,
    *ENDING.behaviours,
    *READING.behaviours,
    *WAITING.behaviours,
    *FINDING.behaviours,
    *SHELF.behaviours,
    *HOLDING.behaviours,
    *REMOVING.behaviours,
)
"""What every store does."""

LASTING_BEHAVIOURS: Final[tuple[Behaviour, ...]] = tuple(LASTING.behaviours)
"""What a store does that outlives its block, and that several may open at once."""
