"""The options of a run."""

import argparse
from collections.abc import Sequence

import msgspec

from tests.node_e2e.listed_tests import ListedTest


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Which tests to run; all that are listed if nothing is selected."""

    sample: bool = False
    required: bool = False
    focus: str | None = None
    processes: int = 1
    keep: bool = False

    def selects(self, test: ListedTest) -> bool:
        """Return whether a listed test is run."""
        if self.sample:
            return not test.is_slow and not test.reason
        return not self.required or not test.reason


def parse_options(arguments: Sequence[str]) -> Options:
    """Parse the command line; exits with a message if it is wrong."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.node_e2e", description="Kubernetes' own node tests on the agent."
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--sample", action="store_true", help="run the required tests that are not slow"
    )
    which.add_argument("--required", action="store_true", help="run the tests that have to pass")
    which.add_argument("--focus", help="run the tests that match, also those that are not listed")
    parser.add_argument(
        "--processes", type=int, default=1, help="tests that --focus runs at a time [1]"
    )
    parser.add_argument("--keep", action="store_true", help="keep the logs also on success")
    return Options(**vars(parser.parse_args(arguments)))
