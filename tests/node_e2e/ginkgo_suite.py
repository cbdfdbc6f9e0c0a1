"""Runs tests of e2e.test with ginkgo, and reads its report."""

import os
import re
import subprocess
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import msgspec

from tests.node_e2e.programs import Programs

_OPTIONS = (
    "--provider=skeleton",
    "--disable-log-dump",
    # Do not wait for what this cluster does not have: more nodes, system pods, daemon sets.
    "--allowed-not-ready-nodes=0",
    "--minStartupPods=0",
    "--system-daemonsets-startup-timeout=1s",
    "--system-pods-startup-timeout=10s",
    "--node-schedulable-timeout=30s",
)
_SUITE = "Kubernetes e2e suite"
"""ginkgo matches a focus with `<suite> <test>`."""
_REPORT = "report.json"
_GRACE_SECONDS = 60.0
"""After ginkgo's own timeout: it interrupts the tests, which then clean up."""


class SuiteError(Exception):
    """No report was written; the message names the log."""


class Failure(msgspec.Struct, frozen=True, rename="pascal"):
    message: str = ""


class SpecReport(msgspec.Struct, frozen=True, rename="pascal"):
    """What ginkgo reports of one test; `run_time` in nanoseconds."""

    leaf_node_type: str
    leaf_node_text: str = ""
    container_hierarchy_texts: list[str] | None = None
    state: str = ""
    run_time: int = 0
    failure: Failure | None = None

    @property
    def name(self) -> str:
        return " ".join([*(self.container_hierarchy_texts or ()), self.leaf_node_text])

    @property
    def family(self) -> str:
        """The outermost container, without labels: `sig-node Probing container`."""
        texts = self.container_hierarchy_texts or [self.leaf_node_text]
        without_labels = re.sub(r"(?<!^)\[.*?\]", "", texts[0])
        return " ".join(without_labels.replace("[", "").replace("]", "").split())

    @property
    def passed(self) -> bool:
        return self.state == "passed"

    @property
    def ran(self) -> bool:
        """Whether it was selected and ran, to whatever end."""
        return self.leaf_node_type == "It" and self.state not in ("skipped", "pending", "")


class SuiteReport(msgspec.Struct, frozen=True, rename="pascal"):
    spec_reports: list[SpecReport] | None = None


class GinkgoSuite:
    """The tests of e2e.test, against the cluster of a kubeconfig."""

    def __init__(self, programs: Programs, kubeconfig: Path, folder: Path) -> None:
        self._programs = programs
        self._kubeconfig = kubeconfig
        self._folder = folder

    def run(
        self, name: str, focus: str, *, processes: int, seconds: float, skip: str = ""
    ) -> list[SpecReport]:
        """Run the tests that match `focus` for at most `seconds`; return reports of those that ran.

        Its files are in the folder `name`. Raises SuiteError.
        """
        folder = self._folder / name
        folder.mkdir(parents=True)
        programs = self._programs
        command: list[str | Path] = [
            *(programs.ginkgo, "run", f"--procs={processes}", "--no-color"),
            *(f"--timeout={seconds:.0f}s", f"--focus={focus}"),
            *([f"--skip={skip}"] if skip else []),
            *(f"--output-dir={folder}", f"--json-report={_REPORT}"),
            *(programs.tests, "--", f"--kubeconfig={self._kubeconfig}"),
            *(f"--kubectl-path={programs.kubectl}", *_OPTIONS),
        ]
        log = folder / "output.log"
        with log.open("wb") as output, suppress(subprocess.TimeoutExpired):
            subprocess.run(
                command,
                stdout=output,
                stderr=output,
                stdin=subprocess.DEVNULL,
                cwd=folder,
                env=os.environ | {"HOME": str(folder)},
                timeout=seconds + _GRACE_SECONDS,
                check=False,
            )
        try:
            return read_report(folder / _REPORT)
        except (OSError, msgspec.DecodeError) as error:
            raise SuiteError(f"ginkgo wrote no report ({error}); see {log}") from error


def read_report(path: Path) -> list[SpecReport]:
    """Return the reports of the tests that ran."""
    suites = msgspec.json.decode(path.read_bytes(), type=list[SuiteReport])
    return [spec for suite in suites for spec in suite.spec_reports or () if spec.ran]


def focus_on(names: Iterable[str]) -> str:
    """Return the regular expression (Go) that matches these tests only."""
    special = set(r"\.+*?()|[]{}^$")
    escaped = ("".join(f"\\{c}" if c in special else c for c in name) for name in sorted(names))
    return f"^{_SUITE} ({'|'.join(escaped)})$"
