"""Whether the agent is well, as metrics: `/metrics/slis`.

Upstream: component-base/metrics/prometheus/slis v0.36.4. There results are noted whenever somebody
asks for `/healthz`; here whenever somebody asks for the metrics, so that they are never old.
"""

from collections.abc import Callable, Iterable, Mapping

from podstatus.base.metrics import CounterVec
from podstatus.observe.metrics.kubelet_catalog import HEALTHCHECK, HEALTHCHECKS
from podstatus.observe.metrics.model import Labels, Samples, samples

HealthCheck = Callable[[], str | None]
"""Why something is not well; None if it is. Must not wait."""


class HealthCheckCollector:
    """What all checks come to, each time it is asked for."""

    def __init__(self, checks: Callable[[], Mapping[str, HealthCheck]]) -> None:
        self._checks = checks
        self._results = CounterVec()

    def __call__(self) -> Iterable[Samples]:
        """Check, and tell."""
        now: dict[Labels, int] = {}
        for name, check in sorted(self._checks().items()):
            is_well = _passes(check)
            now[name, "healthz"] = int(is_well)
            self._results.inc(name, "healthz", "success" if is_well else "error")
        yield samples(HEALTHCHECK, now)
        yield samples(HEALTHCHECKS, self._results.snapshot())


def _passes(check: HealthCheck) -> bool:
    try:
        return check() is None
    except Exception:  # noqa: BLE001 - a check that breaks is a failed one
        return False
