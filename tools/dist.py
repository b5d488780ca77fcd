"""Everything that a release publishes, in dist/: `make dist`.

The files come from the last commit, never from the working tree, so that what is published is what
was tagged. The same commit yields the same bytes, with the same compiler, setuptools and zlib:
archives are sorted, and their times, owners and modes do not depend on the machine.

The version is that of twinedge/version.py. Manifests of other package managers must repeat it;
`make version` writes it there.
"""

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from itertools import chain
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import build
from archives import NAME, DistError, Source, committed, files_below, version_of, write_zip
from cyclonedx.model import HashAlgorithm, HashType, Property
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.model.license import DisjunctiveLicense
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from wheels import python_packages

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]
FIRMWARE = "firmware_ref"
SUMS = "SHA256SUMS"

# Other places of the version and the address, and their patterns; the first group is replaced.
VERSIONS = {
    "CMakeLists.txt": {r"^project\(twinedge VERSION (\S+) ": "{0}"},
    "idf_component.yml": {r'^version: "(.*)"$': "{0}", r"^url: (.*)$": "{address}"},
    "library.json": {
        r'^  "version": "(.*)",$': "{0}",
        r'^  "homepage": "(.*)",$': "{address}",
    },
    "library.properties": {r"^version=(.*)$": "{0}", r"^url=(.*)$": "{address}"},
    "include/twin.h": {
        r'^#define TWIN_VERSION +"(.*)"$': "{0}",
        r"^#define TWIN_VERSION_MAJOR (\d+)$": "{1}",
        r"^#define TWIN_VERSION_MINOR (\d+)$": "{2}",
        r"^#define TWIN_VERSION_PATCH (\d+)$": "{3}",
    },
}

# What each package of the C runtime adds to these: files and folders of firmware_ref.
SHARED = ("FORMAT.md", "LICENSE", "README.md", "include", "src")
C_PACKAGES = {
    "arduino": ("library.properties", "examples/Predict"),
    "platformio": ("library.json", "library.properties", "examples/Predict"),
    "esp-idf": ("idf_component.yml", "CMakeLists.txt", "Kconfig", "cmake"),
    "zephyr": ("zephyr", "Kconfig", "cmake"),
    "cmake": ("CMakeLists.txt", "cmake", "example"),
}
SINGLE = "amalgamation"


def address_of(tree: Path) -> str:
    """Read the address of the project from the one place that defines it."""
    text = (tree / NAME / "version.py").read_text("utf-8")
    found = re.search(r'^ADDRESS = "(https://\S+[^/])"$', text, re.M)
    if not found:
        raise DistError(f"{NAME}/version.py has no ADDRESS that begins with https://")
    return found[1]


def stamped(tree: Path) -> dict[Path, str]:
    """Return the manifests with a different version, each with the text it should have."""
    version, address = version_of(tree), address_of(tree)
    wrong = {}
    for name, patterns in VERSIONS.items():
        path = tree / FIRMWARE / name
        text = old = path.read_text("utf-8")
        for pattern, value in patterns.items():
            places = list(re.finditer(pattern, text, re.M))
            if len(places) != 1:
                raise DistError(f"{FIRMWARE}/{name} has no line like {pattern}, or several")
            start, end = places[0].span(1)
            new = value.format(version, *version.split("."), address=address)
            text = text[:start] + new + text[end:]
        if text != old:
            wrong[path] = text
    return wrong


def c_package(kind: str, source: Source, folder: Path) -> Path:
    """Write the C runtime for one package manager: a zip with one folder, twinedge/."""
    names = (*SHARED, *C_PACKAGES[kind])
    files = files_below(source.tree / FIRMWARE, names)
    return _zipped(kind, files, source, folder)


