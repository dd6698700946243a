"""Every exception of ours, as one tree.

SessionmgrError
├── CommandLineError                what a user has typed, or written into a file of settings
│   ├── CommandLineInvalid          wrong usage; says what is right
│   ├── ConfigurationInvalid        a setting; says in which file and line, or which variable
│   ├── NameAmbiguous               several sessions or runs match the name (a LookupError too)
│   ├── NothingStored               nothing has been run yet
│   ├── NobodyThere                 an order for a run that no program looks after
│   └── OrderRefused                an order that was taken and could not be carried out
├── ModelError                      values that do not fit together
│   └── IllegalTransition           an event that may not follow in the life of a run
├── SessionError                    sessions with agents
│   ├── ArgumentTypeInvalid         an argument has a wrong type (a TypeError too)
│   ├── ArgumentValueInvalid        an argument has an invalid value (a ValueError too)
│   ├── StartRefused                nothing was started, and nothing stored
│   │   ├── ProviderUnknown         no adapter of that name (a LookupError too)
│   │   ├── AdapterBroken           an installed adapter cannot be loaded
│   │   ├── CapabilityMissing       the provider cannot do what is required
│   │   │   └── BudgetUnenforceable the provider reports no figure for the budget
│   │   ├── BudgetSpent             the session's or the manager's budget is used up
│   │   ├── PermissionRefused       the provider has no such mode
│   │   ├── OptionInvalid           an option is unknown or of a wrong type (a ValueError too)
│   │   ├── WishRefused             the provider cannot be told that
│   │   ├── WishInvalid             no provider could be told that (a ValueError too)
│   │   ├── DirectoryMissing        a directory of the session or the run is not there
│   │   ├── SessionIsClosed         the session takes no more runs
│   │   ├── SessionBusy             another manager has the session, and lives
│   │   ├── KeeperLost              nobody could write down that the run was let in
│   │   ├── ProviderNotReady        the agent is not installed, or not logged in
│   │   ├── ProviderDown            the provider's tree gave up; it is tried again later
│   │   └── ManagerClosing          the manager admits nothing any more
│   ├── NotPausable                 the run could not be resumed
│   ├── NotResumable                what was paused cannot go on
│   ├── InboxFull                   more is emitted, or asked, than a session can take
│   ├── ManagerDown                 the manager gave up; __cause__ says why
│   ├── BatchError                  many jobs at a time
│   │   ├── JobsInvalid             some jobs cannot be done as they are written
│   │   ├── RulesInvalid            approval rules that say nothing, or too much
│   │   ├── BatchBusy               another process is at this batch
│   │   ├── OutDirectoryTaken       the directory holds the batch of another jobs file
│   │   ├── OtherStore              attempts to go on with are in a store that is not this one
│   │   ├── LedgerUnusable          what has become of the jobs cannot be written down
│   │   │   └── OutUnusable         the batch's directory cannot be created or written
│   │   ├── ResultsUnwritable       the files that say what came of them cannot be written
│   │   ├── HostLost                the process in which jobs ran is no more
│   │   └── BatchDown               the batch gave up; __cause__ says why
│   ├── PortalClosed                the portal was closed before the call or during it
│   ├── PortalDeadlock              a blocking call in the portal's own thread
│   └── NotInTrio                   called from outside the manager's trio.run
├── StoreError                      where events are kept
│   ├── StoreUnusable               the file, or what lies under it; says what to do
│   │   ├── StorePathInvalid        there can be no store at this path
│   │   ├── NotAStore               the file belongs to something else
│   │   ├── StoreTooNew             a newer version wrote it
│   │   ├── StoreReadOnly           it may not be written
│   │   ├── StoreDamaged            it is corrupt
│   │   ├── StoreFull               no room is left
│   │   ├── StoreBusy               another process writes, for too long
│   │   ├── StoreSilent             it does not answer
│   │   └── StoreFailed             the system refused something else
│   ├── StoreClosed                 used after its end
│   ├── AppendRefused               nothing of the append was stored
│   │   ├── AppendInvalid           no store could take it (a ValueError too)
│   │   ├── StaleFence              a newer keeper has the session
│   │   ├── NumberTaken             something else has that number
│   │   ├── NumberGap               numbers before it are missing
│   │   └── AlreadyEnded            the run has its terminal already
│   ├── UnknownId                   nothing has that id (a LookupError too)
│   ├── AmbiguousId                 several ids begin like that (a LookupError too)
│   ├── IdTaken                     the id stands for something else
│   ├── LeaseHeld                   somebody else has it, and lives
│   └── LeaseLost                   it is no longer ours
├── ProcessError                    starting children and living with them
│   ├── CommandInvalid              no system could start this (a ValueError too)
│   ├── VariableRefused             a child may not be given this (a ValueError too)
│   ├── ResumeIdRefused             no id of a provider's session (a ValueError too)
│   ├── InputFull                   a child does not read what it is sent
│   ├── DescriptorsExhausted        a child more would leave too few open files
│   ├── SpawnFailed                 the system would not start it
│   │   ├── ProgramNotFound         there is no such program, or not its interpreter
│   │   ├── NotExecutable           the file is there and cannot be run
│   │   └── NoSuchDirectory         there is no such directory to run it in
│   ├── ProfileRefused              secret settings cannot be passed in a private file
│   ├── TreeLost                    whoever was to start it was killed meanwhile
│   └── LauncherFailed              nothing can be started any more
└── OtpError                        actors and supervisors
    ├── ActorDown                   the callee is dead, or died before it answered
    ├── CallTimeout                 no answer in time (a trio.TooSlowError too)
    ├── CallCycle                   the call would wait for itself
    ├── MailboxFull                 a cast found no room
    ├── AlreadyReplied              one call, two replies
    ├── NotAnActor                  a message for something that has no mailbox
    ├── NotInActor                  only an actor may do this, and nobody else called
    ├── StartFailed                 a child did not come up; __cause__ says why
    ├── RestartIntensityExceeded    a supervisor gave up; __cause__ is the last crash
    ├── DuplicateChild              the id is taken
    ├── UnknownChild                no child of that id
    ├── ChildRunning                it runs: stop it first
    ├── MaxChildren                 the supervisor is full
    ├── SupervisorNotRunning        used outside its block
    │   └── SupervisorStopping      used while its block ends
    ├── AlreadyRegistered           the name is taken
    ├── RunCrashed                  a task ended with an exception: __cause__
    └── RunCancelled                a task was cancelled before it had a result
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessionmgr.model.capability import Negotiation
    from sessionmgr.otp.exit_reason import ExitReason


_MOST_SHOWN = 200
"""Characters of a value that a message shows; the whole value is the error's attribute."""


