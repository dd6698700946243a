"""Kills at random moments do no harm to a batch."""

from tests.batch.kill_and_rerun import kill_and_rerun


def test_a_batch_killed_at_random_moments_does_every_job_exactly_once() -> None:
    figures, broken = kill_and_rerun(times=5, seed=7)
    assert broken == []
    assert figures["results"] == figures["jobs"]
    assert figures["kills_at_work"] > 0
    assert figures["interrupted_in_a_tool"] > 0