def amalgamation(source: Source, folder: Path) -> Path:
    """Write the C runtime as one twin.c and one twin.h."""
    with tempfile.TemporaryDirectory() as scratch:
        path = os.pathsep.join(map(str, (source.tree, source.tree / "export")))
        subprocess.run(
            [sys.executable, "-m", "twinedge_export.amalgamation", scratch],
            env=os.environ | {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
            cwd=scratch,
            stdout=subprocess.DEVNULL,
            check=True,
        )
        files = files_below(Path(scratch), ("twin.c", "twin.h"))
    files |= files_below(source.tree / FIRMWARE, ("LICENSE",))
    return _zipped(SINGLE, files, source, folder)


def _zipped(kind: str, files: Mapping[str, bytes], source: Source, folder: Path) -> Path:
    path = folder / f"{NAME}-{kind}-{source.version}.zip"
    return write_zip(path, {f"{NAME}/{name}": files[name] for name in sorted(files)}, source.epoch)


def bill_of_materials(source: Source, files: Iterable[Path], folder: Path) -> Path:
    """Write the bill of materials and the requirements, as CycloneDX.

    The C runtime needs nothing. For the Python package, direct requirements are listed, in the
    versions that the tests run with.
    """
    project = tomllib.loads((source.tree / "pyproject.toml").read_text("utf-8"))
    about = project["project"]
    own = {"version": source.version, "licenses": [DisjunctiveLicense(id=about["license"])]}
    purl = PackageURL("pypi", None, NAME, source.version)
    package = Component(name=NAME, bom_ref=NAME, purl=purl, description=about["description"], **own)
    runtime = Component(name=f"{NAME} C runtime", bom_ref=f"{NAME}-C-runtime", **own)
    needed = _needed(project, (source.tree / "constraints.txt").read_text("utf-8"))
    bom = Bom(serial_number=uuid5(NAMESPACE_URL, f"{NAME}:{source.commit}"))
    bom.metadata.timestamp = datetime.fromtimestamp(source.epoch, timezone.utc)
    bom.metadata.component = package
    bom.metadata.properties.add(Property(name=f"{NAME}:commit", value=source.commit))
    bom.components.update([runtime, *needed])
    bom.register_dependency(package, [runtime, *needed])
    for path in files:
        kind, digest = (
            ComponentType.FILE,
            HashType(alg=HashAlgorithm.SHA_256, content=_sha256(path)),
        )
        one = Component(name=path.name, bom_ref=path.name, type=kind, hashes=[digest], **own)
        bom.components.add(one)
        bom.register_dependency(one, [package if path.suffix in (".whl", ".gz") else runtime])
    path = folder / f"{NAME}-{source.version}.cdx.json"
    path.write_text(JsonV1Dot6(bom).output_as_string(indent=2) + "\n", "utf-8")
    return path


def _needed(project: Mapping[str, Any], constraints: str) -> list[Component]:
    """List what is needed to run, for extras, and to build, in this order of precedence."""
    about = project["project"]
    extras = about["optional-dependencies"]
    wanted: dict[str, tuple[ComponentScope, Requirement]] = {}
    for scope, texts in (
        (ComponentScope.REQUIRED, about["dependencies"]),
        (ComponentScope.OPTIONAL, chain(*extras.values())),
        (ComponentScope.EXCLUDED, project["build-system"]["requires"]),
    ):
        for requirement in map(Requirement, texts):
            wanted.setdefault(canonicalize_name(requirement.name), (scope, requirement))
    wanted.pop(NAME, None)  # extras that include others
    pins = re.findall(r"^(\S+)==(\S+)", constraints, re.M)
    known = {canonicalize_name(name): version for name, version in pins}
    return [
        Component(
            name=name,
            bom_ref=f"needs-{name}",
            version=known.get(name),
            scope=scope,
            purl=PackageURL("pypi", None, name, known.get(name)),
            properties=[Property(name=f"{NAME}:requirement", value=str(requirement))],
        )
        for name, (scope, requirement) in sorted(wanted.items())
    ]


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def make_dist(root: Path, target: Path) -> list[Path]:
    """Replace a folder by one with all files of the last commit's release.

    Returns their paths in ``target``. On failure the folder is left as it was.
    """
    os.umask(0o022)
    with tempfile.TemporaryDirectory() as scratch:
        tree, folder = Path(scratch, "tree"), Path(scratch, "dist")
        tree.mkdir()
        folder.mkdir()
        source = committed(root, tree)
        for path in stamped(tree):
            other = f"is not of version {source.version} and its address"
            raise DistError(f"{path.relative_to(tree)} {other}: run `make version`")
        files = [c_package(kind, source, folder) for kind in C_PACKAGES]
        files.append(amalgamation(source, folder))
        files += python_packages(source, folder)
        files.append(bill_of_materials(source, files, folder))
        lines = [f"{_sha256(path)}  {path.name}\n" for path in sorted(files)]
        (folder / SUMS).write_text("".join(lines), "utf-8")
        beside = target.with_name(f"{target.name}.new")
        shutil.rmtree(beside, ignore_errors=True)
        shutil.copytree(folder, beside)
    shutil.rmtree(target, ignore_errors=True)
    beside.rename(target)
    return sorted(target.iterdir())


def main() -> int:
    """Make a release, or write its version into the manifests."""
    parser = argparse.ArgumentParser(description="Make all that a release publishes.")
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "dist", metavar="FOLDER")
    parser.add_argument(
        "--stamp", action="store_true", help="write the version into all manifests, and stop"
    )
    options = parser.parse_args()
    try:
        if options.stamp:
            for path, text in stamped(ROOT).items():
                path.write_text(text, "utf-8")
                print(path.relative_to(ROOT))
            return 0
        for path in make_dist(ROOT, options.output.resolve()):
            print(f"{path.stat().st_size:>9,}  {path.name}")
        if (address := address_of(ROOT)).split("/")[2].endswith(".example"):
            print(f"dist: nobody can reach {address}; see docs/releasing.md", file=sys.stderr)
    except (DistError, build.BuildException, build.BuildBackendException) as error:
        print(f"dist: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
