"""The portal: a session manager for programs that do not run on trio."""

from sessionmgr.portal.approver import CallApprove as CallApprove, PortalApprove as PortalApprove
from sessionmgr.portal.batch import PortalBatch as PortalBatch
from sessionmgr.portal.errors import PortalClosed as PortalClosed, PortalDeadlock as PortalDeadlock
from sessionmgr.portal.portal import Portal as Portal, open_portal as open_portal
from sessionmgr.portal.run import PortalFollowUp as PortalFollowUp, PortalRun as PortalRun
