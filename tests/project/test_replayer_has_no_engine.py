"""The replayer drives the product: break one line of the product and the judge sees it.

Each case names a line, breaks it in a copy of its module, and plays recorded cases on
the sources with the copy in its place. Were there a second implementation behind the
replayer, nothing would differ.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "tests" / "conformance"

MUTATIONS = [
    pytest.param(
        "status/decide/merge.py",
        "held_back = ending and could_have_running_containers",
        "held_back = False",
        "vectors.jsonl.gz",
        "mergePodStatus",
        id="merge: a terminal phase is not held back",
    ),
    pytest.param(
        "status/decide/plan.py",
        "        if sent.get(sync.api_uid, 0) < sync.entry.version",
        "        if sent.get(sync.api_uid, 0) <= sync.entry.version",
        "traces.jsonl.gz",
        "lifecycle",
        id="plan: what was sent is sent again",
    ),
    pytest.param(
        "status/decide/legal_transitions.py",
        'if terminated.exit_code != 0 and spec.restart_policy == "OnFailure":',
        'if spec.restart_policy == "OnFailure":',
        "vectors.jsonl.gz",
        "checkContainerStateTransition",
        id="transitions: OnFailure restarts successes too",
    ),
    pytest.param(
        "kube/patch/create_from_documents.py",
        "return _list_patch(key, changes + deletions, [],",
        "return _list_patch(key, changes, [],",
        "vectors.jsonl.gz",
        "preparePatchBytes",
        id="patch: deletions are forgotten",
    ),
    pytest.param(
        "pods/pod_manager.py",
        "self._pod_of_mirror[uid] = pod.uid",
        "pass",
        "traces.jsonl.gz",
        "static",
        id="directory: a new mirror pod is not translated",
    ),
    pytest.param(
        "pods/container_status.py",
        "last_state=status.state if ended else status.last_state,",
        "last_state=status.last_state,",
        "vectors-apistatus.jsonl.gz",
        "generateAPIPodStatus",
        id="container status: a crash loop hides the exit",
    ),
    pytest.param(
        "eviction/decide/ranking.py",
        "return (True, within_request, _priority(pod),",
        "return (True, False, _priority(pod),",
        "vectors-eviction.jsonl.gz",
        "rankPods",
        id="eviction: pods within their requests are not spared",
    ),
    pytest.param(
        "eviction/decide/pressure.py",
        "dict.fromkeys((*met, *unresolved))",
        "dict.fromkeys(met)",
        "vectors-eviction.jsonl.gz",
        "synchronize",
        id="eviction: the minimum reclaim is forgotten",
    ),
    pytest.param(
        "checkpoint/formats/go_json_encode.py",
        "return _encode_members({key: value[key] for key in sorted(value)})",
        "return _encode_members(value)",
        "checkpoints/checkpoints.jsonl",
        "checkpoint:v1.36.4",
        id="checkpoint: maps are not sorted",
    ),
    pytest.param(
        "checkpoint/allocation_checkpoint.py",
        "if self._format.write_through:\n            try:",
        "if False:\n            try:",
        "checkpoints/checkpoints.jsonl",
        "checkpoint:v1.28.0",
        id="checkpoint: v1.28 does not store removals",
    ),
]


def judge(sources: Path, recorded: str, family: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            sys.executable,
            str(RECORDED / "check.py"),
            "--cmd",
            f"{sys.executable} -m podstatus.testing.replay",
            "--only",
            family,
            str(RECORDED / recorded),
        ],
        env={**os.environ, "PYTHONPATH": str(sources)},
        capture_output=True,
        text=True,
        check=False,
    )


def put_in_place_of(module: Path, text: str, root: Path) -> None:
    """Make root our sources, but for one module: all others are links, with their bytecode."""
    sources = ROOT / "src"
    for folder in reversed(module.parents):
        (root / folder).mkdir(exist_ok=True)
        for path in (sources / folder).iterdir():
            if path.name != "__pycache__" and not module.is_relative_to(folder / path.name):
                (root / folder / path.name).symlink_to(path)
    (root / module).write_text(text)


@pytest.mark.parametrize(("module", "line", "broken", "recorded", "family"), MUTATIONS)
def test_a_broken_line_of_the_product_is_seen_by_the_judge(
    tmp_path: Path, module: str, line: str, broken: str, recorded: str, family: str
) -> None:
    file = Path("podstatus", module)
    text = (ROOT / "src" / file).read_text()
    assert text.count(line) == 1, f"the line to break is not in {module} once: {line!r}"
    put_in_place_of(file, text.replace(line, broken), tmp_path)

    judged = judge(tmp_path, recorded, family)

    assert judged.returncode == 1, judged.stdout
    assert "differ" in judged.stdout
    assert "the replayer ended with status" not in judged.stdout


def test_an_unbroken_copy_agrees(tmp_path: Path) -> None:
    file = Path("podstatus/status/decide/merge.py")
    put_in_place_of(file, (ROOT / "src" / file).read_text(), tmp_path)
    judged = judge(tmp_path, "vectors.jsonl.gz", "mergePodStatus")
    assert judged.returncode == 0, judged.stdout
