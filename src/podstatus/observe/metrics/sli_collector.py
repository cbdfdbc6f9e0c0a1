"""Health checks of the agent as metrics: `/metrics/slis`.

Upstream: component-base/metrics/prometheus/slis v0.36.4. There a result is recorded at each
`/healthz` request; here at each scrape, so that it is never old.
"""

from collections.abc import Callable, Iterable, Mapping

from podstatus.base.metric_values import CounterVec
from podstatus.observe.metrics.kubelet_catalog import HEALTHCHECK, HEALTHCHECKS
from podstatus.observe.metrics.model import Labels, Samples

HealthCheck = Callable[[], str | None]
"""Returns why a check fails; None if it passes. Must not block."""


class HealthCheckCollector:
    """Runs all checks at every scrape."""

    def __init__(self, checks: Callable[[], Mapping[str, HealthCheck]]) -> None:
        self._checks = checks
        self._results = CounterVec()

    def __call__(self) -> Iterable[Samples]:
        current: dict[Labels, int] = {}
        for name, check in sorted(self._checks().items()):
            passes = _passes(check)
            current[name, "healthz"] = int(passes)
            self._results.inc(name, "healthz", "success" if passes else "error")
        yield Samples(HEALTHCHECK, current)
        yield Samples(HEALTHCHECKS, self._results.snapshot())


def _passes(check: HealthCheck) -> bool:
    try:
        return check() is None
    except Exception:  # noqa: BLE001 - a check that raises has failed
        return False
