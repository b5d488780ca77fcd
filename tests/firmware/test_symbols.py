"""What the object files need and show: no allocation, no libc but two functions, no state."""

import pytest

ALLOWED = {"memcpy", "memset", "_GLOBAL_OFFSET_TABLE_"}


@pytest.fixture(scope="module", params=["-O0", "-O2"])
def symbols(request, native, tmp_path_factory):
    """Return all symbols of the objects as (type, name)."""
    folder = tmp_path_factory.mktemp("objects")
    found = []
    for source in native.SOURCES:
        output = folder / f"{source.stem}.o"
        options = (request.param, "-c", "-fno-pic", "-fno-stack-protector")
        native.compile_c(output, *options, sources=[source])
        lines = native.run("nm", "--format=posix", output).splitlines()
        found += [(line.split()[1], line.split()[0]) for line in lines]
    return found


def test_nothing_is_needed_but_memcpy_and_memset(symbols):
    defined = {name for kind, name in symbols if kind in "TDRB"}
    needed = {name for kind, name in symbols if kind == "U"}
    assert needed - defined <= ALLOWED


def test_only_names_of_the_library_are_exported(symbols):
    exported = {name for kind, name in symbols if kind.isupper() and kind != "U"}
    assert "twin_open" in exported
    assert {name for name in exported if not name.startswith("twin_")} == set()


def test_there_is_no_state(symbols):
    assert [name for kind, name in symbols if kind.upper() in "BDC"] == []
