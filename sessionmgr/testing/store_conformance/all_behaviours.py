"""All behaviours of stores, by their requirements."""

from typing import Final

from sessionmgr.testing.store_conformance.appending import APPENDING
from sessionmgr.testing.store_conformance.behaviour import StoreBehaviour
from sessionmgr.testing.store_conformance.blobs import SHELF
from sessionmgr.testing.store_conformance.leases import HOLDING
from sessionmgr.testing.store_conformance.queries import FINDING
from sessionmgr.testing.store_conformance.reading import READING
from sessionmgr.testing.store_conformance.removal import REMOVING
from sessionmgr.testing.store_conformance.reopening import LASTING
from sessionmgr.testing.store_conformance.runs import ENDING
from sessionmgr.testing.store_conformance.waiting import WAITING

STORE_BEHAVIOURS: Final[tuple[StoreBehaviour, ...]] = (
    *APPENDING.behaviours,
    *ENDING.behaviours,
    *READING.behaviours,
    *WAITING.behaviours,
    *FINDING.behaviours,
    *SHELF.behaviours,
    *HOLDING.behaviours,
    *REMOVING.behaviours,
)
"""The behaviours that every store must have."""

LASTING_BEHAVIOURS: Final[tuple[StoreBehaviour, ...]] = tuple(LASTING.behaviours)
"""The behaviours of a store that outlives its block, and that several may open at once."""
