"""A behaviour of adapters that can be tested, named by a sentence."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from sessionmgr.testing.adapter_conformance.case import AdapterCase
from sessionmgr.testing.adapter_conformance.harness import ConformanceHarness, open_harness

OpenCase: TypeAlias = Callable[[Path], AbstractAsyncContextManager[AdapterCase]]
"""Opens the case of an adapter, with a directory of its own."""
Law: TypeAlias = Callable[[ConformanceHarness], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class AdapterBehaviour:
    """A behaviour that can be tested on any adapter whose case has what it needs."""

    name: str
    law: Law
    prompts: tuple[str, ...] = ()
    """The fields of the case that it needs."""
    capabilities: tuple[str, ...] = ()
    """The capabilities that it needs."""

    async def __call__(self, open_case: OpenCase, place: Path) -> None:
        """Test it.

        Raises:
            AssertionError: The adapter behaves otherwise.
        """
        async with open_case(place) as case, open_harness(case, place) as stage:
            await self.law(stage)

    def __str__(self) -> str:
        return self.name

    def left_out(self, case: AdapterCase) -> str | None:
        """Return the reason why it cannot be tested on a case; None if it can."""
        for field_ in self.prompts:
            if getattr(case, field_) is None:
                return f"the case has no prompt {field_!r}"
        for capability in self.capabilities:
            if case.adapter.capabilities.support(capability) == "unsupported":
                return f"{case.adapter.name} does not have the capability {capability!r}"
        return None


@dataclass(slots=True)
class AdapterBehaviourGroup:
    """Behaviours of one subject, in their order."""

    behaviours: list[AdapterBehaviour] = field(default_factory=list[AdapterBehaviour])

    def register(self, *prompts: str, capabilities: tuple[str, ...] = ()) -> Callable[[Law], Law]:
        """Add a behaviour with its requirements."""

        def add(law: Law) -> Law:
            name = getattr(law, "__name__", "law")
            self.behaviours.append(AdapterBehaviour(name, law, prompts, capabilities))
            return law

        return add
