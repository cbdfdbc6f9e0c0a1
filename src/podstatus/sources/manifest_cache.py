"""The pods and the problems that were last read from each file or URL.

A problem is reported once, until it is fixed. A manifest that becomes invalid does not remove the
pods that were valid before: docs/decisions/0018-broken-manifests.md.
"""

import logging
from collections.abc import Callable, Collection, Iterable

from podstatus.kube.objects.pod import Pod
from podstatus.sources.manifest.decode import Manifest, ManifestProblem
from podstatus.sources.pod_changes import CONFIG_HASH

logger = logging.getLogger(__name__)

OnProblem = Callable[[ManifestProblem], None]


def ignore_problem(problem: ManifestProblem) -> None:
    """For those who read the log."""


class ManifestProblems:
    """The problems of each place that are known. For one event loop."""

    def __init__(self, on_problem: OnProblem = ignore_problem) -> None:
        self._on_problem = on_problem
        self._problems: dict[str, tuple[ManifestProblem, ...]] = {}

    def locations(self) -> frozenset[str]:
        """Where something is wrong."""
        return frozenset(self._problems)

    def set_problems(self, location: str, problems: Collection[ManifestProblem]) -> None:
        """What is wrong at a place now: tell what is new, or that nothing is any more."""
        before = self._problems.pop(location, ())
        if problems:
            self._problems[location] = tuple(problems)
        elif before:
            logger.info("manifest is right again: place=%s", location)
        for problem in problems:
            if problem not in before:
                logger.error("manifest is wrong: %s", problem)
                self._notify(problem)

    def forget(self, location: str) -> None:
        """The place is gone, with all that was wrong there."""
        if self._problems.pop(location, ()):
            logger.info("manifest that was wrong is gone: place=%s", location)

    def _notify(self, problem: ManifestProblem) -> None:
        try:
            self._on_problem(problem)
        except Exception:
            logger.exception("handler of problems failed: place=%s", problem.location)


class ManifestCache:
    """Pods by place, and problems, each of which is told once. For one event loop."""

    def __init__(self, on_problem: OnProblem = ignore_problem) -> None:
        self._problems = ManifestProblems(on_problem)
        self._pods: dict[str, tuple[Pod, ...]] = {}

    def locations(self) -> frozenset[str]:
        """Where something was read."""
        return frozenset(self._pods)

    def pods(self) -> tuple[Pod, ...]:
        """All pods, in the order of their places; the same objects as long as they are the same."""
        return tuple(pod for place in sorted(self._pods) for pod in self._pods[place])

    def update(self, location: str, manifest: Manifest) -> None:
        """Take over what was read; while something is wrong, nothing is taken away."""
        before = self._pods.get(location, ())
        known = {_identity(pod): pod for pod in before}
        pods = tuple(known.get(_identity(pod), pod) for pod in manifest.pods)
        if manifest.problems:
            named = {pod.full_name for pod in pods}
            pods += tuple(pod for pod in before if pod.full_name not in named)
        self._pods[location] = pods
        self._problems.set_problems(location, manifest.problems)

    def forget(self, locations: Iterable[str]) -> None:
        """These places are gone, and so are their pods."""
        for place in locations:
            self._pods.pop(place, None)
            self._problems.forget(place)


def _identity(pod: Pod) -> tuple[str, str]:
    return pod.uid, (pod.metadata.annotations or {}).get(CONFIG_HASH, "")