class SessionmgrError(Exception):
    """Whatever this library raises on purpose."""


class CommandLineError(SessionmgrError):
    """Something about what a user has typed, or written into a file of settings."""


class CommandLineInvalid(CommandLineError):
    """This is not how the command is used."""


class ConfigurationInvalid(CommandLineError):
    """A setting is unknown, or has a value that it cannot have."""

    def __init__(self, where: str, why: str) -> None:
        super().__init__(f"{where}: {why}")
        self.where = where


class NameAmbiguous(CommandLineError, LookupError):
    """A name that a user has typed matches several things; `candidates` describes each of them."""

    def __init__(self, why: str, candidates: Sequence[str], remedy: str) -> None:
        super().__init__("\n".join([f"{why}; {remedy}:", *(f"  {each}" for each in candidates)]))
        self.candidates = tuple(candidates)


class StoreEmpty(CommandLineError):
    """Nothing has been run yet, and so nothing is stored."""


class RunNotManaged(CommandLineError):
    """An order was for a run that no program looks after now."""


class RemoteRequestFailed(CommandLineError):
    """Whoever looks after the run has answered, and could not do it."""


class ModelError(SessionmgrError):
    """Values that do not fit together."""


class IllegalTransition(ModelError, ValueError):
    """An event was about to be written that may not follow in the life of a run."""

    def __init__(self, status: str, event_type: str) -> None:
        super().__init__(f"a run that is {status} cannot go on with {event_type}")
        self.status = status
        self.event_type = event_type


class SessionError(SessionmgrError):
    """Something about sessions with agents."""


