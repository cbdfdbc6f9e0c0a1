"""The examples of docs/how-to/alerts.md do what the page says."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from podstatus.cli.register_commands import app

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "alerts.md").read_text()
YAML = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
CONSOLE = re.findall(r"^\$ (podstatus alerts \w+ .*)\n((?:[^$`].*\n)*)", PAGE, re.MULTILINE)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    rules, tests = YAML[:2]
    (tmp_path / "rules.yaml").write_text(rules)
    (tmp_path / "rules_test.yaml").write_text(tests)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(words: str) -> str:
    done = CliRunner().invoke(app, words.split()[1:])
    return done.stderr + done.stdout


def test_the_examples_say_what_the_page_says(folder: Path) -> None:
    checked, tested = dict(CONSOLE), folder / "rules_test.yaml"
    for words in ("podstatus alerts check rules.yaml", "podstatus alerts test rules_test.yaml"):
        assert run(words) == checked[words]
    later = tested.read_text().replace("at: 10s", "at: 9s")
    tested.write_text(later)
    failed = run("podstatus alerts test rules_test.yaml")
    assert f"podstatus alerts test rules_test.yaml\n{failed}" in PAGE
