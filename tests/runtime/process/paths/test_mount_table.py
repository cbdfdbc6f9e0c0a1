import pytest

from podstatus.runtime.process.paths.mount_table import parse_mount_table

TABLE = parse_mount_table(
    """\
22 27 0:21 / /proc rw,relatime - proc proc rw
23 27 0:22 / /sys rw,relatime shared:7 - sysfs sysfs rw
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw
40 27 254:0 /var/lib/podstatus /mnt/whole rw - ext4 /dev/vda rw
41 27 254:0 /var/lib/podstatus/pods /mnt/a\\040part rw - ext4 /dev/vda rw
42 27 254:0 /var /mnt/above ro shared:1 master:2 - ext4 /dev/vda rw
43 27 8:1 / /srv rw - xfs /dev/sda1 rw
44 43 0:21 / /srv/root/proc rw - proc proc rw
45 27 0:50 / /mnt/whole rw - tmpfs tmpfs rw
46 27 8:1 /data/key /etc/key rw - xfs /dev/sda1 rw
"""
)


@pytest.mark.parametrize(
    ("path", "point"),
    [
        ("/", "/"),
        ("/etc", "/"),
        ("/proc", "/proc"),
        ("/proc/1", "/proc"),
        ("/process", "/"),
        ("/srv/root/proc/1/root", "/srv/root/proc"),
        ("/mnt/a part/x", "/mnt/a part"),
    ],
)
def test_the_deepest_mount_shows_a_path(path: str, point: str) -> None:
    mount = TABLE.find_mount(path)
    assert mount is not None
    assert mount.mount_point == point


def test_a_later_mount_covers_one_at_the_same_point() -> None:
    mount = TABLE.find_mount("/mnt/whole/x")
    assert mount is not None
    assert mount.fs_type == "tmpfs"
    by_id = TABLE.find_mount("/mnt/whole/x", 40)
    assert by_id is not None
    assert by_id.fs_type == "ext4"


def test_mounts_below_a_folder_come_along_with_it() -> None:
    assert [mount.mount_point for mount in TABLE.below("/srv")] == ["/srv/root/proc"]
    assert "/proc" in [mount.mount_point for mount in TABLE.below("/")]
    assert [mount.mount_point for mount in TABLE.of_type("proc")] == ["/proc", "/srv/root/proc"]


@pytest.mark.parametrize(
    ("path", "places"),
    [
        (
            "/var/lib/podstatus",
            ["/mnt/whole", "/mnt/a part", "/mnt/above/lib/podstatus"],
        ),
        (
            "/var/lib/podstatus/pods/u",
            ["/mnt/whole/pods/u", "/mnt/a part/u", "/mnt/above/lib/podstatus/pods/u"],
        ),
        ("/srv/data/key", ["/etc/key"]),
        ("/srv/data", ["/etc/key"]),
        ("/etc/key", ["/srv/data/key"]),
        ("/opt", []),
    ],
)
def test_a_folder_is_found_wherever_it_is_mounted(path: str, places: list[str]) -> None:
    assert sorted(TABLE.visible_paths([path])) == sorted([path, *places])
