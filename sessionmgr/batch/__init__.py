"""Batches: many jobs, some at a time, each to its end exactly once, whatever happens between."""

from sessionmgr.batch.batch import Batch as Batch, Results as Results
from sessionmgr.batch.child_host import ChildHost as ChildHost
from sessionmgr.batch.denials import JobDenial as JobDenial, job_denials as job_denials
from sessionmgr.batch.doing import Doing as Doing, label as label
from sessionmgr.batch.dry_run import DryRun as DryRun, Planned as Planned
from sessionmgr.batch.host import (
    Activity as Activity,
    Ended as Ended,
    Host as Host,
    Report as Report,
    Resume as Resume,
    Work as Work,
)
from sessionmgr.batch.in_process import InProcessHost as InProcessHost
from sessionmgr.batch.job import Job as Job
from sessionmgr.batch.jobs_file import spool as spool
from sessionmgr.batch.named_files import complete_job as complete_job
from sessionmgr.batch.overview import (
    Attempt as Attempt,
    BatchOverview as BatchOverview,
    ended as ended,
    read_batch as read_batch,
    read_failures as read_failures,
)
from sessionmgr.batch.place import is_begun as is_begun, require_idle as require_idle
from sessionmgr.batch.problems import Problem as Problem
from sessionmgr.batch.progress import (
    Pause as Pause,
    Progress as Progress,
    RunningJob as RunningJob,
    Wait as Wait,
)
from sessionmgr.batch.record import (
    JobRecord as JobRecord,
    batch_id as batch_id,
    read_job as read_job,
)
from sessionmgr.batch.results import JobResult as JobResult, Summary as Summary
from sessionmgr.batch.rule_file import read_rules as read_rules
from sessionmgr.batch.run import HowTo as HowTo, dry_run as dry_run, run_batch as run_batch
from sessionmgr.batch.wish import wish_of as wish_of

__all__ = [
    "Activity",
    "Batch",
    "ChildHost",
    "DryRun",
    "Ended",
    "Host",
    "HowTo",
    "InProcessHost",
    "Job",
    "JobDenial",
    "JobRecord",
    "JobResult",
    "Pause",
    "Planned",
    "Problem",
    "Progress",
    "Report",
    "Results",
    "Resume",
    "RunningJob",
    "Summary",
    "Wait",
    "Work",
    "batch_id",
    "complete_job",
    "dry_run",
    "is_begun",
    "job_denials",
    "label",
    "read_job",
    "read_rules",
    "require_idle",
    "run_batch",
    "spool",
    "wish_of",
]
