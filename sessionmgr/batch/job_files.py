"""Contents of the files that a job names, and resolution of its paths."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from sessionmgr.adapter.kit import (
    MAX_IMAGE_BYTES as LARGEST_IMAGE,
    FileRefusedError,
    read_bounded_bytes,
    read_bounded_text,
)
from sessionmgr.batch.job import Job
from sessionmgr.batch.problems import Problem


def load_job_files(job: Job, where: str) -> Job | Problem:
    """Return a job with the contents of its files and its resolved paths.

    Args:
        job: The job.
        where: The place of the job, for messages.
    """
    if job.provider is None:
        why = 'missing "provider", and there is no default (-p PROVIDER)'
        return Problem(where, "", why)
    if (job.prompt is None) == (job.prompt_file is None):
        if job.prompt is None:
            return Problem(where, "", 'missing "prompt" (or "prompt_file")')
        return Problem(where, "prompt_file", 'there is a "prompt" as well; keep one of them')
    try:
        prompt = job.prompt if job.prompt_file is None else read_bounded_text(Path(job.prompt_file))
    except FileRefusedError as error:
        return Problem(where, "prompt_file", str(error))
    try:
        images = None if job.images is None else tuple(map(_check_image, job.images))
    except FileRefusedError as error:
        return Problem(where, "images", str(error))
    cwd = str(Path(job.cwd or ".").resolve())
    return replace(job, prompt=prompt, prompt_file=None, images=images, cwd=cwd)


def _check_image(image: str) -> str:
    """Return the whole path of an image of moderate size.

    Raises:
        FileRefusedError: It is unreadable or too large.
    """
    read_bounded_bytes(Path(image), limit=LARGEST_IMAGE)
    return str(Path(image).resolve())
