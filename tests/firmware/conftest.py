"""Fixtures for the tests of firmware_ref."""

import runpy
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest

from twinedge.pack import PackError, read_pack

HERE = Path(__file__).parent


def defined_in(path):
    """Make a fixture of what a file defines."""
    return pytest.fixture(scope="session")(lambda: SimpleNamespace(**runpy.run_path(str(path))))


packs = defined_in(HERE.parent / "pack" / "random_packs.py")
faults = defined_in(HERE.parent / "pack" / "faults.py")
cases = defined_in(HERE / "cases.py")
native = defined_in(HERE / "library.py")
flash = defined_in(HERE / "flash.py")
logs = defined_in(HERE / "logs.py")
stores = defined_in(HERE / "stores.py")
releases = defined_in(HERE / "releases.py")
replays = defined_in(HERE / "replay.py")


@pytest.fixture(scope="session")
def make_replay(replays, cases, packs, native, tmp_path_factory):
    """Write packs and queries for replay.c, with the expected output: ``make_replay(queries)``."""
    make = tmp_path_factory.mktemp
    return lambda queries: replays.Replay(cases, packs, native, make("replay"), queries)


@pytest.fixture(scope="session")
def replay(make_replay):
    """A hundred queries of each pack."""
    return make_replay(100)


@pytest.fixture(scope="session")
def short_replay(make_replay):
    """Twenty, for emulators and sanitizers."""
    return make_replay(20)


@pytest.fixture(scope="session")
def objects(native, tmp_path_factory):
    """Compile the runtime, once: ``objects(*options)``; ``host=True`` with kernels for hosts."""

    @cache
    def build(*options, host=False):
        folder = tmp_path_factory.mktemp("objects")
        made = []
        for path in native.SOURCES if host else native.PORTABLE:
            more = () if host else ("-DTWIN_HOST=0",)
            if path not in native.PORTABLE:
                more = ("-O0",)  # optimising them takes most of the time
            made.append(folder / f"{path.stem}.o")
            native.compile_c(made[-1], *options, *more, "-c", sources=[path])
        return made

    return build


@pytest.fixture(scope="session")
def library(native, flash, stores, releases, objects, tmp_path_factory):
    """The runtime with the portable kernel, the memory of flash.c, and drive_watch.c."""
    path, options = tmp_path_factory.mktemp("library") / "libtwin.so", native.SHARED
    sources = [*objects(*options), *flash.SOURCES, HERE / "drive_watch.c"]
    native.compile_c(path, *options, "-shared", "-DTWIN_HOST=0", sources=sources)
    return native.load(path, flash.SIGNATURES, stores.SIGNATURES, releases.SIGNATURES)


@pytest.fixture(scope="session")
def open_pack(native, library):
    """Open bytes with the C runtime: ``open_pack(data)``."""
    return lambda data, **options: native.Native(library, data, **options)


@pytest.fixture(scope="session")
def expected():
    """Return the code of the Python reader; the C runtime does not look at metadata."""

    def read(data):
        try:
            read_pack(bytes(data))
        except PackError as error:
            return "ok" if "metadata" in str(error) else error.reason.value
        return "ok"

    return read


@pytest.fixture(scope="session")
def same(open_pack, expected):
    """Assert that C refuses what Python refuses, in one go and in steps; return the code."""

    def compare(data):
        code = open_pack(data).status
        assert code == expected(data)
        assert open_pack(data, step=32).status == code
        return code

    return compare


@pytest.fixture(scope="session")
def small(packs, cases):
    """A pack with some of everything, in less than a kilobyte."""
    return cases.draw(packs, "some-of-everything")


@pytest.fixture
def uninstrumented(native):
    """Skip a test that would notice that the library counts or checks."""
    if native.EXTRA_OPTIONS:
        pytest.skip("instrumented")
