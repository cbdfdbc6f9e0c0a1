"""A run within its namespaces: cluster, tests, table. Started by `python -m tests.node_e2e`."""

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import chain
from pathlib import Path

from podstatus.testing.servers.access import ServerAccess
from podstatus.testing.servers.etcd import StartError
from tests.node_e2e.command_line import parse_options
from tests.node_e2e.control_plane import ControlPlane
from tests.node_e2e.ginkgo_suite import GinkgoSuite, SpecReport, SuiteError, focus_on
from tests.node_e2e.image_policy import install_image_policy
from tests.node_e2e.listed_tests import (
    CONFLICT,
    LAST,
    PARALLEL,
    ListedTest,
    by_queue,
    load_listed_tests,
)
from tests.node_e2e.node import NODE, Node
from tests.node_e2e.private_machine import NODE_IP, add_node_address
from tests.node_e2e.programs import Programs, find_programs
from tests.node_e2e.verdict import Result, Table, results_of, results_of_focus

_PROCESSES = 12
"""Tests of the parallel queue at a time: most of them only wait."""
_SAMPLE_SECONDS, _SECONDS = 240.0, 1800.0
"""More than either takes; what has not ended by then has failed."""
_SKIPPED_BY_FOCUS = (
    r"\[Feature:|\[FeatureGate|\[Flaky\]|\[DRA\] control|AppArmor|SSH|crictl|CSI|StatefulSet"
)
"""Tests of other node setups."""


class Campaign:
    """The tests of a run, on a cluster that is up."""

    def __init__(self, suite: GinkgoSuite, *, seconds: float) -> None:
        self._suite = suite
        self._seconds = seconds
        self._started = time.monotonic()

    def run_listed(self, tests: list[ListedTest]) -> list[Result]:
        """Run the queues at the same time, except those that have to be last."""
        queues = by_queue(tests)
        stages = (
            [(name, names) for name, names in queues.items() if (name in LAST) is is_last]
            for is_last in (False, True)
        )
        reports: list[SpecReport] = []
        with ThreadPoolExecutor() as pool:
            for stage in stages:
                reports += chain.from_iterable(pool.map(lambda queue: self._run(*queue), stage))
        return results_of(tests, reports)

    def run_focus(self, focus: str, processes: int) -> list[Result]:
        """Run the tests that match a regular expression."""
        reports = self._suite.run(
            *("focus", focus),
            skip=_SKIPPED_BY_FOCUS,
            processes=processes,
            seconds=self._seconds,
        )
        return results_of_focus(reports, load_listed_tests())

    def _run(self, queue: str, names: list[str]) -> list[SpecReport]:
        processes = min(_PROCESSES, len(names)) if queue in (PARALLEL, CONFLICT) else 1
        self._say(f"{queue}: {len(names)} tests, {processes} at a time")
        left = self._seconds - (time.monotonic() - self._started)
        name = queue.replace(" ", "-")
        reports = self._suite.run(name, focus_on(names), processes=processes, seconds=left)
        passed = sum(report.passed for report in reports)
        self._say(f"{queue}: {passed} of {len(names)} passed")
        return reports

    def _say(self, text: str) -> None:
        print(f"{time.monotonic() - self._started:6.0f} s  {text}", flush=True)


def main() -> int:
    folder, options = Path(sys.argv[1]), parse_options(sys.argv[2:])
    with ExitStack() as stack:
        programs = find_programs()
        started = time.monotonic()
        try:
            admin = start_cluster(programs, folder, stack)
        except StartError as error:
            print(f"test-e2e: {error}")
            return 1
        print(f"test-e2e: cluster ready after {time.monotonic() - started:.0f} s", flush=True)
        suite = GinkgoSuite(programs, admin.kubeconfig, folder)
        campaign = Campaign(suite, seconds=_SAMPLE_SECONDS if options.sample else _SECONDS)
        try:
            if options.focus is not None:
                results = campaign.run_focus(options.focus, options.processes)
            else:
                results = campaign.run_listed(list(filter(options.selects, load_listed_tests())))
        except SuiteError as error:
            print(f"test-e2e: {error}")
            return 1
    return report(results, time.monotonic() - started)


def start_cluster(programs: Programs, folder: Path, stack: ExitStack) -> ServerAccess:
    """Start control plane and agent; `stack` stops them. Raises StartError."""
    add_node_address(programs)
    control_plane = ControlPlane(programs, folder / "control-plane", node=NODE, node_ip=NODE_IP)
    stack.callback(control_plane.stop)
    control_plane.start()
    node = Node(control_plane, folder, ip=NODE_IP)
    stack.callback(node.stop)
    node.start()
    install_image_policy(control_plane.admin)
    return control_plane.admin


def report(results: list[Result], seconds: float) -> int:
    """Print the table and what is unexpected; return the exit code."""
    table = Table(results)
    print(f"\n{table.render()}\n")
    for result in table.unexpected:
        print(f"UNEXPECTED {result.name}\n    {result.message}")
    passed = sum(result.passed for result in results)
    print(
        f"{passed} passed, {len(results) - passed} failed, {len(table.unexpected)} unexpected, "
        f"{seconds:.0f} s"
    )
    return 1 if table.unexpected or not results else 0


if __name__ == "__main__":
    sys.exit(main())