class ArgumentTypeInvalid(SessionError, TypeError):
    """An argument of a call has a wrong type."""

    def __init__(self, call: str, name: str, value: object, wanted: str) -> None:
        super().__init__(f"{call}: {name} must be {wanted}, not {_shorten(value)}")
        self.name = name
        self.value = value


class ArgumentValueInvalid(SessionError, ValueError):
    """An argument of a call has an invalid value."""

    def __init__(self, call: str, name: str, value: object, why: str) -> None:
        super().__init__(f"{call}: {name} is {_shorten(value)}: {why}")
        self.name = name
        self.value = value


def _shorten(value: object) -> str:
    said = repr(value)
    return said if len(said) <= _SHOWN else f"{said[:_SHOWN]}…"


_SHOWN = 100


class StartRefused(SessionError):
    """A run was refused: nothing was started, and nothing stored."""


class ProviderUnknown(StartRefused, LookupError):
    """There is no adapter of that name."""

    def __init__(self, name: str, known: Sequence[str], nearest: Sequence[str]) -> None:
        hint = f"did you mean {nearest[0]!r}? " if nearest else ""
        there = f"there are: {', '.join(known)}" if known else "none is installed"
        super().__init__(f"there is no provider {name!r}; {hint}{there}")
        self.name = name
        self.known = tuple(known)


class AdapterBroken(StartRefused):
    """An adapter is installed, and cannot be loaded."""

    def __init__(self, name: str, where: str, why: str) -> None:
        super().__init__(f"the adapter {name!r} ({where}) cannot be loaded: {why}")
        self.name = name
        self.where = where


class CapabilityMissing(StartRefused):
    """The provider cannot do what is required of it."""

    def __init__(self, provider: str, negotiation: Negotiation) -> None:
        from sessionmgr.model.capability import (  # only here, and only then
            CAPABILITIES,
            describe_capability,
        )

        missing = ", ".join(map(describe_capability, negotiation.missing))
        lost = set(negotiation.missing) <= set(CAPABILITIES)
        remedy = ": leave it out, or only prefer it (--prefer)" if lost else ""
        super().__init__(f"{provider} does not support {missing}{remedy}")
        self.provider = provider
        self.negotiation = negotiation


class BudgetUnenforceable(CapabilityMissing):
    """A budget was set for a provider that reports no figure for it."""

    def __init__(self, provider: str, negotiation: Negotiation, unit: str, amount: float) -> None:
        super().__init__(provider, negotiation)
        counts, kind = ("cost", "dollar") if unit == "usd" else ("usage", "token")
        self.why = (
            f"{provider} reports no {counts}, so a {kind} budget cannot be enforced; "
            f"remove the budget for {provider}"
        )
        self.args = (f"budget of {amount:g} {unit}: {self.why}",)


class BudgetExhausted(StartRefused):
    """The budget of the session or of the manager is used up."""

    def __init__(self, why: str) -> None:
        super().__init__(f"{why}; raise it to start more runs")


class PermissionRefused(StartRefused):
    """The provider has no mode that would be no wider than the one asked for."""

    def __init__(self, provider: str, mode: str, has: Sequence[str]) -> None:
        super().__init__(
            f"{provider} has no permission mode {mode}; it has: {', '.join(has) or 'none'}"
        )
        self.provider = provider
        self.mode = mode
        self.has = tuple(has)


class OptionInvalid(StartRefused, ValueError):
    """An option is not one of this provider's, or has a value of another type."""

    def __init__(self, provider: str, why: str) -> None:
        super().__init__(f"options of {provider}: {why}")
        self.provider = provider


class RunRequestUnsupported(StartRefused):
    """The provider has no way to do what a field of the wish asks of it."""

    def __init__(self, provider: str, field: str) -> None:
        super().__init__(f"{provider} does not support {field}: leave it out")
        self.provider = provider
        self.field = field


class RunRequestInvalid(StartRefused, ValueError):
    """What a field of the wish says makes no sense to its provider, or to anybody."""

    def __init__(self, provider: str, fault: str) -> None:
        field, _, why = fault.partition(": ")
        super().__init__(fault)
        self.provider = provider
        self.field = field.partition(".")[0]
        self.why = why


class DirectoryMissing(StartRefused):
    """The session's directory is not there."""

    def __init__(self, path: str) -> None:
        what = "not a directory" if os.path.exists(path) else "no such directory"  # noqa: PTH110
        super().__init__(f"{what}: {path}")
        self.path = path


