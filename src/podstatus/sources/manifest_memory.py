"""What was last read at each place.

A place is a file or a URL. What becomes wrong does not take away the pods that were right before:
docs/decisions/0018-broken-manifests.md.
"""

from collections.abc import Iterable

from podstatus.kube.objects.pod import Pod
from podstatus.sources.difference import CONFIG_HASH
from podstatus.sources.manifest import Manifest
from podstatus.sources.problem_book import OnProblem, ProblemBook, ignore_problem


class ManifestMemory:
    """Pods by place, and problems, each of which is told once. For one event loop."""

    def __init__(self, on_problem: OnProblem = ignore_problem) -> None:
        self._problems = ProblemBook(on_problem)
        self._pods: dict[str, tuple[Pod, ...]] = {}

    def places(self) -> frozenset[str]:
        """Where something was read."""
        return frozenset(self._pods)

    def pods(self) -> tuple[Pod, ...]:
        """All pods, in the order of their places; the same objects as long as they are the same."""
        return tuple(pod for place in sorted(self._pods) for pod in self._pods[place])

    def take(self, place: str, manifest: Manifest) -> None:
        """Take over what was read; while something is wrong, nothing is taken away."""
        before = self._pods.get(place, ())
        known = {_identity(pod): pod for pod in before}
        pods = tuple(known.get(_identity(pod), pod) for pod in manifest.pods)
        if manifest.problems:
            named = {pod.full_name for pod in pods}
            pods += tuple(pod for pod in before if pod.full_name not in named)
        self._pods[place] = pods
        self._problems.put(place, manifest.problems)

    def forget(self, places: Iterable[str]) -> None:
        """These places are gone, and so are their pods."""
        for place in places:
            self._pods.pop(place, None)
            self._problems.forget(place)


def _identity(pod: Pod) -> tuple[str, str]:
    return pod.uid, (pod.metadata.annotations or {}).get(CONFIG_HASH, "")
