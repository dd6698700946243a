"""The port: what an adapter is, what it is handed, and how it is found."""

from sessionmgr.adapter.adapter import ProviderAdapter as ProviderAdapter
from sessionmgr.adapter.approval import (
    Allow as Allow,
    ApprovalRequest as ApprovalRequest,
    Approve as Approve,
    Decision as Decision,
    Deny as Deny,
)
from sessionmgr.adapter.connections import (
    Connect as Connect,
    Connection as Connection,
    ConnectionSpec as ConnectionSpec,
    Conversation as Conversation,
)
from sessionmgr.adapter.discovery import (
    find_adapter as find_adapter,
    installed_adapters as installed_adapters,
)
from sessionmgr.adapter.errors import (
    AdapterBroken as AdapterBroken,
    CapabilityMissing as CapabilityMissing,
    OptionInvalid as OptionInvalid,
    PermissionRefused as PermissionRefused,
    ProviderUnknown as ProviderUnknown,
)
from sessionmgr.adapter.health import Health as Health
from sessionmgr.adapter.options import Options as Options
from sessionmgr.adapter.permission_map import (
    MappedMode as MappedMode,
    PermissionMap as PermissionMap,
)
from sessionmgr.adapter.run_context import (
    Budget as Budget,
    RunContext as RunContext,
    RunSpec as RunSpec,
    StopReason as StopReason,
)
from sessionmgr.model import (
    EMULATED as EMULATED,
    NATIVE as NATIVE,
    UNSUPPORTED as UNSUPPORTED,
    Capabilities as Capabilities,
    Negotiation as Negotiation,
)

__all__ = [
    "EMULATED",
    "NATIVE",
    "UNSUPPORTED",
    "AdapterBroken",
    "Allow",
    "ApprovalRequest",
    "Approve",
    "Budget",
    "Capabilities",
    "CapabilityMissing",
    "Connect",
    "Connection",
    "ConnectionSpec",
    "Conversation",
    "Decision",
    "Deny",
    "Health",
    "MappedMode",
    "Negotiation",
    "OptionInvalid",
    "Options",
    "PermissionMap",
    "PermissionRefused",
    "ProviderAdapter",
    "ProviderUnknown",
    "RunContext",
    "RunSpec",
    "StopReason",
    "find_adapter",
    "installed_adapters",
]
from sessionmgr.adapter.adapter import (
    AppendMessage as AppendMessage,
    AskHealth as AskHealth,
    InterruptRun as InterruptRun,
    ReleaseSession as ReleaseSession,
    StartRun as StartRun,
)
from sessionmgr.adapter.approval import Effect as Effect
from sessionmgr.adapter.connections import (
    Closable as Closable,
    Driver as Driver,
    KeyedSpec as KeyedSpec,
)
from sessionmgr.adapter.discovery import GROUP as GROUP
from sessionmgr.adapter.errors import (
    SecretFileRefused as SecretFileRefused,
    SessionError as SessionError,
    StartRefused as StartRefused,
)
from sessionmgr.adapter.options import resolve_options as resolve_options
from sessionmgr.adapter.permission_map import HARMLESS as HARMLESS
from sessionmgr.adapter.run_context import (
    UNLIMITED_BUDGET as UNLIMITED_BUDGET,
    RunControl as RunControl,
    is_valid_amount as is_valid_amount,
)
