"""Settings of hypothesis for every test: on a busy machine, and where the first example compiles, time says nothing."""

from hypothesis import HealthCheck, settings

settings.register_profile("yomi", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("yomi")
