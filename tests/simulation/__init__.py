"""Simulation: sessions of scripted providers in virtual time, with faults, all from one seed.

`python -m tests.simulation --seeds 0:200` runs two hundred seeds; for a seed with a violation it
prints the command that repeats it.
"""

from tests.simulation.simulation import SimulationReport as SimulationReport, simulate as simulate
from tests.simulation.world import SimulationOptions as SimulationOptions

__all__ = [
    "SimulationOptions",
    "SimulationReport",
    "simulate",
]
