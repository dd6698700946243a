"""One law for adapters, by the name of a sentence."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from sessionmgr.testing.adapter_conformance.case import AdapterCase
from sessionmgr.testing.adapter_conformance.harness import ConformanceHarness, open_harness

OpenCase: TypeAlias = Callable[[Path], AbstractAsyncContextManager[AdapterCase]]
"""Makes an adapter ready to be tried, with a directory of its own."""
Law: TypeAlias = Callable[[ConformanceHarness], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class AdapterBehaviour:
    """A law that can be tried on any adapter for which its case has what it needs."""

    name: str
    law: Law
    prompts: tuple[str, ...] = ()
    """Fields of the case that it needs."""
    capabilities: tuple[str, ...] = ()
    """Capabilities that it is about."""

    async def __call__(self, open_case: OpenCase, place: Path) -> None:
        """Try it.

        Raises:
            AssertionError: The adapter does otherwise.
        """
        async with open_case(place) as case, open_harness(case, place) as stage:
            await self.law(stage)

    def __str__(self) -> str:
        return self.name

    def left_out(self, case: AdapterCase) -> str | None:
        """Return why it cannot be tried; None if it can."""
        for field_ in self.prompts:
            if getattr(case, field_) is None:
                return f"the case names nothing for {field_!r}"
        for capability in self.capabilities:
            if case.adapter.capabilities.support(capability) == "unsupported":
                return f"{case.adapter.name} does not have the capability {capability!r}"
        return None


@dataclass(slots=True)
class AdapterBehaviourGroup:
    """Laws that belong together, in their order."""

    behaviours: list[AdapterBehaviour] = field(default_factory=list[AdapterBehaviour])

    def law(self, *prompts: str, capabilities: tuple[str, ...] = ()) -> Callable[[Law], Law]:
        """Add a law, and say what it needs."""

        def add(law: Law) -> Law:
            name = getattr(law, "__name__", "law")
            self.behaviours.append(AdapterBehaviour(name, law, prompts, capabilities))
            return law

        return add
