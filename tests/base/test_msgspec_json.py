"""Types are decoded from any thread, including the first time."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

import podstatus
from podstatus.base.msgspec_json import convert_json, decode_json, json_decoder

PACKAGE = Path(podstatus.__file__).parent
MAKER = PACKAGE / "base/msgspec_json.py"
DECODES = re.compile(r"msgspec\.(convert|json|msgpack|yaml)\b")

FIRST_TIME = """
import sys, threading
from podstatus.kube.encoding.codec import decode, from_document
from podstatus.kube.objects.pod import Pod
sys.setswitchinterval(1e-6)
start = threading.Barrier(4)
seen = []

def read(number):
    start.wait()
    if number % 2:
        pod = decode(b'{"spec": {"containers": [{"name": "x"}]}}', Pod)
    else:
        pod = from_document({"spec": {"containers": [{"name": "x"}]}}, Pod)
    seen.append(pod.spec.containers[0].name)

threads = [threading.Thread(target=read, args=(number,)) for number in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert seen == ["x"] * 4, seen
"""


class Thing(msgspec.Struct):
    name: str


def test_threads_that_read_a_type_for_the_first_time_do_not_end_the_process() -> None:
    for _ in range(3):
        ended = subprocess.run([sys.executable, "-c", FIRST_TIME], capture_output=True, check=False)
        assert ended.returncode == 0, ended.stderr.decode()


def test_what_is_read_is_checked() -> None:
    assert decode_json(b'{"name": "a"}', Thing) == Thing("a")
    assert convert_json({"name": "a"}, Thing) == Thing("a")
    with pytest.raises(msgspec.ValidationError):
        decode_json(b"{}", Thing)
    with pytest.raises(msgspec.ValidationError):
        convert_json({}, Thing)
    assert json_decoder(Thing) is json_decoder(Thing)


def test_no_other_module_creates_decoders_after_its_import() -> None:
    calls = [
        f"{path.relative_to(PACKAGE)}:{call.lineno}"
        for path in PACKAGE.rglob("*.py")
        if path != MAKER and DECODES.search(text := path.read_text())
        for call in calls_in_functions(ast.parse(text))
        if is_made_here(call)
    ]
    assert calls == []


def calls_in_functions(module: ast.Module) -> Iterator[ast.Call]:
    """Yield the calls inside functions, which run after the import."""
    for function in ast.walk(module):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from (node for node in ast.walk(function) if isinstance(node, ast.Call))


def is_made_here(call: ast.Call) -> bool:
    name = ast.unparse(call.func)
    typed = any(keyword.arg == "type" for keyword in call.keywords)
    decodes = name in ("msgspec.json.decode", "msgspec.msgpack.decode", "msgspec.yaml.decode")
    return name in ("msgspec.convert", "msgspec.json.Decoder") or (decodes and typed)
