"""What is said to a Claude Code in one run: its prompt, and messages while its turn is on.

A message at the wrong time is held back at a gate: while the context is shortened; and by older
ones, which lose track of it, while a tool's call has no result yet. Newer ones wait for that
themselves. Whether a message has become a matter of the run is known once it was acknowledged.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Final

import trio

from sessionmgr.model import MessageSent
from sessionmgr_adapters.claude.letters import Letters, uuid_of
from sessionmgr_adapters.claude.literal import is_command
from sessionmgr_adapters.claude.orders import Say
from sessionmgr_adapters.claude.waiting import Offer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessionmgr.adapter import RunContext
    from sessionmgr.adapter.connections import PulledConversation as Conversation
    from sessionmgr.model import Json
    from sessionmgr.wire import NoFrame
    from sessionmgr_adapters.claude.frames import Frame, Result
    from sessionmgr_adapters.claude.options import ClaudeOptions
    from sessionmgr_adapters.claude.orders import Told
    from sessionmgr_adapters.claude.state import State

LIFECYCLE: Final = "msg_lifecycle_v1"


class Mail:
    """The messages of one run, and what is known of them."""

    def __init__(
        self,
        run: RunContext,
        conversation: Conversation[Told, Frame | NoFrame],
        options: ClaudeOptions,
        state: State,
    ) -> None:
        self._run: Final = run
        self._conversation: Final = conversation
        self._options: Final = options
        self._state: Final = state
        self._letters: Final = Letters()
        self._held: Final[list[Say]] = []
        self._offers: Final[dict[str, Offer]] = {}
        self._promised: Final[dict[str, str]] = {}
        self._tells_of_lives: bool | None = None

    @property
    def is_open(self) -> bool:
        """Whether something was sent, or is to be, that is not answered."""
        return self._letters.are_open or bool(self._held)

    # --- out -------------------------------------------------------------------------------------

    async def send_prompt(self, prompt: Json) -> None:
        """Ask what the run is to ask."""
        letter = self._letter(str(uuid.uuid4()), prompt)
        self._letters.send(letter.uuid, alone=True)
        await self._conversation.send(letter)

    async def add(self, content: str, message_id: str) -> bool:
        """Offer another message, and say whether it is a matter of this run now."""
        at = self._options.follow_up
        letter = self._letter(uuid_of(message_id), content, None if at == "next" else at)
        offer = self._offers[letter.uuid] = Offer()
        if not self._is_gate_closed:
            await self._post(letter)
            await offer.settled.wait()
            return offer.heard
        self._held.append(letter)
        with trio.move_on_after(self._run.grace / 2):  # who waits for us does so for its whole
            await offer.settled.wait()
            return offer.heard
        self._promised[letter.uuid] = message_id
        return True

    async def send_held(self) -> None:
        """Send what was held, if the gate is open."""
        await trio.lowlevel.checkpoint()
        while self._held and not self._is_gate_closed:
            await self._post(self._held.pop(0))

    def drop_held(self) -> None:
        """Send no more of what was held, and tell of what was to be this run's all the same."""
        for letter in self._held:
            self._offers[letter.uuid].settle(heard=False)
            message_id = self._promised.get(letter.uuid)
            if message_id is not None:
                said = MessageSent(
                    message_id=message_id,
                    content=str(letter.content),
                    follow_up=True,
                    state="dropped",
                )
                self._run.emit_nowait(said)
        self._held.clear()

    def end(self) -> None:
        """Let nobody wait any more."""
        self.drop_held()
        for offer in self._offers.values():
            offer.settle(heard=False)

    def _letter(self, name: str, content: Json, priority: str | None = None) -> Say:
        is_text = not self._options.slash_commands
        return Say(content=content, uuid=name, priority=priority, is_text=is_text)

    @property
    def _is_gate_closed(self) -> bool:
        is_in_a_tool = not self._tells_of_lives and bool(self._state.tools)
        return self._state.compacting or is_in_a_tool

    async def _post(self, letter: Say) -> None:
        commands = not letter.is_text and is_command(str(letter.content))
        self._letters.send(letter.uuid, commands=commands)
        await self._conversation.send(letter)
        if self._tells_of_lives is False:
            self._hear_of(letter.uuid)  # nobody will say more of it before it is taken

    # --- what is heard of it ---------------------------------------------------------------------

    def begin(self, capabilities: Sequence[str]) -> None:
        """Take in what the agent can tell of messages."""
        if self._tells_of_lives is None:
            self._tells_of_lives = LIFECYCLE in capabilities
        if not self._tells_of_lives:
            for name in self._offers:
                self._hear_of(name)

    def live(self, name: str, state: str) -> None:
        """Take in what is told of a message's life."""
        self._tells_of_lives = True
        self._letters.live(name, state)
        self._hear_of(name)

    def echo(self, name: str) -> None:
        """Take in that a message came back."""
        self._letters.echo(name)
        self._hear_of(name)

    def settle(self, result: Result) -> None:
        """Take in a result: one of a turn that nobody asked for answers nothing."""
        is_unasked = result.origin is not None and result.user_message_uuids is None
        answered = [] if is_unasked else result.user_message_uuids
        self._letters.settle(answered, of_model=bool(result.num_turns))

    def _hear_of(self, name: str) -> None:
        if name in self._offers:
            self._offers[name].settle(heard=True)
