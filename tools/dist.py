"""Everything that a release publishes, in dist/: `make dist`.

The files come from the last commit, never from the working tree, so that what is published is what
was tagged. The same commit yields the same bytes, with the same compiler, setuptools and zlib:
archives are sorted, and their times, owners and modes do not depend on the machine.

The version is that of twinedge/version.py. Manifests of other package managers must repeat it;
`make version` writes it there.
"""

import argparse
import gzip
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timezone
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple
from uuid import NAMESPACE_URL, uuid5

import build
from cyclonedx.model import HashAlgorithm, HashType, Property
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.model.license import DisjunctiveLicense
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]
NAME = "twinedge"
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

# Environment variables that would change the compiler's output.
FLAGS = ("CFLAGS", "CPPFLAGS", "LDFLAGS", "ARCHFLAGS", "PYTHONPATH")


class DistError(Exception):
    """What prevents a release, in one line."""


class Source(NamedTuple):
    """A commit, as files."""

    tree: Path
    commit: str
    epoch: int  # seconds since 1970 of the commit

    @property
    def version(self) -> str:
        """What twinedge/version.py says."""
        return version_of(self.tree)


def version_of(tree: Path) -> str:
    """Read the version of a tree from the one place that defines it."""
    text = (tree / NAME / "version.py").read_text("utf-8")
    found = re.search(r'^__version__ = "(\d+\.\d+\.\d+)"$', text, re.M)
    if not found:
        raise DistError(f"{NAME}/version.py has no version of three numbers, such as 1.2.0")
    return found[1]


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


def committed(root: Path, folder: Path) -> Source:
    """Put the files of the last commit into a folder; refuse a dirty tree."""
    changed = _git(root, "status", "--porcelain", "--untracked-files").decode().splitlines()
    if changed:
        more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
        raise DistError(f"not committed: {changed[0][3:]}{more}; commit or stash first")
    commit, epoch = _git(root, "log", "-1", "--format=%H %ct").decode().split()
    with tarfile.open(fileobj=io.BytesIO(_git(root, "archive", "HEAD"))) as tar:
        if hasattr(tarfile, "data_filter"):
            tar.extraction_filter = tarfile.data_filter
        tar.extractall(folder)
    return Source(folder, commit, int(epoch))


def _git(root: Path, *words: str) -> bytes:
    done = subprocess.run(["git", *words], cwd=root, capture_output=True)
    if done.returncode:
        raise DistError(f"git {words[0]}: {done.stderr.decode().strip().splitlines()[-1]}")
    return done.stdout


def files_below(root: Path, names: Iterable[str]) -> dict[str, bytes]:
    """Read files, and all files of folders."""
    found = {}
    for name in names:
        path = root / name
        for one in path.rglob("*") if path.is_dir() else [path]:
            if one.is_symlink():
                raise DistError(
                    f"{one.relative_to(root)} is a link, which some systems cannot store"
                )
            if one.is_file():
                found[one.relative_to(root).as_posix()] = one.read_bytes()
    return found


def write_zip(path: Path, files: Mapping[str, bytes], epoch: int) -> Path:
    """Write files in the given order, all with the same time and mode."""
    when = time.gmtime(max(epoch, 315532800))[:6]  # zip times start in 1980
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            info = zipfile.ZipInfo(name, when)
            info.create_system = 3  # Unix, for the modes
            info.external_attr = 0o100644 << 16
            archive.writestr(info, content, zipfile.ZIP_DEFLATED, 9)
    return path


def write_tar(path: Path, files: Mapping[str, bytes], epoch: int) -> Path:
    """Write files in the given order, all with the same time, mode and owner."""
    with (
        path.open("wb") as raw,
        gzip.GzipFile("", "wb", 9, raw, epoch) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size, info.mtime, info.mode = len(content), epoch, 0o644
            archive.addfile(info, io.BytesIO(content))
    return path


def python_packages(source: Source, folder: Path, wheels: Path | None = None) -> list[Path]:
    """Build the source distribution, and from that the wheel for this machine.

    If a folder is given, its wheels are used instead.
    """
    copied = _copy_wheels(source, wheels, folder) if wheels else []
    with tempfile.TemporaryDirectory() as scratch:
        made = Path(_builder(source.tree, source).build("sdist", scratch))
        with tarfile.open(made) as tar:
            members = sorted((one for one in tar if one.isfile()), key=lambda one: one.name)
            files = {one.name: tar.extractfile(one).read() for one in members}
        sdist = write_tar(folder / made.name, files, source.epoch)
        if copied:
            return [sdist, *copied]
        for name, content in files.items():
            path = Path(scratch, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        tree = Path(scratch, made.name.removesuffix(".tar.gz"))
        made = Path(_builder(tree, source).build("wheel", scratch))
        with zipfile.ZipFile(made) as archive:
            # A wheel's metadata comes last, with RECORD at the very end.
            names = sorted(archive.namelist(), key=lambda name: (".dist-info/" in name, name))
            names.sort(key=lambda name: name.endswith(".dist-info/RECORD"))
            wheel = write_zip(
                folder / made.name, {name: archive.read(name) for name in names}, source.epoch
            )
    return [sdist, wheel]


def _copy_wheels(source: Source, wheels: Path, folder: Path) -> list[Path]:
    """Copy wheels built elsewhere."""
    found = sorted(wheels.glob("*.whl"))
    others = [path.name for path in found if path.name.split("-")[1] != source.version]
    if others or not found:
        raise DistError(f"{wheels} has {others[0] if others else 'no wheel'}: build them anew")
    return [Path(shutil.copy(path, folder)) for path in found]


def _builder(tree: Path, source: Source) -> build.ProjectBuilder:
    """Return a builder that uses the setuptools installed here, which constraints.txt pins."""
    environment = {name: value for name, value in os.environ.items() if name not in FLAGS}
    environment |= {"SOURCE_DATE_EPOCH": str(source.epoch), "LC_ALL": "C", "PYTHONHASHSEED": "0"}

    def run(
        command: Sequence[str],
        cwd: str | None = None,
        extra_environ: Mapping[str, str] | None = None,
    ) -> None:
        done = subprocess.run(
            command,
            cwd=cwd,
            env=environment | dict(extra_environ or {}),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        if done.returncode:
            sys.stderr.write(done.stdout)
            raise subprocess.CalledProcessError(done.returncode, command)

    return build.ProjectBuilder(tree, runner=run)


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


def make_dist(root: Path, target: Path, wheels: Path | None = None) -> list[Path]:
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
        files += python_packages(source, folder, wheels)
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
    parser.add_argument("--wheels", type=Path, metavar="FOLDER", help="use these, and build none")
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
        for path in make_dist(ROOT, options.output.resolve(), options.wheels):
            print(f"{path.stat().st_size:>9,}  {path.name}")
        if (address := address_of(ROOT)).split("/")[2].endswith(".example"):
            print(f"dist: nobody can reach {address}; see docs/releasing.md", file=sys.stderr)
    except (DistError, build.BuildException, build.BuildBackendException) as error:
        print(f"dist: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
