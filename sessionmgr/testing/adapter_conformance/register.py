"""All laws, in their order."""

from typing import Final

from sessionmgr.testing.adapter_conformance.asking import ASKING
from sessionmgr.testing.adapter_conformance.behaviour import Behaviour
from sessionmgr.testing.adapter_conformance.declaring import DECLARING
from sessionmgr.testing.adapter_conformance.ending import ENDING
from sessionmgr.testing.adapter_conformance.misbehaving import MISBEHAVING
from sessionmgr.testing.adapter_conformance.playing import PLAYING

ADAPTER_BEHAVIOURS: Final[tuple[Behaviour, ...]] = (
    *DECLARING.behaviours,
    *PLAYING.behaviours,
    *ENDING.behaviours,
    *ASKING.behaviours,
    *MISBEHAVING,
)
"""What every adapter does."""
