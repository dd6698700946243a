"""How far properties are searched: a little, hardly, or for long.

For long is `--hypothesis-profile=long`. `brief` is for the runs that prove something else, as that
an installed wheel works, beside one that searches.
"""

from hypothesis import HealthCheck, settings

settings.register_profile("default", deadline=None)
settings.register_profile("brief", deadline=None, max_examples=15)
settings.register_profile(
    "long", deadline=None, max_examples=20_000, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("default")
