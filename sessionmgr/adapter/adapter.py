"""What an adapter is: an actor that knows one provider, and plays runs on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from sessionmgr.adapter.health import Health
from sessionmgr.adapter.options import Options
from sessionmgr.adapter.permission_map import HARMLESS, PermissionMap
from sessionmgr.model import Capabilities
from sessionmgr.otp import Actor
from sessionmgr.process.environment import Declared

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sessionmgr.adapter.run_context import RunContext, RunSpec


class ProviderAdapter(Actor):
    """Plays runs on one provider.

    Only `name`, `capabilities` and `run` are needed. The nursery in which runs are played, their
    ends, clocks and crashes, and the way of their events into the record are the port's work.
    """

    name: ClassVar[str]
    """What users call the provider."""
    display_name: ClassVar[str | None] = None
    capabilities: ClassVar[Capabilities] = Capabilities()
    runs_commands: ClassVar[bool] = False
    """Whether a prompt is a command as a whole, which runs without an agent's judgement."""
    permissions: ClassVar[PermissionMap] = HARMLESS
    options: ClassVar[type[Options]] = Options
    serves: ClassVar[frozenset[str]] = frozenset()
    """Which of `tools_allowed`, `tools_denied`, `directories` it passes on; others are refused."""
    resume_command: ClassVar[str | None] = None
    """The command line with which its program continues a session; `{id}` is the session's id."""
    environment: ClassVar[Declared] = Declared()
    """Which variables of ours the provider's programs are to have."""

    async def run(self, run: RunContext) -> None:
        """Play one run: tell what happens, and how it ends.

        It may be cancelled anywhere, after `interrupt` has had its time. To raise is to crash this
        run alone.
        """
        raise NotImplementedError

    async def interrupt(self, run: RunContext) -> None:
        """Ask the provider to end the run; `run` goes on beside it, and reads what it says."""
        raise NotImplementedError

    async def append(self, run: RunContext, content: str, message_id: str) -> bool:
        """Give a message to the turn that runs; False if there is no turn for it any more."""
        raise NotImplementedError

    def release(self, provider_session_id: str) -> None:
        """Release what is kept for a provider session's next run: none is expected soon.

        It does not wait. A later run starts what it needs.
        """
        return

    async def health(self) -> Health:
        """Say whether a run could be started now."""
        return Health()

    @classmethod
    def readiness(cls, options: Options, env: Mapping[str, str], cwd: str) -> Health:
        """Check whether a run with these options could start: program installed and logged in.

        It reads only files and `env`, the environment of its programs, and starts nothing.
        """
        return Health()

    @classmethod
    def declares(cls, environ: Mapping[str, str]) -> Declared:
        """Say which variables of ours its programs are to have, where ours are `environ`."""
        return cls.environment

    @classmethod
    def fault(cls, spec: RunSpec) -> str | None:
        """Say what could never go well, where that is known before anything is started.

        As `field: why`; a run finds out for itself as well.
        """
        return None

    @classmethod
    def offers(cls, options: Options) -> Capabilities:
        """Say what it can do for a run with these options: never more than its `capabilities`."""
        return cls.capabilities

    @classmethod
    def can_interrupt(cls) -> bool:
        """Whether it has a polite way to end a run."""
        return cls.interrupt is not ProviderAdapter.interrupt

    @classmethod
    def can_append(cls) -> bool:
        """Whether it can give a message to a turn that runs."""
        return cls.append is not ProviderAdapter.append