class ProviderNotReady(StartRefused):
    """The provider's program is not installed or has no login."""

    def __init__(self, provider: str, detail: str) -> None:
        super().__init__(f"{provider}: {detail}")
        self.provider = provider
        self.detail = detail


class SessionIsClosed(StartRefused):
    """The session takes no more runs."""

    def __init__(self, session_id: str) -> None:
        super().__init__(
            f"{session_id} is closed: it takes no more runs until you reopen it with "
            "manager.session(id, reopen=True)"
        )
        self.session_id = session_id


class SessionBusy(StartRefused):
    """Another manager has the session, and lives: two would write one record."""

    def __init__(self, session_id: str, holder: object, expires: int = 0, detail: str = "") -> None:
        said = f": {detail}" if detail else ""
        super().__init__(f"{session_id} is in use by another manager{said}")
        self.session_id = session_id
        self.holder = holder
        self.expires = expires
        """When its lease expires without renewal, in milliseconds since 1970."""


class InboxFull(SessionError):
    """A session takes no more: the sender has not waited for room or runs, or the store hangs."""

    def __init__(self, items: int, size: int) -> None:
        super().__init__(
            f"{items} runs, questions or batches of events, of {size} bytes, wait in this session: "
            "wait for room between two reads (`await run.room()`), for answers, or for a run's end"
        )
        self.items = items
        self.size = size


class RecorderUnavailable(StartRefused):
    """Nobody could write down that the run was let in, and so it was not."""

    def __init__(self, session_id: str) -> None:
        super().__init__(f"the record of {session_id} cannot be kept now: nothing was started")
        self.session_id = session_id


class ProviderDown(StartRefused):
    """The provider's tree gave up; it is tried again after a while."""

    def __init__(self, provider: str, why: str, retry_in: float) -> None:
        super().__init__(f"{provider} is down ({why}); it is tried again in {retry_in:.0f} s")
        self.provider = provider
        self.retry_in = retry_in


class ManagerClosing(StartRefused):
    """The manager is on its way out, or not yet in."""

    def __init__(self, why: str = "the manager is closing and admits no more runs") -> None:
        super().__init__(why)


class NotPausable(SessionError):
    """The run could not be resumed if it were paused now."""

    def __init__(self, run_id: str, why: str) -> None:
        super().__init__(f"{run_id} cannot be paused: {why}")
        self.run_id = run_id


class NotResumable(SessionError):
    """What was paused cannot go on as it was."""

    def __init__(self, run_id: str, why: str) -> None:
        super().__init__(f"{run_id} cannot be resumed: {why}")
        self.run_id = run_id


class ManagerDown(SessionError):
    """The manager gave up; `__cause__` is what its tree could not get over."""

    def __init__(self, why: object) -> None:
        super().__init__(f"the session manager gave up: {why}")


class BatchError(SessionError):
    """Something about many jobs at a time."""


class JobsInvalid(BatchError, ValueError):
    """Some jobs cannot be done as they are written; nothing was started."""

    def __init__(self, problems: Sequence[str], unread: int = 0) -> None:
        more = [f"and {unread} more"] if unread else []
        super().__init__("\n".join([*problems, *more]))
        self.problems = tuple(problems)


class RulesInvalid(BatchError, ValueError):
    """A file of approval rules cannot be used."""

    def __init__(self, where: str, why: str) -> None:
        super().__init__(f"{where}: {why}")
        self.where = where
        self.why = why


class BatchBusy(BatchError):
    """Another process is at the same batch."""

    def __init__(self, directory: str, holder: str) -> None:
        super().__init__(f"{directory} is being worked on by {holder}: one at a time")
        self.directory = directory
        self.holder = holder


class OutDirectoryTaken(BatchError):
    """A batch's directory holds the batch of another jobs file."""

    def __init__(self, directory: str, holder: str, jobs: str) -> None:
        super().__init__(
            f"{directory} already holds the batch of {holder}. Use --out DIR to keep them apart;"
            f" if {jobs} is that file, moved or renamed, --force takes the directory over"
        )
        self.directory = directory
        self.holder = holder


