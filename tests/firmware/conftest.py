"""Fixtures for the tests of firmware_ref."""

import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest

HERE = Path(__file__).parent


def load(path):
    return SimpleNamespace(**runpy.run_path(str(path)))


@pytest.fixture(scope="session")
def packs():
    """Return what ``random_packs.py`` defines."""
    return load(HERE.parent / "pack" / "random_packs.py")


@pytest.fixture(scope="session")
def native():
    """Return what ``library.py`` defines."""
    return load(HERE / "library.py")


@pytest.fixture(scope="session")
def flash():
    """Return what ``flash.py`` defines."""
    return load(HERE / "flash.py")


@pytest.fixture(scope="session")
def logs():
    """Return what ``logs.py`` defines."""
    return load(HERE / "logs.py")


@pytest.fixture(scope="session")
def cases():
    """Return what ``cases.py`` defines."""
    return load(HERE / "cases.py")


@pytest.fixture(scope="session")
def make_replay(cases, packs, native, tmp_path_factory):
    """Write packs and queries for replay.c, with the expected output: ``make_replay(queries)``."""
    replay = load(HERE / "replay.py").Replay
    return lambda queries: replay(cases, packs, native, tmp_path_factory.mktemp("replay"), queries)


@pytest.fixture(scope="session")
def replay(make_replay):
    """Three hundred queries of each pack."""
    return make_replay(300)


@pytest.fixture(scope="session")
def short_replay(make_replay):
    """A hundred."""
    return make_replay(100)


@pytest.fixture(scope="session")
def library(native, tmp_path_factory):
    """The runtime with the portable kernel; test_kernels.py has the others."""
    path = tmp_path_factory.mktemp("library") / "libtwin.so"
    options = ("-O2", "-fPIC", "-shared", "-DTWIN_HOST=0", *native.EXTRA_OPTIONS)
    return native.load(native.compile_c(path, *options))


@pytest.fixture(scope="session")
def open_pack(native, library):
    """Open bytes with the C runtime: ``open_pack(data)``."""
    return lambda data, **options: native.Native(library, data, **options)


@pytest.fixture(scope="session")
def small(packs, cases):
    """A pack with some of everything, in less than a kilobyte."""
    return cases.draw(packs, "some-of-everything")
