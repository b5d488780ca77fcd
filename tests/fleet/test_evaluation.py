"""A fleet from files: each device is named as what it is, and nothing stops the rest."""

import os
import re
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from twinedge.fleet import evaluation
from twinedge.fleet.evaluation import evaluate_fleet
from twinedge.fleet.stores import Task, evaluate_batch, find_stores, with_contents
from twinedge.pack import TargetCurve, read_pack, write_pack
from twinedge.runtime.loading import load
from twinedge.runtime.reference import quantise, targets_of

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")


@pytest.fixture(scope="module")
def stores(write_store, tmp_path_factory):
    """Eight healthy devices, and one of each fault."""
    folder, rng = tmp_path_factory.mktemp("stores"), np.random.default_rng(0)

    def noise():
        return 0.5 * rng.normal(size=20)

    for number in range(8):
        write_store(folder / f"well-{number}.store", 0.3 * rng.normal() + noise())
    write_store(folder / "off.store", 5 + noise())
    write_store(folder / "drift.store", np.linspace(-1.6, 1.6, 20) + noise() / 2)
    write_store(folder / "glitch.store", np.where(np.arange(20) == 7, 300.0, noise()))
    data = bytearray(write_store(folder / "damaged.store", noise()).read_bytes())
    data[5 * 36 + 20] ^= 1  # in the third point
    (folder / "damaged.store").write_bytes(data)
    (folder / "empty.store").write_bytes(b"\xff" * 8192)
    (folder / "other.store").write_bytes(_other(folder / "off.store"))
    (folder / "readme.txt").write_text("not a store")
    return folder


def _other(path):
    """The same store, of another schema."""
    from twinedge.runtime.journal import read_journal

    data = path.read_bytes()
    head = read_journal(data).head
    copy = head._replace(owner=head.owner ^ 1).to_bytes()
    return 2 * copy + data[2 * len(copy) :]


@pytest.fixture(scope="module")
def found(stores, fleet_pack):
    return evaluate_fleet([stores], fleet_pack)


def test_each_device_is_named_as_what_it_is(found):
    findings = {one["device"]: one["findings"] for one in found.devices if one["findings"]}
    assert "off" in findings.pop("off")
    assert findings == {"drift": ["drifting"], "glitch": ["glitch"], "damaged": ["damaged"]}
    assert found.devices[0]["device"] == "off"
    assert {one["device"] for one in found.devices[:2]} == {"off", "drift"}
    totals = found.totals
    assert (totals["devices"], totals["need_a_look"], totals["unused_files"]) == (12, 4, 3)
    assert totals["points"] == 12 * 20 - 1


def test_rankings_begin_with_the_right_device(found):
    assert [found.ranked(by)[0]["device"] for by in ("worst", "off")] == ["off", "off"]
    assert found.ranked("drift")[0]["device"] == "drift"
    shares = [one["inside_adapted"] for one in found.ranked("interval")]
    assert shares == sorted(shares)


def test_files_of_no_use_have_one_line_each(found, stores):
    why = {one["file"].removeprefix(f"{stores}{os.sep}"): one["why"] for one in found.unused}
    assert why["empty.store"] == "is empty"
    assert why["other.store"].startswith("holds points of another")
    assert why["readme.txt"] == "is not a store of twinedge"
    assert len(why) == 3


def test_numbers_are_those_of_the_device(found, stores, fleet_pack):
    one = next(one for one in found.devices if one["device"] == "well-3")
    device = load(fleet_pack, store=stores / "well-3.store")
    points = device.points
    errors = points.y - load(fleet_pack).predict(points.X)
    assert one["rmse_shipped"] == pytest.approx(np.sqrt(np.mean(errors**2)), rel=1e-4)
    left_out = []
    for number in range(len(points)):
        other = load(fleet_pack)
        rest = np.arange(len(points)) != number
        other.learn(points.X[rest], points.y[rest])
        left_out.append(points.y[number] - other.predict(points.X[[number]])[0])
    assert one["rmse_adapted"] == pytest.approx(np.sqrt(np.mean(np.square(left_out))), rel=1e-4)


def test_a_dump_of_a_microcontroller_is_read_alike(stores, fleet_pack, tmp_path):
    from twinedge.runtime.journal import read_journal, slots_of

    content = read_journal((stores / "off.store").read_bytes())
    head = content.head
    data = 2 * head.to_bytes() + b"\0" * head.slot
    data = (data + slots_of(head, content.numbers, content.records)).ljust(2048, b"\0")
    (tmp_path / "off.bin").write_bytes(data + b"\0" * 2048)  # it erases to 0
    (found,) = evaluate_fleet([tmp_path / "off.bin"], fleet_pack).devices
    (same,) = evaluate_fleet([stores / "off.store"], fleet_pack).devices
    assert {**found, "file": 0} == {**same, "file": 0}


def test_processes_and_batches_change_nothing(stores, fleet_pack, found, monkeypatch):
    monkeypatch.setattr(evaluation, "_BATCH", 4)
    assert evaluate_fleet([stores], fleet_pack, jobs=2).record() == found.record()


def test_names_are_distinct_and_files_count_once(stores, fleet_pack, tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "pump.store").write_bytes((stores / "off.store").read_bytes())
    paths, missing = find_stores([tmp_path, tmp_path / "*" / "*.store", "no/such"], fleet_pack)
    assert len(paths) == 2
    assert missing == [Path("no/such")]
    names = [one["device"] for one in evaluate_fleet([tmp_path], fleet_pack).devices]
    assert sorted(names) == [str(tmp_path / folder / "pump.store") for folder in ("a", "b")]


