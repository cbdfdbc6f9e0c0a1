"""Fixtures of the tests of the simulated runtime."""

import pytest

from tests.runtime.simulated.simulated_node import Node


@pytest.fixture
def node() -> Node:
    return Node()
