"""All behaviours of adapters, in their order."""

from typing import Final

from sessionmgr.testing.adapter_conformance.approvals import ASKING
from sessionmgr.testing.adapter_conformance.behaviour import AdapterBehaviour
from sessionmgr.testing.adapter_conformance.cancellation import ENDING
from sessionmgr.testing.adapter_conformance.declarations import DECLARING
from sessionmgr.testing.adapter_conformance.faulty_agents import MISBEHAVING
from sessionmgr.testing.adapter_conformance.undisturbed_runs import PLAYING

ADAPTER_BEHAVIOURS: Final[tuple[AdapterBehaviour, ...]] = (
    *DECLARING.behaviours,
    *PLAYING.behaviours,
    *ENDING.behaviours,
    *ASKING.behaviours,
    *MISBEHAVING,
)
"""The behaviours that every adapter must have."""
