"""The runtime of `--runtime`."""

from pathlib import Path

import pytest

from podstatus.agent.compose.runtime import find_runtime
from podstatus.agent.daemon.run_agent import EXIT_CONFIG, AgentError
from podstatus.runtime.port import Runtime, RuntimeDownError
from podstatus.runtime.simulated.simulated_runtime import SimulatedRuntime
from podstatus.testing.clock import FakeClock


class Mine(SimulatedRuntime):
    """A custom runtime."""

    def __init__(self, folder: Path) -> None:
        super().__init__(FakeClock(), folder=folder)


class Half:
    """Has a name, and that is all."""

    name = "half"

    def __init__(self, folder: Path) -> None:
        self.folder = folder


def needs_nothing() -> None:
    """Takes no folder."""


def is_down(folder: Path) -> Runtime:
    raise RuntimeDownError(f"no runtime in {folder.name}")


def found(name: str, folder: Path) -> Runtime:
    return find_runtime(name, folder, FakeClock())


def test_the_word_is_ours(tmp_path: Path) -> None:
    assert type(found("simulated", tmp_path)) is SimulatedRuntime


def test_a_class_of_a_module_is_called_with_the_folder_for_its_records(tmp_path: Path) -> None:
    assert isinstance(found(f"{__name__}:Mine", tmp_path), Mine)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no_such_module:Mine", "No module named 'no_such_module'; pass a module on PYTHONPATH"),
        (f"{__name__}:Missing", "has no attribute 'Missing'; pass a module on PYTHONPATH"),
        (f"{__name__}:needs_nothing", "the class is called with the directory for its records"),
        (f"{__name__}:Half", "not implement version, start_pod, start_container, stop_container"),
        (f"{__name__}:is_down", "no runtime in"),
    ],
)
def test_an_unusable_class_is_reported(tmp_path: Path, name: str, message: str) -> None:
    with pytest.raises(AgentError, match=message) as error:
        found(name, tmp_path)
    assert error.value.code == EXIT_CONFIG
