"""Batches: many jobs, some at a time, each to its end exactly once, whatever happens between."""

from sessionmgr.batch.batch import Batch as Batch, Results as Results, run_batch as run_batch
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
from sessionmgr.batch.progress import Progress as Progress, RunningJob as RunningJob
from sessionmgr.batch.results import JobResult as JobResult, Summary as Summary
