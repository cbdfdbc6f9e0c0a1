"""A manifest folder with real files, in virtual time."""

import asyncio
import logging
import os
from collections.abc import Iterable
from pathlib import Path

import pytest

from podstatus.kube.objects.pod import Pod
from podstatus.sources import file_source
from podstatus.sources.file_source import MAX_INITIAL_POLLS, FileSource, list_manifests
from podstatus.sources.manifest.decode import ManifestProblem
from podstatus.testing.clock import FakeClock
from tests.support.loops import until
from tests.support.manifests import WEB, named


class Scene:
    """A source that polls on request, and its deliveries."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.clock = FakeClock()
        self.delivered: list[tuple[Pod, ...]] = []
        self.problems: list[ManifestProblem] = []
        self.beats = 0
        self.source = FileSource(
            path,
            "node-1",
            self._take,
            clock=self.clock,
            on_problem=self.problems.append,
            heartbeat=self._beat,
        )

    def _take(self, pods: Iterable[Pod]) -> None:
        self.delivered.append(tuple(pods))

    def _beat(self) -> None:
        self.beats += 1

    def write(self, name: str, text: str) -> None:
        (self.path / name).write_text(text)

    async def look(self, times: int = 1, *, after: float = 1.0) -> list[str] | None:
        """Poll; return the delivery, or None if there was none."""
        before = len(self.delivered)
        for _ in range(times):
            await self.clock.advance(after)
            await self.source.poll_once()
        assert len(self.delivered) <= before + 1, "delivered twice"
        return [pod.name for pod in self.delivered[-1]] if len(self.delivered) > before else None

    def take_messages(self) -> list[str]:
        messages = [str(problem).replace(str(self.path), "/m") for problem in self.problems]
        self.problems.clear()
        return messages


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


async def test_a_folder_is_delivered_as_a_whole_and_then_when_it_changes(scene: Scene) -> None:
    scene.write("b.yaml", named("b"))
    scene.write("a.yaml", named("a"))
    assert await scene.look() == ["a-node-1", "b-node-1"]
    assert await scene.look() is None
    scene.write("c.json", '{"apiVersion": "v1", "kind": "Nope"}')
    assert await scene.look() is None
    scene.write("d.yaml", named("d") + "---\n" + named("e"))
    assert await scene.look() == ["a-node-1", "b-node-1", "d-node-1", "e-node-1"]


async def test_an_empty_folder_has_no_pods_and_that_is_said(scene: Scene) -> None:
    assert await scene.look() == []
    assert await scene.look(30) is None
    assert scene.take_messages() == []


async def test_dot_files_are_ignored(scene: Scene) -> None:
    scene.write(".a.yaml.swp", "nonsense")
    (scene.path / "..data").mkdir()
    assert await scene.look() == []
    assert scene.take_messages() == []


async def test_a_rewritten_file_with_equal_content_is_unchanged(scene: Scene) -> None:
    scene.write("a.yaml", WEB)
    await scene.look()
    scene.write("a.yaml", "# reviewed\n" + WEB.replace("name: a", "name:   a"))
    assert await scene.look() is None
    assert await scene.look(after=30) is None


async def test_a_file_that_says_something_else_is_another_pod(scene: Scene) -> None:
    scene.write("a.yaml", WEB)
    await scene.look()
    (before,) = scene.delivered[-1]
    scene.write("a.yaml", WEB.replace("busybox", "busybox:2"))
    assert await scene.look() == ["web-node-1"]
    (after,) = scene.delivered[-1]
    assert after.uid != before.uid


async def test_a_removed_file_takes_its_pods_along_at_the_second_look(scene: Scene) -> None:
    scene.write("a.yaml", named("a"))
    scene.write("b.yaml", named("b"))
    await scene.look()
    (scene.path / "a.yaml").unlink()
    assert await scene.look() is None
    assert await scene.look() == ["b-node-1"]


async def test_a_file_that_an_editor_puts_in_place_of_itself_is_not_missed(scene: Scene) -> None:
    scene.write("a.yaml", WEB)
    await scene.look()
    (scene.path / "a.yaml").unlink()
    assert await scene.look() is None
    scene.write("a.yaml", WEB)
    assert await scene.look(3) is None


async def test_a_renamed_file_is_never_there_twice(scene: Scene) -> None:
    scene.write("a.yaml", WEB)
    await scene.look()
    (scene.path / "a.yaml").rename(scene.path / "b.yaml")
    assert await scene.look() is None
    assert await scene.look() == ["web-node-1"]
    assert scene.delivered[0][0].uid != scene.delivered[1][0].uid


async def test_a_broken_file_keeps_its_pods_and_is_reported_once(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    scene.write("a.yaml", named("a"))
    scene.write("b.yaml", named("b"))
    await scene.look()
    scene.write("a.yaml", named("a")[:-20] + ": :")
    assert await scene.look(3, after=15) is None
    (message,) = scene.take_messages()
    assert message.startswith("/m/a.yaml, document 1: line 7: ")
    caplog.clear()
    with caplog.at_level(logging.INFO):
        scene.write("a.yaml", named("a"))
        assert await scene.look() is None
    assert [record.getMessage() for record in caplog.records] == [
        f"manifest is valid again: location={scene.path}/a.yaml"
    ]
    (scene.path / "a.yaml").unlink()
    assert await scene.look(2) == ["b-node-1"]


async def test_an_emptied_file_keeps_its_pods(scene: Scene) -> None:
    scene.write("a.yaml", named("a"))
    await scene.look()
    scene.write("a.yaml", "")
    assert await scene.look(3) is None
    assert scene.take_messages() == ["/m/a.yaml: empty; add a Pod, or remove the manifest"]


async def test_while_one_document_is_broken_nothing_of_its_file_is_taken_away(scene: Scene) -> None:
    scene.write("a.yaml", "---\n".join([named("a"), named("b"), named("c")]))
    await scene.look()
    changed = named("b").replace("busybox", "busybox:2")
    scene.write("a.yaml", "---\n".join([named("a", oops="1"), changed, named("d")]))
    assert await scene.look() == ["b-node-1", "d-node-1", "a-node-1", "c-node-1"]
    assert scene.delivered[-1][0].uid != scene.delivered[0][1].uid
    scene.write("a.yaml", "---\n".join([changed, named("d")]))
    assert await scene.look() == ["b-node-1", "d-node-1"]


async def test_a_broken_file_from_the_start_does_not_hold_up_the_others(scene: Scene) -> None:
    scene.write("a.yaml", "a: b: c")
    scene.write("b.yaml", named("b"))
    assert await scene.look() == ["b-node-1"]


async def test_a_second_problem_of_a_file_is_reported_alone(scene: Scene) -> None:
    scene.write("a.yaml", named("a", oops="1"))
    await scene.look()
    assert len(scene.take_messages()) == 1
    scene.write("a.yaml", named("a", oops="1") + "---\n" + named("b", oops="1"))
    await scene.look(2)
    assert scene.take_messages() == [
        '/m/a.yaml, document 2, pod default/b: strict decoding error: unknown field "spec.oops"'
    ]


async def test_what_is_no_manifest_is_reported_once(scene: Scene) -> None:
    (scene.path / "folder").mkdir()
    (scene.path / "link").symlink_to(scene.path / "nowhere")
    os.mkfifo(scene.path / "pipe")
    assert await scene.look() == []
    await scene.look(25)
    assert scene.take_messages() == [
        "/m/folder: directory; manifests in subdirectories are not read",
        "/m/link: symbolic link to a path that does not exist",
        "/m/pipe: not a regular file",
    ]


async def test_links_are_followed(scene: Scene, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "1").mkdir()
    (elsewhere / "1" / "a").write_text(named("a"))
    (elsewhere / "current").symlink_to("1")
    (scene.path / "a.yaml").symlink_to(elsewhere / "current" / "a")
    assert await scene.look() == ["a-node-1"]
    (elsewhere / "2").mkdir()
    (elsewhere / "2" / "a").write_text(named("b"))
    (elsewhere / "next").symlink_to("2")
    (elsewhere / "next").rename(elsewhere / "current")
    assert await scene.look() == ["b-node-1"]


async def test_a_huge_file_is_refused(scene: Scene) -> None:
    scene.write("a.yaml", "#" * (10 * 2**20 + 1))
    assert await scene.look() == []
    assert scene.take_messages() == ["/m/a.yaml: larger than 10 MiB"]


async def test_all_files_are_read_again_once_per_period(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.write("a.yaml", named("a"))
    await scene.look()
    before = list_manifests(str(scene.path))
    # As on a file system with coarse times: only the content differs.
    stamp = (scene.path / "a.yaml").stat()
    monkeypatch.setattr(file_source, "list_manifests", lambda _: before)
    monkeypatch.setattr(os, "fstat", lambda _: stamp)
    scene.write("a.yaml", named("b"))
    scene.clock.step(3600)
    assert await scene.look() is None
    scene.clock.step(-7200)
    assert await scene.look() is None
    assert await scene.look(after=18) == ["b-node-1"]


class Writer:
    """Writes a file again after it was listed, and before it is read."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._written = 0

    def __call__(self, path: str) -> file_source.ManifestListing:
        listing = list_manifests(path)
        self._written += 1
        self._scene.write("a.yaml", named(f"half-{self._written}"))
        return listing


