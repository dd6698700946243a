"""The port: what an adapter is, what it is handed, and how it is found."""

from sessionmgr.errors import (
    AdapterBroken as AdapterBroken,
    CapabilityMissing as CapabilityMissing,
    OptionInvalid as OptionInvalid,
    PermissionRefused as PermissionRefused,
    ProviderUnknown as ProviderUnknown,
)
from sessionmgr.model import (
    EMULATED as EMULATED,
    NATIVE as NATIVE,
    UNSUPPORTED as UNSUPPORTED,
    Capabilities as Capabilities,
    Negotiation as Negotiation,
)
from sessionmgr.provider.adapter import ProviderAdapter as ProviderAdapter
from sessionmgr.provider.connection import (
    Connect as Connect,
    Connection as Connection,
    ConnectionSpec as ConnectionSpec,
    Conversation as Conversation,
)
from sessionmgr.provider.context import (
    Budget as Budget,
    RunContext as RunContext,
    RunSpec as RunSpec,
)
from sessionmgr.provider.course import Stop as Stop
from sessionmgr.provider.discovery import find_adapter as find_adapter, installed as installed
from sessionmgr.provider.health import Health as Health
from sessionmgr.provider.options import Options as Options
from sessionmgr.provider.permission_map import Mapped as Mapped, PermissionMap as PermissionMap
from sessionmgr.provider.question import (
    Allow as Allow,
    ApprovalRequest as ApprovalRequest,
    Approve as Approve,
    Decision as Decision,
    Deny as Deny,
)
