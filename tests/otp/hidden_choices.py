"""Choices that a model cannot observe: it guesses, and withdraws a guess that fails."""

from __future__ import annotations

from collections.abc import Callable


class RuleViolation(AssertionError):
    """Something was seen that the rules do not allow."""


class HiddenChoices:
    """The answers to the questions of one attempt: some given, the rest as suggested."""

    def __init__(self, given: list[bool]) -> None:
        self._given = given
        self.made: list[tuple[bool, bool]] = []

    def guess(self, suggested: bool) -> bool:
        """Answer a question about what cannot be seen."""
        asked = len(self.made)
        answer = self._given[asked] if asked < len(self._given) else suggested
        self.made.append((answer, suggested))
        return answer

    def otherwise(self) -> list[bool] | None:
        """Give the answers for the next attempt; None when there is none left."""
        made = list(self.made)
        while made:
            answer, suggested = made.pop()
            if answer is suggested:
                return [*(answer for answer, _ in made), not answer]
        return None


def some_choice_holds(attempt: Callable[[HiddenChoices], None]) -> None:
    """Make attempts until one succeeds.

    Raises:
        Unexpected: none does; this is what the attempt without any luck met.
    """
    given: list[bool] | None = []
    first: RuleViolation | None = None
    while given is not None:
        guesses = HiddenChoices(given)
        try:
            attempt(guesses)
        except RuleViolation as error:
            first = first or error
            given = guesses.otherwise()
        else:
            return
    assert first is not None
    raise first
