"""Every knob of twin_config.h: what is left out is refused, and the rest still predicts."""

import numpy as np
import pytest

from twinedge.pack import write_pack
from twinedge.runtime import reference

KNOBS = {
    "TWIN_FLOAT": (),
    "TWIN_NEIGHBOURS": ("neighbours", "one-neighbour"),
    "TWIN_SILU": ("three-layers", "any-weights"),
    "TWIN_INT16": ("relu-int16", "64-features-int16"),
    "TWIN_TEXT": (),
    "TWIN_PARTIAL": (),
    "TWIN_HOST": (),
    "TWIN_QUICK_OPEN": (),
    "TWIN_OPEN_STEPS": (),
}


@pytest.mark.parametrize("knob", KNOBS)
def test_a_knob_turned_off(native, packs, cases, tmp_path, knob):
    options = ("-O1", "-fPIC", "-shared", f"-D{knob}=0")
    path = native.compile_c(tmp_path / "lib.so", *options)
    library = native.load(path)
    for name in KNOBS[knob]:
        pack = cases.draw(packs, name)
        assert native.Native(library, write_pack(pack)).status == "unsupported"
    pack = cases.draw(packs, "odd-widths")
    q = np.random.default_rng(0).integers(-32767, 32768, (20, pack.features)).astype(np.int16)
    found = native.Native(library, write_pack(pack)).predict_raw(q)
    assert found[-1].tolist() == reference.evaluate_raw(pack, q).members.tolist()


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_everything_off_at_once_is_smaller(native, tmp_path, compiler):
    options = ("-Os", "-fPIC", "-shared")
    off = [f"-D{knob}=0" for knob in KNOBS]
    whole = native.compile_c(tmp_path / "whole.so", *options, compiler=compiler)
    least = native.compile_c(tmp_path / "least.so", *options, *off, compiler=compiler)
    sizes = [int(native.run("size", path).split("\n")[1].split()[0]) for path in (whole, least)]
    assert sizes[1] < 0.75 * sizes[0]
    exported = native.run("nm", "-D", "--defined-only", least)
    assert "twin_predict_raw" in exported
    for gone in (
        "twin_predict\n",
        "twin_text",
        "twini_seek",
        "twin_set_neighbours",
        "twin_open_step",
    ):
        assert gone not in exported
