"""``twinedge calibrate``: recalibrates the intervals of a pack on fresh rows."""

from dataclasses import replace

import numpy as np
import pytest

from twinedge import export
from twinedge.pack import TargetCurve, read_pack, write_pack


@pytest.fixture
def fresh(curve, write_points, tmp_path):
    """40 rows whose targets are five times as far off as in training."""
    X, y = curve
    rng = np.random.default_rng(0)
    return write_points(tmp_path / "fresh.csv", X[80:], y[80:] + 5 * rng.normal(size=40))


def test_intervals_follow_the_rows_and_predictions_stay(cli, pack, fresh):
    before = read_pack(pack.read_bytes())
    found = cli("calibrate", pack, fresh, "--json").json
    after = read_pack(pack.read_bytes())
    assert found["rows"] == after.intervals.rows == 40
    assert found["coverages"] == [0.5, 0.8, 0.9, 0.95]
    assert after.intervals.typical > 2 * before.intervals.typical
    typical = after.intervals.typical * float(after.y_gain) / 16
    assert found["mean_scale"] == pytest.approx(typical, rel=1e-4)
    np.testing.assert_array_equal(after.twins[0].output, before.twins[0].output)
    np.testing.assert_array_equal(after.targets, before.targets)
    assert after.metadata["calibrated_on"] == {"file": "fresh.csv", "rows": 40}
    assert after.metadata["target"] == "level"


def test_the_scale_is_in_units_of_the_target(cli, pack, fresh):
    # The same estimates, and a curve that makes a unit of the target of two of them.
    old = read_pack(pack.read_bytes())
    plain = cli("calibrate", pack, fresh, "--json").json["mean_scale"]
    reach = np.arange(-(2**11), 2**11 + 1) << 14
    curve = TargetCurve(int(reach[0]), 14, (reach // 2).astype(np.int32))
    gain = {"y_gain": 2 * old.y_gain, "target_curve": curve}
    pack.write_bytes(write_pack(replace(old, **gain)))
    found = cli("calibrate", pack, fresh, "--json").json
    assert found["mean_scale"] == pytest.approx(plain, rel=0.01)


def test_another_file_may_be_written(cli, pack, fresh, tmp_path):
    before = pack.read_bytes()
    answer = cli("calibrate", pack, fresh, "-o", tmp_path / "site.twin")
    assert pack.read_bytes() == before
    assert read_pack((tmp_path / "site.twin").read_bytes()).intervals.rows == 40
    assert "40 rows cannot support 0.99: left out." in answer.out


def test_a_c_project_beside_the_pack_is_reported_as_older(cli, pack, fresh, tmp_path):
    (tmp_path / "c").mkdir()
    answer = cli("calibrate", pack, fresh, "--json")
    assert answer.err == f"{tmp_path / 'c'} still holds the old intervals: export again for C\n"
    assert cli("calibrate", pack, fresh, "-o", "site.twin", "--json").err == ""
    assert cli("keys", "new", "product").code == 0
    answer = cli("sign", pack, "--key", "product.key")
    assert answer.err == f"{tmp_path / 'c'} still holds the pack without a signature\n"


@pytest.mark.parametrize(
    ("rows", "header", "says"),
    [
        (9, "angle,offset,idle,level", "9 rows are too few to calibrate on"),
        (40, "angle,offset,idl,level", "missing 'idle'"),
        (40, "angle,offset,idle,height", "no column 'level'"),
    ],
    ids=["too few", "another feature", "no target"],
)
def test_rows_that_do_not_do_are_refused_and_nothing_is_written(
    refused, pack, curve, write_points, tmp_path, rows, header, says
):
    X, y = curve
    before = pack.read_bytes()
    write_points(tmp_path / "bad.csv", X[:rows], y[:rows], header)
    refused("calibrate", pack, tmp_path / "bad.csv", says=[says])
    assert pack.read_bytes() == before
    assert [one.name for one in pack.parent.iterdir() if one.name.startswith(".")] == []


def test_a_pack_without_second_outputs_is_refused(refused, tiny_run, fresh, tmp_path):
    export(tiny_run, tmp_path / "bare", anchors=8, formats=("twin",), intervals=False)
    refused("calibrate", tmp_path / "bare" / "model.twin", fresh, says=["without intervals"])


def test_only_packs_can_be_calibrated(refused, fresh, tmp_path):
    (tmp_path / "model.onnx").write_bytes(b"x")
    refused("calibrate", tmp_path / "model.onnx", fresh, says=["only a .twin pack"])
