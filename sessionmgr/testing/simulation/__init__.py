"""Simulation: sessions of scripted providers in virtual time, with faults, all from one seed.

`python -m sessionmgr.testing.simulation --seeds 0:200` runs two hundred of them; a seed that finds
something prints the command that shows it again.
"""

from sessionmgr.testing.simulation.simulation import Report as Report, simulate as simulate
from sessionmgr.testing.simulation.world import Options as Options

__all__ = [
    "Options",
    "Report",
    "simulate",
]
