"""The scripted provider: an agent whose actions are the steps of a script.

It needs no program and no network, uses trio's clock (also a `MockClock`) and is deterministic.
Three lines produce a run with the behaviour that you want to test:

>>> async def main():
...     async with open_manager(adapters={"actor": scripted("actor")}) as manager:
...         session = await manager.open_session("actor")
...         run = await session.submit('[{"do": "say", "text": "Hello"}, {"do": "fail"}]')
...         return await run.result()
>>> result = trio.run(main)
>>> result.status, result.text
(<RunStatus.FAILED: 'failed'>, 'Hello')

The prompt is the script, as here, or selects one from a table or a function:
`scripted("actor", scripts={"fix it": (Think(text="hm"), Say(text="done"))})`. Any other prompt is
echoed. The class that `scripted` returns records the provider's input in `log`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

import msgspec
import trio

from sessionmgr.adapter import HARMLESS, Options, PermissionMap, ProviderAdapter
from sessionmgr.model import EMULATED, NATIVE, UNSUPPORTED, Capabilities, PermissionMode
from sessionmgr.otp import Cast
from sessionmgr.testing.script import (
    Alive as Alive,
    Ask as Ask,
    Crash as Crash,
    CrashAdapter as CrashAdapter,
    Deaf as Deaf,
    Emit as Emit,
    Error as Error,
    Fail as Fail,
    Finish as Finish,
    Flood as Flood,
    Hang as Hang,
    Hear as Hear,
    Leave as Leave,
    RateLimited as RateLimited,
    Repeat as Repeat,
    Say as Say,
    Script as Script,
    Scripts as Scripts,
    Step as Step,
    Think as Think,
    Together as Together,
    Tool as Tool,
    TurnEnd as TurnEnd,
    Use as Use,
    Wait as Wait,
    choose_script as choose_script,
    parse_script as parse_script,
    write_script as write_script,
)
from sessionmgr.testing.script_runner import ScriptedCrash as ScriptedCrash, ScriptRunner

if TYPE_CHECKING:
    from sessionmgr.adapter import RunContext
    from sessionmgr.otp import Continue

ALL_IT_DOES = Capabilities(
    streaming=NATIVE,
    reasoning=NATIVE,
    tool_use=NATIVE,
    tool_approval=NATIVE,
    interrupt=NATIVE,
    steer=NATIVE,
    resume=NATIVE,
    structured_output=EMULATED,
    usage=NATIVE,
    cost=NATIVE,
)
"""The default capabilities of a scripted provider."""


class ProviderLogEntry(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A record of one input of the provider; `at` is trio's time."""

    at: float
    run_id: str
    what: Literal["prompt", "append", "interrupt", "over"]
    text: str = ""
    provider_session_id: str | None = None
    mode: PermissionMode | None = None
    resumed_from: str | None = None


class CrashRequest(Cast, frozen=True):
    """Makes the adapter itself crash."""

    why: str


class ScriptedProvider(ProviderAdapter):
    """Plays scripts; `scripted` returns a subclass of it."""

    name: ClassVar[str] = "scripted"
    capabilities: ClassVar[Capabilities] = ALL_IT_DOES
    scripts: ClassVar[Scripts | None] = None
    log: ClassVar[list[ProviderLogEntry]] = []
    played: ClassVar[dict[str, int]] = {}
    """The number of runs of each prompt."""

    async def init(self) -> Continue | None:
        """Prepare for the first run."""
        self._stages: dict[str, ScriptRunner] = {}
        return await super().init()

    async def run(self, run: RunContext) -> None:
        """Play the script that the prompt is or selects.

        Args:
            run: The context of the run.
        """
        attempt = self.played.get(run.prompt, 0)
        self.played[run.prompt] = attempt + 1
        self._note(run, "prompt", run.prompt)
        script = choose_script(type(self).scripts, run.prompt, attempt)
        stage = self._stages[run.run_id] = ScriptRunner(
            run,
            script,
            crash_adapter=self._crash,
            take_note=lambda content: self._note(run, "append", content),
        )
        try:
            await stage.run()
        finally:
            del self._stages[run.run_id]
            self._note(run, "over")

    async def handle_cast(self, message: Cast, /) -> Continue | None:
        """Crash if a script requests it.

        Args:
            message: The message.
        """
        if isinstance(message, CrashRequest):
            raise ScriptedCrash(message.why)
        return await super().handle_cast(message)

    def _crash(self, why: str) -> None:
        self.ref.cast(CrashRequest(why))

    def _note(
        self,
        run: RunContext,
        what: Literal["prompt", "append", "interrupt", "over"],
        text: str = "",
    ) -> None:
        self.log.append(
            ProviderLogEntry(
                at=trio.current_time(),
                run_id=run.run_id,
                what=what,
                text=text,
                provider_session_id=run.provider_session_id,
                mode=run.permission.asked,
                resumed_from=run.resumed_from,
            )
        )


class _Interruptible(ScriptedProvider):
    async def interrupt(self, run: RunContext) -> None:
        self._note(run, "interrupt", run.cancelling.cause if run.cancelling else "")
        await self._stages[run.run_id].interrupt()


class _Steerable(ScriptedProvider):
    async def append(self, run: RunContext, content: str, message_id: str) -> bool:
        stage = self._stages.get(run.run_id)
        if stage is None:
            await trio.lowlevel.checkpoint()
            return False
        return await stage.append(content)


def scripted(
    name: str = "scripted",
    *,
    scripts: Scripts | None = None,
    capabilities: Capabilities = ALL_IT_DOES,
    permissions: PermissionMap = HARMLESS,
    options: type[Options] = Options,
) -> type[ScriptedProvider]:
    """Return a class of scripted provider, for `open_manager(adapters={name: ...})`.

    Without the capability `interrupt` its runs can only be cancelled, and without `steer` they
    accept no messages.

    Args:
        name: The provider's name.
        scripts: The steps for each prompt, as a mapping or a function; without it, a prompt is
            itself a script in JSON.
        capabilities: The declared capabilities.
        permissions: The supported permission modes, and the agent's own name of each.
        options: The struct of the provider's options.
    """
    bases: list[type[ScriptedProvider]] = []
    if capabilities.interrupt is not UNSUPPORTED:
        bases.append(_Interruptible)
    if capabilities.steer is not UNSUPPORTED:
        bases.append(_Steerable)
    made = type(
        "Scripted",
        tuple(bases) or (ScriptedProvider,),
        {
            "__doc__": f"The scripted provider {name!r}.",
            "__module__": __name__,
            "name": name,
            "scripts": staticmethod(scripts) if callable(scripts) else scripts,
            "capabilities": capabilities,
            "permissions": permissions,
            "options": options,
            "log": [],
            "played": {},
        },
    )
    assert issubclass(made, ScriptedProvider)
    return made