def test_hostile_bytes_stop_nothing(stores, fleet_pack, tmp_path):
    whole, rng = (stores / "off.store").read_bytes(), np.random.default_rng(0)
    for number in range(40):
        data = bytearray(whole[: rng.integers(1, len(whole))] if number % 2 else whole)
        for at in rng.integers(0, min(len(data), 1000), 20):
            data[at] = rng.integers(256)
        (tmp_path / f"{number}.bin").write_bytes(data)
    (tmp_path / "well.store").write_bytes((stores / "well-0.store").read_bytes())
    found = evaluate_fleet([tmp_path], fleet_pack)
    assert len(found.devices) + len(found.unused) == 41
    assert "well" in [one["device"] for one in found.devices]


def test_nothing_to_read_is_one_line(stores, fleet_pack, complaint, tmp_path):
    assert "does not exist" in complaint(evaluate_fleet, ["no/such"], fleet_pack)
    assert "there are no files" in complaint(evaluate_fleet, [tmp_path], fleet_pack)
    assert "is empty" in complaint(evaluate_fleet, [stores / "empty.store"], fleet_pack)
    both = [stores / "empty.store", stores / "readme.txt"]
    assert "none of 2 files has points" in complaint(evaluate_fleet, both, fleet_pack)
    # Targets beyond the range of a pack.
    narrow = replace(read_pack(fleet_pack.read_bytes()), y_gain=np.float32(1e-12))
    (tmp_path / "narrow.twin").write_bytes(write_pack(narrow))
    message = complaint(evaluate_fleet, [stores / "off.store"], tmp_path / "narrow.twin")
    assert "off.store has no points that the pack can use" in message


@contextmanager
def process(*command, **options):
    started = subprocess.Popen([sys.executable, "-m", *command], **options)
    try:
        yield started
    finally:
        started.kill()
        started.communicate()


def test_a_cluster_says_the_same(stores, fleet_pack, found, tmp_path, monkeypatch):
    monkeypatch.setattr(evaluation, "_BATCH", 4)
    command = ("distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0")
    quiet = {"stdout": subprocess.DEVNULL, "text": True}
    with process(*command, "--no-dashboard", stderr=subprocess.PIPE, **quiet) as scheduler:
        lines = (re.search(r"tcp://127\.0\.0\.1:\d+", line) for line in scheduler.stderr)
        address = next(one[0] for one in lines if one)
        command = ("distributed.cli.dask_worker", address, "--nthreads", "1", "--no-nanny")
        more = ("--no-dashboard", "--local-directory", str(tmp_path))
        with process(*command, *more, stderr=subprocess.DEVNULL, **quiet):
            assert evaluate_fleet([stores], fleet_pack, cluster=address).record() == found.record()


def test_a_worker_on_another_machine_gets_the_bytes_of_the_files(stores, fleet_pack, tmp_path):
    paths = [stores / "off.store", stores / "readme.txt", tmp_path / "gone.store"]
    task = Task(0, fleet_pack.read_bytes(), [(path, None) for path in paths])
    here, sent = evaluate_batch(task), with_contents(task)
    assert [data is None for _, data in sent.stores] == [False, False, True]
    there = evaluate_batch(sent)
    assert there.devices == here.devices
    assert there.unused == here.unused
    assert [one["why"] for one in there.unused] == ["is not a store of twinedge", "does not exist"]


def test_a_pack_that_cannot_learn_is_refused(stores, complaint):
    bare = Path(__file__).parents[1] / "golden" / "odd-silu.twin"
    assert "has no intervals" in complaint(evaluate_fleet, [stores], bare)


def test_without_findings_the_worst_are_those_that_are_off(found):
    well = [one["off_by_at_least"] for one in found.devices if not one["findings"]]
    assert len(well) == 8
    assert well == sorted(well, reverse=True)


def test_a_target_curve_is_checked_in_scales_and_shown_in_units(fleet_pack, tmp_path):
    pack = read_pack(fleet_pack.read_bytes())
    X = np.random.default_rng(1).uniform([-1, -5, -120], [1, 15, 80], (20, 3)).astype(np.float32)
    mean, _, scale = load(fleet_pack).evaluator.raw(quantise(pack, X)).astype(float)
    reach = int(np.abs(mean).max() + 20 * scale.max() / 16)
    shift = max(reach.bit_length() - 9, 0)  # 1024 bins for twice the reach, or more
    values = np.rint(1e4 * np.exp(np.linspace(0, 8, 1025))).astype(np.int32)
    bowed = replace(pack, target_curve=TargetCurve(-(512 << shift), shift, values))
    path = tmp_path / "bowed.twin"
    path.write_bytes(write_pack(bowed))

    noise = 0.5 * np.random.default_rng(2).normal(size=(2, 20))
    for name, z in (("well", noise[0]), ("off", 5 + noise[1])):
        y = targets_of(bowed, np.rint(mean + z * scale / 16))
        device = load(path, store=tmp_path / f"{name}.store")
        device.learn(X, y)
        device.store.journal.close()
    found = {one["device"]: one for one in evaluate_fleet([tmp_path], path).devices}
    assert found["well"]["findings"] == []
    assert "off" in found["off"]["findings"]
    assert found["off"]["mean_in_scales"] == pytest.approx(np.mean(5 + noise[1]), abs=0.3)
    predicted = targets_of(bowed, mean)
    error = np.sqrt(np.mean(np.square(y - predicted, dtype=np.float64)))
    assert found["off"]["rmse_shipped"] == pytest.approx(error, rel=0.01)