class StoreMismatch(BatchError):
    """A batch has attempts to continue, and the store in use has no record of them."""

    def __init__(self, directory: str, jobs: int, store: str | None) -> None:
        are, them = ("1 job is", "it") if jobs == 1 else (f"{jobs} jobs are", "them")
        earlier = "the store of the earlier run" if store is None else store
        super().__init__(
            f"{directory}: {are} to be continued, and the store in use has no record of {them}."
            f" Run the batch with {earlier} (--store), or start {them} over, which may repeat tool"
            " calls (--retry-from fresh)"
        )
        self.directory = directory
        self.jobs = jobs
        self.store = store


def _remedy(why: str) -> str:
    """Return the remedy for a ledger error whose reason does not contain it."""
    if "not a database" in why or "malformed" in why:
        return "; restore a copy of it, or run the jobs anew in another directory (--out DIR)"
    if "full" in why or os.strerror(errno.ENOSPC) in why:
        return "; free some space, then run the same command again"
    return ""


class LedgerUnusable(BatchError):
    """What has become of the jobs cannot be read or written down."""

    def __init__(self, path: str, why: object) -> None:
        super().__init__(f"{path} cannot be used as a batch's ledger: {why}{_remedy(str(why))}")
        self.path = path
        self.why = str(why)


class OutDirectoryUnusable(LedgerUnusable):
    """A batch's directory cannot be created or written."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(path, why)
        self.args = (f"a batch cannot use the directory {path}: {why}; choose another one (--out)",)


class ResultsUnwritable(BatchError):
    """What came of the jobs stands in the ledger, and cannot be written where it is looked for."""

    def __init__(self, path: object, why: object) -> None:
        super().__init__(f"{path} cannot be written: {why}; the ledger has all that is done")
        self.path = str(path)
        self.why = str(why)


class HostLost(BatchError):
    """The process in which the jobs ran is no more."""

    def __init__(self, why: str) -> None:
        super().__init__(f"the host of the jobs is lost: {why}")
        self.why = why


class BatchDown(BatchError):
    """The batch gave up; `__cause__` is what it could not get over."""

    def __init__(self, why: object) -> None:
        super().__init__(f"the batch gave up: {why}")


class NotInTrio(SessionError):
    """Only tasks of the manager's own `trio.run` may use it."""

    def __init__(self, *, of_another: bool = False) -> None:
        where = (
            "the manager was opened in another trio.run"
            if of_another
            else "this is not a trio task: it is asyncio, a plain function or a thread"
        )
        super().__init__(
            f"{where}. A manager runs on trio: start your program with trio.run(main), or use "
            "`with sessionmgr.open_portal() as portal` from asyncio, FastAPI, Jupyter and plain "
            "threads; from another thread of a trio program, go through "
            "trio.from_thread.run(..., trio_token=manager.token)"
        )


class PortalClosed(SessionError):
    """The portal was closed before the call or during it; the error of its manager is the cause."""

    def __init__(self, call: str, *, during: bool = False) -> None:
        when = "was closed before this call ended" if during else "is closed"
        super().__init__(
            f"{call}: the portal {when}: call it within `with open_portal(...) as portal`, and "
            "wait for the results that you need before the block ends"
        )
        self.call = call


class PortalDeadlock(SessionError):
    """A blocking call was made in the portal's own thread, where it would wait for itself."""

    def __init__(self, call: str) -> None:
        super().__init__(
            f"{call}: this is the portal's own thread, in which a blocking call would wait for "
            "itself: in a callback of a future, pass the work on to a thread of yours, or use "
            "portal.submit()"
        )
        self.call = call


class StoreError(SessionmgrError):
    """Something about the store of events."""


class StoreUnusable(StoreError):
    """The file, or what lies under it, does not serve; nothing was overwritten."""

    what = "cannot be used"
    remedy = "see what the system says about it"

    def __init__(self, path: str, why: object = "") -> None:
        super().__init__(f"{path} {self.what}{f' ({why})' if why else ''}: {self.remedy}")
        self.path = path
        self.why = str(why)


class StorePathInvalid(StoreUnusable):
    """There can be no store at this path."""

    what = "is no place for a store"
    remedy = "name a file in a directory that exists"


