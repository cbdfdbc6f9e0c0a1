"""The pods and the problems that were last read from each file or URL.

A problem is reported once, until it is fixed. A manifest that becomes invalid does not remove the
pods that were valid before: docs/decisions/0018-broken-manifests.md.
"""

import logging
from collections.abc import Callable, Collection, Iterable

from podstatus.kube.objects.pod import Pod
from podstatus.sources.decide.pod_changes import CONFIG_HASH
from podstatus.sources.manifest.decode import Manifest, ManifestProblem

logger = logging.getLogger(__name__)

OnProblem = Callable[[ManifestProblem], None]


class ManifestProblems:
    """Current problems of each file or URL. Not thread-safe."""

    def __init__(self, on_problem: OnProblem) -> None:
        self._on_problem = on_problem
        self._problems: dict[str, tuple[ManifestProblem, ...]] = {}

    def locations(self) -> frozenset[str]:
        return frozenset(self._problems)

    def set_problems(self, location: str, problems: Collection[ManifestProblem]) -> None:
        """Replace the problems of a location; report new ones, and the end of the last one."""
        before = self._problems.pop(location, ())
        if problems:
            self._problems[location] = tuple(problems)
        elif before:
            logger.info("manifest is valid again: location=%s", location)
        for problem in problems:
            if problem not in before:
                logger.error("manifest is invalid: %s", problem)
                self._notify(problem)

    def forget(self, location: str) -> None:
        """Drop a location that no longer exists."""
        if self._problems.pop(location, ()):
            logger.info("invalid manifest was removed: location=%s", location)

    def _notify(self, problem: ManifestProblem) -> None:
        try:
            self._on_problem(problem)
        except Exception:
            logger.exception(
                "handler of invalid manifests raised an exception: location=%s", problem.location
            )


class ManifestCache:
    """Pods and problems by location; each problem is reported once. Not thread-safe."""

    def __init__(self, on_problem: OnProblem) -> None:
        self._problems = ManifestProblems(on_problem)
        self._pods: dict[str, tuple[Pod, ...]] = {}

    def locations(self) -> frozenset[str]:
        """The locations that have been read."""
        return frozenset(self._pods)

    def pods(self) -> tuple[Pod, ...]:
        """All pods, sorted by location. An unchanged pod is the same object."""
        return tuple(pod for location in sorted(self._pods) for pod in self._pods[location])

    def update(self, location: str, manifest: Manifest) -> None:
        """Store a manifest. While it has problems, no pod of its last version is removed."""
        before = self._pods.get(location, ())
        cached = {_identity(pod): pod for pod in before}
        pods = tuple(cached.get(_identity(pod), pod) for pod in manifest.pods)
        if manifest.problems:
            new_names = {pod.full_name for pod in pods}
            pods += tuple(pod for pod in before if pod.full_name not in new_names)
        self._pods[location] = pods
        self._problems.set_problems(location, manifest.problems)

    def forget(self, locations: Iterable[str]) -> None:
        """Drop locations that no longer exist, with their pods."""
        for location in locations:
            self._pods.pop(location, None)
            self._problems.forget(location)


def _identity(pod: Pod) -> tuple[str, str]:
    return pod.uid, (pod.metadata.annotations or {}).get(CONFIG_HASH, "")
