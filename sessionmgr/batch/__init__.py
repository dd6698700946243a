"""Batches: many jobs, some at a time, each to its end exactly once, whatever happens between."""

from sessionmgr.batch.job import Job as Job
from sessionmgr.batch.progress import Progress as Progress, RunningJob as RunningJob