class NotAStore(StoreUnusable):
    """The file is there, and belongs to something else."""

    what = "is not a store of sessions"
    remedy = "it was left as it is; name another file"


class StoreTooNew(StoreUnusable):
    """A newer version of this library wrote the file."""

    what = "was written by a newer version"
    remedy = "upgrade sessionmgr, or name another file"


class StoreReadOnly(StoreUnusable):
    """The file, or its directory, may not be written by this user."""

    what = "may not be written"
    remedy = "a store needs write permission for its file and for the directory that holds it"


class StoreDamaged(StoreUnusable):
    """The file is corrupt."""

    what = "is damaged"
    remedy = "it was left as it is; restore a copy, or move it away to begin anew"


class StoreFull(StoreUnusable):
    """No room is left; what was acknowledged stands, the rest was not stored."""

    what = "has no room to grow"
    remedy = (
        "free space on its disk, or raise the limit or quota, then try again (sessionmgr prune "
        "shrinks the file, but needs a few MB of room for its log)"
    )


class StoreBusy(StoreUnusable):
    """Another process held the write lock for longer than we wait."""

    what = "is being written by another process"
    remedy = "try again, or find out who holds it (lsof, fuser)"


class StoreFailed(StoreUnusable):
    """The system refused something that has no better name here."""

    what = "could not be read or written"


class StoreTimeout(StoreUnusable):
    """It has not answered for as long as anybody could wait."""

    what = "does not answer"
    remedy = "find out what holds it or its disk up"


class StoreClosed(StoreError):
    """The store was used after its end."""

    def __init__(self, where: str) -> None:
        super().__init__(f"{where} is closed: use it inside its `async with` block")


class AppendRefused(StoreError):
    """Nothing of the append was stored."""

    def __init__(self, session_id: str, why: str) -> None:
        super().__init__(f"session {session_id} refuses this append: {why}")
        self.session_id = session_id


class AppendInvalid(AppendRefused, ValueError):
    """No store could take such an append."""


class StaleFence(AppendRefused):
    """A newer keeper has the session: this one is to stop."""

    def __init__(self, session_id: str, fence: int, current: int) -> None:
        super().__init__(session_id, f"its fence is {fence}, and {current} is the present one")
        self.fence = fence
        self.current = current


class NumberTaken(AppendRefused):
    """Another batch has this number."""

    def __init__(self, session_id: str, first: int, last: int) -> None:
        super().__init__(session_id, f"another batch has number {first}, the last is {last}")
        self.first = first
        self.last = last


class NumberGap(AppendRefused):
    """Numbers before the batch's first are missing."""

    def __init__(self, session_id: str, first: int, last: int) -> None:
        super().__init__(session_id, f"it begins with {first}, but {last} is the last so far")
        self.first = first
        self.last = last


class AlreadyEnded(AppendRefused):
    """The run has its terminal event; it gets no second one, and no other status."""

    def __init__(self, session_id: str, run_id: str, status: str) -> None:
        super().__init__(session_id, f"run {run_id} has ended already: {status}")
        self.run_id = run_id
        self.status = status


class UnknownId(StoreError, LookupError):
    """Nothing in the store has that id."""

    def __init__(self, kind: str, id: str) -> None:
        super().__init__(f"no {kind} {id!r} is stored")
        self.kind = kind
        self.id = id


class AmbiguousId(StoreError, LookupError):
    """Several ids begin like that; `candidates` holds some of them."""

    def __init__(self, prefix: str, candidates: Sequence[str]) -> None:
        super().__init__(f"{prefix!r} is ambiguous: {', '.join(candidates)}")
        self.prefix = prefix
        self.candidates = tuple(candidates)


class IdTaken(StoreError):
    """The id already stands for something else."""

    def __init__(self, kind: str, id: str) -> None:
        super().__init__(f"another {kind} has the id {id!r}")
        self.kind = kind
        self.id = id


class LeaseHeld(StoreError):
    """Somebody else holds the lease, and is not known to be gone."""

    def __init__(self, name: str, holder: object, fence: int, expires: int) -> None:
        super().__init__(f"the lease {name!r} is held by {holder} until {expires}")
        self.name = name
        self.holder = holder
        self.fence = fence
        self.expires = expires


