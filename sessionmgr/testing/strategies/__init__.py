"""Strategies for hypothesis: events of a log, scripts of an agent, and faults.

    @given(scripts(), st.lists(faults()))
    def test_my_program_survives(script, faults): ...

All values shrink towards something small: one event, no step, no fault. To run a script in virtual
time, write it into the prompt (`write_script`) of a `scripted` provider. To apply faults, give the
manager a `FaultyStore` and run its method `inject` beside the manager.
"""

from sessionmgr.testing.strategies.event import (
    event_of as event_of,
    events as events,
    histories as histories,
    unknown_events as unknown_events,
)
from sessionmgr.testing.strategies.fault import chaos as chaos, faults as faults
from sessionmgr.testing.strategies.script import scripts as scripts, steps as steps
from sessionmgr.testing.strategies.struct import json_values as json_values, structs as structs

__all__ = [
    "chaos",
    "event_of",
    "events",
    "faults",
    "histories",
    "json_values",
    "scripts",
    "steps",
    "structs",
    "unknown_events",
]
