"""Fixtures for the tests of twinedge.data."""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

FILES = ("bc", "bh", "cs", "ee", "rcl", "wn", "wsb", "yh")


@pytest.fixture(scope="session")
def true_folder() -> Path:
    """Return the folder with the paper's files; without it, skip, but fail under CI."""
    folder = os.environ.get("TWINEDGE_DATA", "")
    missing = [name for name in FILES if not (Path(folder) / f"{name}.csv").is_file()]
    if folder and not missing:
        return Path(folder)
    reason = f"TWINEDGE_DATA={folder!r} lacks {missing}"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def true_values(true_folder: Path) -> Callable[[str], np.ndarray]:
    """Return a reader of the true files that shares no code with the package."""
    return lambda name: np.loadtxt(true_folder / f"{name}.csv", delimiter=",", skiprows=1)


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No data folder and an empty cache, whose path is returned."""
    monkeypatch.delenv("TWINEDGE_DATA", raising=False)
    monkeypatch.setenv("TWINEDGE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Return a writer of small files: text in UTF-8, or bytes as they are."""

    def make(content: str | bytes, name: str = "t.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return make