class LeaseLost(StoreError):
    """The lease is no longer ours: it was released, or somebody took it over."""

    def __init__(self, name: str, fence: int, current: int) -> None:
        super().__init__(f"the lease {name!r} is lost: fence {fence}, the present one is {current}")
        self.name = name
        self.fence = fence
        self.current = current


class ProcessError(SessionmgrError):
    """Something about child processes."""


class CommandInvalid(ProcessError, ValueError):
    """A command that no system could start."""

    def __init__(self, why: str) -> None:
        super().__init__(f"this command cannot be started: {why}")


class EnvironmentVariableInvalid(ProcessError, ValueError):
    """A variable that the environment of a child may not hold."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"a child's environment may not set {name}: {why}")
        self.name = name


class SessionIdInvalid(ProcessError, ValueError):
    """What was given as the id of a provider's session cannot be one."""

    def __init__(self, given: str, why: str) -> None:
        super().__init__(f"{given[:80]!r} cannot be the id of a session: {why}")
        self.given = given


class InputFull(ProcessError):
    """A child has not read what it was sent before; nothing more was accepted."""

    def __init__(self, waiting: int, limit: int) -> None:
        super().__init__(
            f"the child does not read: {waiting} bytes wait to be written to it, of at most {limit}"
        )
        self.waiting = waiting
        self.limit = limit


class DescriptorsExhausted(ProcessError):
    """One more child would leave too few file descriptors; nothing was started."""

    def __init__(self, limit: int, in_use: int, needed: int, reserve: int) -> None:
        super().__init__(
            f"too few file descriptors for one more child: {in_use} of {limit} are in use, "
            f"it needs {needed}, and {reserve} are kept free; run fewer at once, or raise the "
            "limit (ulimit -n, LimitNOFILE= of systemd)"
        )
        self.limit = limit
        self.in_use = in_use
        self.needed = needed
        self.reserve = reserve


class SpawnFailed(ProcessError):
    """The system would not start a program: `path` is what it was about, `errno` the reason."""

    def __init__(self, what: str, path: str, errno: int) -> None:
        shown = path if len(path) <= _MOST_SHOWN else f"{path[:_MOST_SHOWN]}…"
        super().__init__(f"{what}: {shown!r} ({os.strerror(errno)})")
        self.path = path
        self.errno = errno


class ProgramNotFound(SpawnFailed):
    """There is no such program; or there is, and the interpreter that it names is not."""


class NotExecutable(SpawnFailed):
    """There is such a file, and it cannot be run."""


class NoSuchDirectory(SpawnFailed):
    """There is no such directory to run a program in, or we may not enter it."""


class SecretFileRefused(ProcessError):
    """Secret settings cannot be passed to a program in a private file; the text says why."""


class SpawnerKilled(ProcessError):
    """Whoever was to start a child was killed meanwhile; what had begun was ended."""

    def __init__(self, program: str) -> None:
        super().__init__(f"the guard of {program!r} was killed while it started it")
        self.program = program


class LauncherFailed(ProcessError):
    """Nothing can be started any more."""

    def __init__(self, why: str) -> None:
        super().__init__(f"no child can be started: {why}")
        self.why = why


class OtpError(SessionmgrError):
    """Something about actors and supervisors."""


class ActorDown(OtpError):
    """The callee is dead, or died before it answered; a crash is the `__cause__`."""

    def __init__(self, who: str, reason: ExitReason) -> None:
        super().__init__(f"{who} is down: {reason}")
        self.who = who
        self.reason = reason


class CallTimeout(OtpError, trio.TooSlowError):
    """No answer came in time. The callee may still work on the request."""

    def __init__(self, who: str, message: object, timeout: float) -> None:
        super().__init__(f"{who} did not answer {message!r} within {timeout:g} s")
        self.who = who
        self.timeout = timeout


class CallCycle(OtpError):
    """The call would wait, through others, for the caller itself."""

    def __init__(self, path: Sequence[str]) -> None:
        super().__init__(f"this call would wait for itself: {' -> '.join(path)}")
        self.path = tuple(path)


class MailboxFull(OtpError):
    """A cast found no room; nothing was changed."""

    def __init__(self, who: str, bound: int) -> None:
        super().__init__(
            f"the mailbox of {who} is full ({bound} messages): "
            "`await ref.send(...)` waits for room, `mailbox = N` on the class makes more"
        )
        self.who = who
        self.bound = bound


