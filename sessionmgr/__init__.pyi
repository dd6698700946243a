from sessionmgr.adapter import (
    Allow as Allow,
    ApprovalRequest as ApprovalRequest,
    Budget as Budget,
    Decision as Decision,
    Deny as Deny,
    ProviderAdapter as ProviderAdapter,
    RunContext as RunContext,
)
from sessionmgr.batch import Job as Job, run_batch as run_batch
from sessionmgr.errors import (
    CapabilityMissing as CapabilityMissing,
    ManagerDown as ManagerDown,
    NotInTrio as NotInTrio,
    NotPausable as NotPausable,
    NotResumable as NotResumable,
    PermissionRefused as PermissionRefused,
    PortalClosed as PortalClosed,
    SessionmgrError as SessionmgrError,
    StartRefused as StartRefused,
)
from sessionmgr.manager import (
    Clocks as Clocks,
    FollowUp as FollowUp,
    Manager as Manager,
    RunHandle as RunHandle,
    SessionHandle as SessionHandle,
    open_manager as open_manager,
)
from sessionmgr.model import (
    PermissionMode as PermissionMode,
    RunResult as RunResult,
    RunStatus as RunStatus,
    Snapshot as Snapshot,
)
from sessionmgr.portal import Portal as Portal, PortalRun as PortalRun, open_portal as open_portal
