"""The source of a release, and archives whose bytes depend on nothing else.

Files in an archive are in a given order, all with the same time, mode and owner.
"""

import gzip
import io
import re
import subprocess
import tarfile
import time
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

NAME = "twinedge"


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
