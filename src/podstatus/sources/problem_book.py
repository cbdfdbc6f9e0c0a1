"""What is wrong with manifests, told once until it is right again."""

import logging
from collections.abc import Callable, Collection

from podstatus.sources.manifest import ManifestProblem

logger = logging.getLogger(__name__)

OnProblem = Callable[[ManifestProblem], None]


def ignore_problem(problem: ManifestProblem) -> None:
    """For those who read the log."""


class ProblemBook:
    """The problems of each place that are known. For one event loop."""

    def __init__(self, on_problem: OnProblem = ignore_problem) -> None:
        self._on_problem = on_problem
        self._problems: dict[str, tuple[ManifestProblem, ...]] = {}

    def places(self) -> frozenset[str]:
        """Where something is wrong."""
        return frozenset(self._problems)

    def put(self, place: str, problems: Collection[ManifestProblem]) -> None:
        """What is wrong at a place now: tell what is new, or that nothing is any more."""
        before = self._problems.pop(place, ())
        if problems:
            self._problems[place] = tuple(problems)
        elif before:
            logger.info("manifest is right again: place=%s", place)
        for problem in problems:
            if problem not in before:
                logger.error("manifest is wrong: %s", problem)
                self._call(problem)

    def forget(self, place: str) -> None:
        """The place is gone, with all that was wrong there."""
        if self._problems.pop(place, ()):
            logger.info("manifest that was wrong is gone: place=%s", place)

    def _call(self, problem: ManifestProblem) -> None:
        try:
            self._on_problem(problem)
        except Exception:
            logger.exception("handler of problems failed: place=%s", problem.place)