class AlreadyReplied(OtpError):
    """One call was answered twice."""

    def __init__(self, who: str, message: object) -> None:
        super().__init__(
            f"{who} answered {message!r} twice: a handler that uses caller.reply() "
            "or caller.fail() returns NOREPLY"
        )
        self.who = who


class NotAnActor(OtpError):
    """A message was sent to a child that has no mailbox."""

    def __init__(self, who: str, kind: str) -> None:
        super().__init__(f"{who} is a {kind} and no actor: it takes no messages")
        self.who = who


class NotInActor(OtpError):
    """This is for code that runs inside a supervised child, and nobody of them called."""

    def __init__(self, what: str, instead: str) -> None:
        super().__init__(f"{what} was called outside a supervised child; {instead}")


class StartFailed(OtpError):
    """A child did not come up; `__cause__` is what its start raised."""

    def __init__(self, supervisor: str, child: str, why: object) -> None:
        super().__init__(f"child {child!r} of supervisor {supervisor!r} did not start: {why}")
        self.supervisor = supervisor
        self.child = child


class RestartIntensityExceeded(OtpError):
    """A supervisor gave up: its children ended more often than it may restart them."""

    def __init__(
        self,
        supervisor: str,
        child: str,
        exits: Sequence[ExitReason],
        max_restarts: int,
        max_seconds: float,
    ) -> None:
        super().__init__(
            f"supervisor {supervisor!r} gave up on child {child!r}: more than "
            f"{max_restarts} restart{'s' * (max_restarts != 1)} in {max_seconds:g} s; "
            f"last exits: {', '.join(map(str, exits))}"
        )
        self.supervisor = supervisor
        self.child = child
        self.exits = tuple(exits)


class DuplicateChild(OtpError, ValueError):
    """Two children of one supervisor were given the same id."""

    def __init__(self, supervisor: str, child: str) -> None:
        super().__init__(f"supervisor {supervisor!r} already has a child {child!r}")
        self.supervisor = supervisor
        self.child = child


class UnknownChild(OtpError, LookupError):
    """The supervisor has no such child."""

    def __init__(self, supervisor: str, child: object) -> None:
        super().__init__(f"supervisor {supervisor!r} has no child {child!r}")
        self.supervisor = supervisor
        self.child = child


class ChildRunning(OtpError):
    """The child runs, or is about to; this is for stopped ones."""

    def __init__(self, supervisor: str, child: str, state: str) -> None:
        super().__init__(
            f"child {child!r} of supervisor {supervisor!r} is {state}: "
            "terminate_child() comes first"
        )
        self.supervisor = supervisor
        self.child = child


class MaxChildren(OtpError):
    """The supervisor has as many children as it may have."""

    def __init__(self, supervisor: str, limit: int) -> None:
        super().__init__(f"supervisor {supervisor!r} already has its {limit} children")
        self.supervisor = supervisor
        self.limit = limit


class SupervisorNotRunning(OtpError):
    """A supervisor was used before its block began or after it ended."""

    def __init__(self, supervisor: str, state: str = "not running") -> None:
        super().__init__(
            f"supervisor {supervisor!r} is {state}: use it inside its "
            "`async with` block, or while its parent runs it"
        )
        self.supervisor = supervisor


class SupervisorStopping(SupervisorNotRunning):
    """A supervisor was asked for something while it stops."""

    def __init__(self, supervisor: str) -> None:
        super().__init__(supervisor, "stopping")


class AlreadyRegistered(OtpError):
    """The name is taken, in a registry of unique names."""

    def __init__(self, key: object, owner: str) -> None:
        super().__init__(f"the name {key!r} is already taken by {owner}")
        self.key = key


class TaskCrashed(OtpError):
    """A task ended with an exception, which is the `__cause__`."""

    def __init__(self, who: str, reason: ExitReason) -> None:
        super().__init__(f"task {who} ended without a result: {reason}")
        self.who = who
        self.reason = reason


class TaskCancelled(OtpError):
    """A task was cancelled before it had a result."""

    def __init__(self, who: str) -> None:
        super().__init__(f"task {who} was cancelled")
        self.who = who
