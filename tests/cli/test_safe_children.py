"""Child processes run no code of the current directory, which may be another user's."""

import os
import subprocess
from pathlib import Path

import pytest

from podstatus.agent.daemon import apiserver_process
from podstatus.base.programs import child_environment
from podstatus.cli.program import PROGRAM

MODULES = ("yaml", "aiohttp", "msgspec", "typing_extensions", "sitecustomize", "podstatus")


@pytest.mark.parametrize("command", [PROGRAM, apiserver_process.APISERVER_COMMAND])
def test_modules_of_the_current_folder_are_not_imported(
    command: tuple[str, ...], tmp_path: Path
) -> None:
    for module in MODULES:
        (tmp_path / f"{module}.py").write_text("import os; os._exit(66)")
    environment = child_environment({**os.environ, "PYTHONPATH": ":"})
    done = subprocess.run(
        [*command, "--help"], cwd=tmp_path, env=environment, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
