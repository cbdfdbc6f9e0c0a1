"""Record what the Go eviction manager decides: `record.py [--seed N] [--output FILE]`.

It copies the module k8s.io/kubernetes out of Go's module cache, puts oracle_test.go into the
eviction package of the copy, and runs it on generated calls. The release and the versions of all
modules are those of tools/kubernetes. README.md describes what is needed.
"""

import argparse
import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
LOCKED = HERE.parent / "kubernetes"
MODULE = "k8s.io/kubernetes"
PACKAGE = "pkg/kubelet/eviction"
RECORDING = ROOT / "tests" / "conformance" / "vectors-eviction.jsonl.gz"
_SETTLED = {"CGO_ENABLED": "0", "GOFLAGS": "-mod=mod", "GOWORK": "off"}


def main() -> None:
    """Generate the calls, run the oracle, and write the recording."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--output", type=Path, default=RECORDING)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="eviction-oracle-") as folder:
        work = Path(folder)
        (work / "cases.jsonl").write_text(generated_cases(arguments.seed))
        prepare(work)
        answer(work)
        vectors = (work / "vectors.jsonl").read_bytes()
    arguments.output.write_bytes(gzip.compress(vectors, 9, mtime=0))
    print(f"{len(vectors.splitlines())} cases are in {arguments.output}")


def generated_cases(seed: str) -> str:
    command = [sys.executable, str(HERE / "generate_cases.py"), "--seed", seed]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def prepare(work: Path) -> None:
    """Make a module in `work` that uses a copy of Kubernetes with the oracle in it."""
    for name in ("go.mod", "go.sum"):
        shutil.copy(LOCKED / name, work)
    found = json.loads(go(work, "mod", "download", "-json", MODULE, output=True))
    # Only what the eviction package can need: the copy is 10 times smaller without the rest.
    for part in ("api", "cmd", "pkg", "plugin", "third_party"):
        copy_writable(Path(found["Dir"]) / part, work / "kubernetes" / part)
    shutil.copy(Path(found["GoMod"]), work / "kubernetes" / "go.mod")
    package = work / "kubernetes" / PACKAGE
    for test in package.glob("*_test.go"):
        test.unlink()
    shutil.copy(HERE / "oracle_test.go", package)
    go(work, "mod", "edit", "-replace", f"{MODULE}=./kubernetes")


def copy_writable(source: Path, target: Path) -> None:
    """Copy a folder of the module cache, where files are read-only."""
    if source.is_dir():
        shutil.copytree(source, target, copy_function=shutil.copyfile)
        for folder, _, _ in os.walk(target):
            Path(folder).chmod(0o755)


def answer(work: Path) -> None:
    """Compile and run the oracle; minutes if no package is in Go's build cache."""
    files = {"EVICTION_CASES": "cases.jsonl", "EVICTION_VECTORS": "vectors.jsonl"}
    paths = {variable: str(work / name) for variable, name in files.items()}
    go(work, "test", "-count=1", "-run=TestOracle", f"{MODULE}/{PACKAGE}", variables=paths)


def go(
    work: Path, *arguments: str, variables: dict[str, str] | None = None, output: bool = False
) -> str:
    """Run Go in the module; its messages go to the terminal."""
    ran = subprocess.run(
        [shutil.which("go") or "go", *arguments],
        cwd=work,
        env=os.environ | _SETTLED | (variables or {}),
        stdout=subprocess.PIPE if output else None,
        text=True,
        check=True,
    )
    return ran.stdout or ""


if __name__ == "__main__":
    main()
