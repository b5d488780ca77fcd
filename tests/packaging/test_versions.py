"""All manifests have one version, one licence, and files that exist."""

import json
import re

from twinedge.pack import layout
from twinedge.version import __version__


def test_all_manifests_have_the_version_of_the_python_package(dist, firmware):
    assert dist.version_of(firmware.parent) == __version__
    assert dist.stamped(firmware.parent) == {}


def test_no_manifest_is_forgotten(dist, firmware):
    found = {
        path.relative_to(firmware).as_posix()
        for name in ("*.*", "*/*.h", "*/*.yml", "*/*.cmake")
        for path in firmware.glob(name)
        if path.is_file() and re.search(rf"\b{re.escape(__version__)}\b", path.read_text("utf-8"))
    }
    assert found == set(dist.VERSIONS)


def test_the_header_tells_its_version_in_numbers_too(firmware):
    text = (firmware / "include" / "twin.h").read_text()
    numbers = re.findall(r"^#define TWIN_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)$", text, re.M)
    assert ".".join(numbers) == __version__


def test_the_header_tells_which_packs_it_reads(firmware):
    text = (firmware / "include" / "twin.h").read_text()
    versions = re.findall(r"^#define TWIN_PACK_(?:OLDEST|NEWEST) +(\d+)$", text, re.M)
    assert [int(one) for one in versions] == [layout.OLDEST, layout.NEWEST]


def test_platformio_lists_files_that_are_there(firmware):
    manifest = json.loads((firmware / "library.json").read_text())
    (example,) = manifest["examples"]
    for name in (
        *manifest["export"]["include"],
        *(f"{example['base']}/{n}" for n in example["files"]),
    ):
        assert (firmware / name).exists(), name
    assert (firmware / "include" / manifest["headers"]).is_file()


def test_the_licence_is_that_of_the_project(firmware):
    assert (firmware / "LICENSE").read_bytes() == (firmware.parent / "LICENSE").read_bytes()
