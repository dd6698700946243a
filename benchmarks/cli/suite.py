"""Goals of the start-up, against an interpreter that imports the same dependencies."""

from typing import Final

from benchmarks.contestant import Contestant
from benchmarks.goal import Goal, Ratio, figure
from benchmarks.suite import Suite

CONTESTANTS: Final = tuple(
    Contestant(each, f"benchmarks.cli.startup:{each}")
    for each in ("bare", "anchor", "package", "manager", "usage", "version")
)


def _ratio(name: str, what: str, key: str, bound: float | None) -> Ratio:
    return Ratio(name, what, figure(f"{key}/ms"), (figure("anchor/ms"),), bound, unit="ms")


GOALS: Final[tuple[Goal, ...]] = (
    _ratio("help", "sessionmgr --help ÷ import trio, msgspec", "usage", 2.0),
    _ratio("version", "sessionmgr --version ÷ the same", "version", None),
    _ratio("import", "import sessionmgr ÷ the same", "package", 1.4),
    _ratio("import", "from sessionmgr import open_manager ÷ the same", "manager", None),
    _ratio("bare", "an interpreter that does nothing ÷ the same", "bare", None),
)

CLI: Final = Suite(
    name="cli",
    goals=GOALS,
    contestants=CONTESTANTS,
    notes=("cli: each time a whole process, from its start to its end; wall, medians",),
)
