"""Batches: run many jobs concurrently, each to its end exactly once, across crashes and reruns."""

from sessionmgr.batch.activity import ActivityTracker as ActivityTracker, tool_label as tool_label
from sessionmgr.batch.batch import Batch as Batch, ResultCursor as ResultCursor
from sessionmgr.batch.batch_dir import (
    contains_batch as contains_batch,
    require_unlocked as require_unlocked,
)
from sessionmgr.batch.child_host import ChildHost as ChildHost
from sessionmgr.batch.denials import JobDenial as JobDenial
from sessionmgr.batch.dry_run_report import DryRun as DryRun, PlannedJob as PlannedJob
from sessionmgr.batch.errors import (
    BatchBusy as BatchBusy,
    BatchDown as BatchDown,
    BatchError as BatchError,
    HostLost as HostLost,
    JobsInvalid as JobsInvalid,
    LedgerUnusable as LedgerUnusable,
    OutDirectoryTaken as OutDirectoryTaken,
    OutDirectoryUnusable as OutDirectoryUnusable,
    ResultsUnwritable as ResultsUnwritable,
    RulesInvalid as RulesInvalid,
    StoreMismatch as StoreMismatch,
)
from sessionmgr.batch.field_types import DURATIONS as DURATIONS
from sessionmgr.batch.host import (
    AttemptActivity as AttemptActivity,
    AttemptResult as AttemptResult,
    AttemptSpec as AttemptSpec,
    Host as Host,
    Report as Report,
    ResumePoint as ResumePoint,
)
from sessionmgr.batch.in_process_host import InProcessHost as InProcessHost
from sessionmgr.batch.job import Job as Job
from sessionmgr.batch.job_files import load_job_files as load_job_files
from sessionmgr.batch.job_record import (
    JobRecord as JobRecord,
    batch_id as batch_id,
    read_job_record as read_job_record,
)
from sessionmgr.batch.jobs_file import (
    Jobs as Jobs,
    JobSource as JobSource,
    spool_jobs as spool_jobs,
)
from sessionmgr.batch.open_batch import (
    BatchOptions as BatchOptions,
    dry_run as dry_run,
    run_batch as run_batch,
)
from sessionmgr.batch.overview import (
    Attempt as Attempt,
    BatchOverview as BatchOverview,
    ended as ended,
    read_batch as read_batch,
    read_failures as read_failures,
)
from sessionmgr.batch.problems import Problem as Problem
from sessionmgr.batch.progress import (
    BatchProgress as BatchProgress,
    PauseStatus as PauseStatus,
    RunningJob as RunningJob,
    WaitStatus as WaitStatus,
)
from sessionmgr.batch.restart import RetryFrom as RetryFrom
from sessionmgr.batch.results import (
    JobResult as JobResult,
    Summary as Summary,
    job_denials as job_denials,
)
from sessionmgr.batch.rule_file import read_rules as read_rules
from sessionmgr.batch.rules import Rule as Rule
from sessionmgr.batch.run_request import run_request_for_job as run_request_for_job

__all__ = [
    "DURATIONS",
    "ActivityTracker",
    "Attempt",
    "AttemptActivity",
    "AttemptResult",
    "AttemptSpec",
    "Batch",
    "BatchBusy",
    "BatchDown",
    "BatchError",
    "BatchOptions",
    "BatchOverview",
    "BatchProgress",
    "ChildHost",
    "DryRun",
    "Host",
    "HostLost",
    "InProcessHost",
    "Job",
    "JobDenial",
    "JobRecord",
    "JobResult",
    "JobSource",
    "Jobs",
    "JobsInvalid",
    "LedgerUnusable",
    "OutDirectoryTaken",
    "OutDirectoryUnusable",
    "PauseStatus",
    "PlannedJob",
    "Problem",
    "Report",
    "ResultCursor",
    "ResultsUnwritable",
    "ResumePoint",
    "RetryFrom",
    "Rule",
    "RulesInvalid",
    "RunningJob",
    "StoreMismatch",
    "Summary",
    "WaitStatus",
    "batch_id",
    "contains_batch",
    "dry_run",
    "ended",
    "job_denials",
    "load_job_files",
    "read_batch",
    "read_failures",
    "read_job_record",
    "read_rules",
    "require_unlocked",
    "run_batch",
    "run_request_for_job",
    "spool_jobs",
    "tool_label",
]
