"""Registry of names for actors. A name is freed before any observer learns of its owner's end.

| in OTP | here |
|---|---|
| `Registry.register/3` | `registry.register(key, value)`, by the actor itself |
| `{:via, Registry, {registry, key}}` | `registry.via(key)` |
| `Registry.dispatch/3` | `registry.dispatch(key, message)` |

A registry is a plain object without a task of its own: use one per tree, and keep it with the
tree's other shared objects.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Literal, TypeVar, overload

import msgspec
from trio.lowlevel import enable_ki_protection

from sessionmgr.otp.context import require_child
from sessionmgr.otp.errors import AlreadyRegistered, MailboxFull
from sessionmgr.otp.message import Cast
from sessionmgr.otp.ref import Ref, ref_of
from sessionmgr.otp.statistics import RegistryStatistics

if TYPE_CHECKING:
    from sessionmgr.otp.actor import Actor
    from sessionmgr.otp.child_task import ChildTask

A = TypeVar("A", bound="Actor")
V = TypeVar("V", bound="Actor", covariant=True)


class RegistryEntry(msgspec.Struct, frozen=True):
    """A name's owner and value."""

    key: Hashable
    ref: Ref[Actor]
    value: object = None


class DispatchResult(msgspec.Struct, frozen=True):
    """Number of receivers of a dispatch, and the receivers whose mailboxes were full."""

    sent: int
    full: list[Ref[Actor]]


class Via(Ref[V]):
    """Reference by name: each use looks up the present owner.

    Without an owner, calls raise `ActorDown` with `NoProc`, and casts are dropped.
    """

    __slots__ = ("_key", "_registry")

    def __init__(self, registry: Registry, key: Hashable) -> None:
        self._registry = registry
        self._key = key

    def __repr__(self) -> str:
        return f"<Via {self._key!r}>"

    @property
    def _record(self) -> ChildTask | None:  # type: ignore[override]
        return self._registry.find_child(self._key)


class Registry:
    """Names, `unique` or `duplicate`, and their owners."""

    def __init__(self, keys: Literal["unique", "duplicate"] = "unique") -> None:
        if keys not in ("unique", "duplicate"):
            raise ValueError(f"keys={keys!r}: must be 'unique' or 'duplicate'")
        self._unique = keys == "unique"
        self._entries: dict[Hashable, dict[ChildTask, RegistryEntry]] = {}
        self._keys: dict[ChildTask, dict[Hashable, None]] = {}

    @enable_ki_protection
    def register(self, key: Hashable, value: object = None) -> None:
        """Register the calling actor under `key` until it ends.

        An actor that has the name already only replaces its value.

        Args:
            key: The name.
            value: A value that `lookup` returns with the name; by default None.

        Raises:
            AlreadyRegistered: Names are unique, and another actor has this one.
            NotInActor: The caller is not a supervised child.
        """
        record = require_child("registry.register()", "call it in the actor's `init`")
        owners = self._entries.setdefault(key, {})
        if self._unique and owners and record not in owners:
            raise AlreadyRegistered(key, next(iter(owners)).name)
        owners[record] = RegistryEntry(key, ref_of(record), value)
        self._keys.setdefault(record, {})[key] = None
        if record.names is None:
            record.names = {}
        record.names[self] = None

    @enable_ki_protection
    def unregister(self, key: Hashable) -> None:
        """Remove the name `key` of the calling actor, if it has it.

        Args:
            key: The name.
        """
        record = require_child("registry.unregister()", "an actor can remove only its own names")
        keys = self._keys.get(record, {})
        if key in keys:
            del keys[key]
            self._remove(key, record)
            if not keys:
                del self._keys[record]

    def lookup(self, key: Hashable) -> list[RegistryEntry]:
        """Return the owners of the name `key`: at most one, or any number if names are duplicate.

        Args:
            key: The name.
        """
        return list(self._entries.get(key, {}).values())

    def keys(self) -> list[Hashable]:
        """Return the names in use."""
        return list(self._entries)

    @overload
    def via(self, key: Hashable) -> Via[Actor]: ...
    @overload
    def via(self, key: Hashable, actor: type[A]) -> Via[A]: ...
    def via(self, key: Hashable, actor: type[A] | None = None) -> Via[A] | Via[Actor]:
        """Return a reference by name, which looks up the present owner on each use.

        Args:
            key: The name.
            actor: The class of the actor, for type checkers.

        Raises:
            ValueError: Names are duplicate here, so a name does not identify one owner.
        """
        if not self._unique:
            raise ValueError("via() needs unique names; use dispatch() or lookup()")
        return Via(self, key)

    def dispatch(self, key: Hashable, message: object) -> DispatchResult:
        """Send a message to all owners of a name: a `Cast` as a cast, anything else as an info.

        Never waits. A full mailbox does not affect the other owners.

        Args:
            key: The name.
            message: The message.
        """
        sent, full = 0, list[Ref["Actor"]]()
        for entry in self.lookup(key):
            try:
                if isinstance(message, Cast):
                    entry.ref.cast(message)
                else:
                    entry.ref.post(message)
                sent += 1
            except MailboxFull:
                full.append(entry.ref)
        return DispatchResult(sent, full)

    def statistics(self) -> RegistryStatistics:
        """Count names and owners."""
        return RegistryStatistics(
            keys=len(self._entries),
            entries=sum(map(len, self._entries.values())),
            owners=len(self._keys),
        )

    def find_child(self, key: Hashable) -> ChildTask | None:
        """Return the library's own record of the owner of a unique name.

        Args:
            key: The name.
        """
        return next(iter(self._entries.get(key, {})), None)

    def remove_child(self, record: ChildTask) -> None:
        """Free the names of a child that has ended.

        Args:
            record: The record of the child.
        """
        for key in self._keys.pop(record, {}):
            self._remove(key, record)

    def _remove(self, key: Hashable, record: ChildTask) -> None:
        owners = self._entries[key]
        del owners[record]
        if not owners:
            del self._entries[key]
