"""The registries' own tools accept the packages of a release."""

import json
import os
import re
import tarfile
from pathlib import Path

import pytest

from twinedge.version import __version__

pytestmark = pytest.mark.slow  # installs those tools

WORKFLOWS = Path(__file__).parents[2] / ".github" / "workflows"

# `pio pkg pack` downloads the list of licences; this provides the one needed.
PIO = """
import sys
from platformio.package.manifest.schema import ManifestSchema
licences = {"licenses": [{"licenseId": "Apache-2.0"}]}
ManifestSchema.load_spdx_licenses = staticmethod(lambda: licences)
from platformio.__main__ import main
sys.exit(main(["pio", *sys.argv[1:]]))
"""

# What Zephyr documents about zephyr/module.yml, as far as a library needs it.
MODULE = """
type: map
mapping:
  name: {type: str}
  build:
    type: map
    mapping:
      cmake: {type: str}
      kconfig: {type: str}
      depends: {type: seq, sequence: [{type: str}]}
  samples: {type: seq, sequence: [{type: str}]}
  tests: {type: seq, sequence: [{type: str}]}
"""

KCONFIG = """
import json, sys
import kconfiglib
found = kconfiglib.Kconfig(sys.argv[1], warn_to_stderr=False)
assert not found.warnings, found.warnings
if "TWINEDGE" in found.syms:
    found.syms["TWINEDGE"].set_value("y")
print(json.dumps({s.name: s.str_value for s in found.unique_defined_syms}))
"""


def members(archive):
    with tarfile.open(archive) as file:
        return {name.removeprefix("./"): file.getmember(name) for name in file.getnames()}


def test_platformio_packs_the_library(tools, run, unpacked, tmp_path):
    archive = tmp_path / "twinedge.tar.gz"
    run(tools / "python", "-c", PIO, "pkg", "pack", unpacked("platformio"), "-o", archive)
    found = members(archive)
    wanted = {"library.json", "include/twin.h", "src/twin_open.c", "examples/Predict/Predict.ino"}
    assert wanted <= set(found)
    assert found["LICENSE"].isfile()
    # The other examples are not sketches, and need the ports.
    examples = {name for name, member in found.items() if member.isfile() and "examples" in name}
    assert {name.split("/")[1] for name in examples} == {"Predict"}
    assert not [name for name in found if name.split("/")[0] in ("ports", "proof", "test", "build")]


def test_platformio_installs_the_file_itself(tools, run, zipped, tmp_path):
    (tmp_path / "platformio.ini").write_text("[env:native]\nplatform = native\n")
    library = f"file://{zipped('platformio')}"
    own = os.environ | {"PLATFORMIO_CORE_DIR": str(tmp_path / "core")}
    run(tools / "pio", "pkg", "install", "--no-save", "--library", library, cwd=tmp_path, env=own)
    (found,) = tmp_path.glob(".pio/libdeps/native/*/library.json")
    assert json.loads(found.read_text())["version"] == __version__


def test_the_component_manager_packs_the_component(tools, run, unpacked, tmp_path):
    run(
        *(tools / "compote", "component", "pack", "--name", "twinedge"),
        *("--project-dir", unpacked("esp-idf"), "--dest-dir", tmp_path),
        cwd=tmp_path,
    )
    found = members(tmp_path / f"twinedge_{__version__}.tgz")
    wanted = {"idf_component.yml", "CMakeLists.txt", "Kconfig", "cmake/settings.cmake"}
    assert wanted | {"include/twin.h", "src/twin_open.c"} <= set(found)
    assert not [name for name in found if name.split("/")[0] in ("ports", "proof", "test", "build")]


def test_the_module_has_the_fields_that_zephyr_documents(tools, run, unpacked, tmp_path):
    (tmp_path / "schema.yml").write_text(MODULE)
    home = unpacked("zephyr")
    module = home / "zephyr" / "module.yml"
    output = run(tools / "pykwalify", "-d", module, "-s", tmp_path / "schema.yml")
    assert "validation.valid" in output
    named = dict(re.findall(r"^  (cmake|kconfig): (\S+)$", module.read_text(), re.M))
    assert (home / named["cmake"] / "CMakeLists.txt").is_file()
    assert (home / named["kconfig"]).is_file()


@pytest.mark.parametrize(("kind", "name"), [("esp-idf", "Kconfig"), ("zephyr", "zephyr/Kconfig")])
def test_kconfig_knows_the_settings_and_their_defaults(tools, run, unpacked, kind, name):
    home = unpacked(kind)
    header = (home / "include" / "twin_config.h").read_text()
    settings, _ = header.split("/* Not settings:")
    others = {"TWIN_FLASH", "TWIN_HOST"}  # of AVR, and of hosts
    known = set(re.findall(r"^#define (TWIN_\w+) ", settings, re.M)) - others
    found = json.loads(run(tools / "python", "-c", KCONFIG, home / name))
    found.pop("TWINEDGE", None)
    numbers = {"TWIN_BLOCK": "2", "TWIN_TARGETS": "1"}
    assert found == {setting: numbers.get(setting, "y") for setting in known}


def test_espressif_finds_nothing_wrong_with_the_style_of_kconfig(tools, run, unpacked, tmp_path):
    (tmp_path / "Kconfig").write_text((unpacked("esp-idf") / "Kconfig").read_text())
    run(tools / "python", "-m", "kconfcheck", tmp_path / "Kconfig")


@pytest.mark.parametrize("path", sorted(WORKFLOWS.iterdir()), ids=lambda path: path.name)
def test_workflows_follow_githubs_schema(tools, run, path):
    run(tools / "check-jsonschema", "--builtin-schema", "vendor.github-workflows", path)
