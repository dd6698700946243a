"""Simulation: sessions of scripted providers in virtual time, with faults, all from one seed.

`python -m tests.simulation --seeds 0:200` runs two hundred of them; a seed that finds
something prints the command that shows it again.
"""

from tests.simulation.simulation import SimulationReport as SimulationReport, simulate as simulate
from tests.simulation.world import SimulationOptions as SimulationOptions

__all__ = [
    "SimulationOptions",
    "SimulationReport",
    "simulate",
]
