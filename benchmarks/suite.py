"""A suite: a named set of goals and the contestants measured for them."""

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.contestant import Contestant
from benchmarks.goal import Goal


class UnknownNameError(ValueError):
    """The command line names an unknown suite or goal."""

    def __init__(self, kind: str, name: str, known: Sequence[str]) -> None:
        super().__init__(f"no {kind} is named {name!r}; there are: {', '.join(known)}")
        self.name = name
        self.known = tuple(known)


@dataclass(frozen=True, slots=True)
class Suite:
    """A suite, which `python -m benchmarks NAME` runs."""

    name: str
    goals: tuple[Goal, ...]
    contestants: tuple[Contestant, ...]
    notes: tuple[str, ...] = ()

    def only(self, ids: Sequence[str]) -> "Suite":
        """Return the suite with these goals alone."""
        goals = tuple(each for each in self.goals if each.id in ids)
        return Suite(self.name, goals, self.contestants, self.notes)

    def needed_contestants(self) -> tuple[Contestant, ...]:
        """Return the contestants that the goals need, in their order."""
        wanted = {figure.contestant for goal in self.goals for figure in goal.figures()}
        return tuple(each for each in self.contestants if each.name in wanted)


def choose(names: Sequence[str], suites: Sequence[Suite]) -> list[Suite]:
    """Return the suites of these names, or all suites without names.

    Raises:
        UnknownNameError: No suite has that name.
    """
    by_name = {each.name: each for each in suites}
    for name in names:
        if name not in by_name:
            raise UnknownNameError("benchmark", name, list(by_name))
    return [by_name[name] for name in dict.fromkeys(names or by_name)]


def only(suites: Sequence[Suite], ids: Sequence[str]) -> list[Suite]:
    """Return the suites with these goals alone.

    Raises:
        UnknownNameError: No suite has a goal of that name.
    """
    known = list(dict.fromkeys(goal.id for suite in suites for goal in suite.goals))
    for each in ids:
        if each not in known:
            raise UnknownNameError("goal", each, known)
    return [suite.only(ids) for suite in suites]


def contestants_of(suites: Sequence[Suite]) -> list[Contestant]:
    """Return the contestants of all suites, each once.

    Raises:
        ValueError: Two different contestants have the same name.
    """
    by_name: dict[str, Contestant] = {}
    for each in (entrant for suite in suites for entrant in suite.needed_contestants()):
        if by_name.setdefault(each.name, each) != each:
            raise ValueError(f"two contestants are called {each.name}")
    return list(by_name.values())