async def test_a_file_that_changes_while_it_is_read_is_read_the_next_time(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.write("a.yaml", named("a"))
    scene.write("b.yaml", named("b"))
    with monkeypatch.context() as patched:
        patched.setattr(file_source, "list_manifests", Writer(scene))
        assert await scene.look(MAX_INITIAL_POLLS - 1) is None
    scene.write("a.yaml", named("a"))
    assert await scene.look() == ["a-node-1", "b-node-1"]
    with monkeypatch.context() as patched:
        patched.setattr(file_source, "list_manifests", Writer(scene))
        scene.write("a.yaml", named("c"))
        assert await scene.look(3) is None


async def test_a_file_that_never_comes_to_rest_does_not_hold_up_the_others_for_long(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.write("b.yaml", named("b"))
    scene.write("a.yaml", named("a"))
    monkeypatch.setattr(file_source, "list_manifests", Writer(scene))
    assert await scene.look(MAX_INITIAL_POLLS) == ["b-node-1"]


async def test_a_folder_that_does_not_exist_has_no_pods_and_is_reported(tmp_path: Path) -> None:
    scene = Scene(tmp_path / "later")
    assert await scene.look() == []
    assert await scene.look(3) is None
    assert scene.take_messages() == ["/m: does not exist; create it, or configure another path"]
    scene.path.mkdir()
    scene.write("a.yaml", named("a"))
    assert await scene.look() == ["a-node-1"]
    (scene.path / "a.yaml").unlink()
    scene.path.rmdir()
    assert await scene.look(2) == []
    assert scene.take_messages() == ["/m: does not exist; create it, or configure another path"]


async def test_a_folder_that_cannot_be_read_keeps_its_pods(scene: Scene) -> None:
    scene.write("a.yaml", named("a"))
    await scene.look()
    moved = scene.path.rename(scene.path.with_name("moved"))
    scene.path.symlink_to(scene.path)  # a link to itself cannot be read, not even by root
    assert await scene.look(3) is None
    (message,) = scene.take_messages()
    assert message == "/m: cannot be read: Too many levels of symbolic links"
    scene.path.unlink()
    moved.rename(scene.path)
    assert await scene.look(3) is None


async def test_a_single_file_will_do(tmp_path: Path) -> None:
    scene = Scene(tmp_path / "pods.yaml")
    scene.path.write_text(named("a"))
    assert await scene.look() == ["a-node-1"]
    scene.path.write_text(named("b"))
    assert await scene.look() == ["b-node-1"]
    scene.path.unlink()
    assert await scene.look() is None
    assert await scene.look() == []
    assert scene.take_messages() == ["/m: does not exist; create it, or configure another path"]


async def test_a_handler_of_problems_that_fails_stops_nothing(tmp_path: Path) -> None:
    delivered: list[int] = []

    def fail(_: ManifestProblem) -> None:
        raise RuntimeError("no")

    (tmp_path / "a.yaml").write_text("a: b: c")
    (tmp_path / "b.yaml").write_text(named("b"))
    source = FileSource(
        tmp_path,
        "node-1",
        lambda pods: delivered.append(len(list(pods))),
        clock=FakeClock(),
        on_problem=fail,
        heartbeat=lambda: None,
    )
    await source.poll_once()
    assert delivered == [1]


async def test_run_looks_once_a_second_and_again_soon_after_a_file_was_missing(
    scene: Scene,
) -> None:
    scene.write("a.yaml", named("a"))
    task = asyncio.create_task(scene.source.run())
    await until(lambda: len(scene.delivered) == 1)
    (scene.path / "a.yaml").unlink()
    beats = scene.beats
    while len(scene.delivered) < 2:
        await asyncio.sleep(0.01)
        await scene.clock.advance(0.1)
    assert scene.beats >= beats + 2
    assert scene.delivered[-1] == ()
    task.cancel()
