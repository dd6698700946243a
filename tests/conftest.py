"""How far properties are searched: a little, hardly, or for long.

For long is `--hypothesis-profile=long`. `brief` is for the runs that prove something else, as that
an installed wheel works, beside one that searches: it tries the same examples each time. How fast
examples are drawn says only how busy the machine is.
"""

from hypothesis import HealthCheck, settings

SLOW = [HealthCheck.too_slow]

settings.register_profile("default", deadline=None, suppress_health_check=SLOW)
settings.register_profile(
    "brief", deadline=None, suppress_health_check=SLOW, max_examples=15, derandomize=True
)
settings.register_profile("long", deadline=None, suppress_health_check=SLOW, max_examples=20_000)
settings.load_profile("default")
