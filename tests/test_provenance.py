"""A digest of the training rows shows how many rows of a table a model was trained on."""

import json
import subprocess
import sys
from base64 import b64encode

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twinedge import export, fit_csv, load
from twinedge.cli import main
from twinedge.errors import InputError
from twinedge.provenance import DIGEST, MOST, TrainingRows, hash_rows
from twinedge.run_folder import load_run

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")


def rows(count, seed=0, features=3):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(count, features)), rng.normal(size=count)


def evaluated(capsys, *arguments):
    with pytest.raises(SystemExit) as stop:
        main(["evaluate", *map(str, arguments)])
    assert stop.value.code == 0
    return capsys.readouterr()


@settings(deadline=None)
@given(trained=st.integers(1, MOST), others=st.integers(0, 200), seed=st.integers(0, 99))
def test_the_count_is_exact_for_few_training_rows(trained, others, seed):
    X, y = rows(trained + others, seed)
    digest = TrainingRows.of(X[:trained], y[:trained])
    order = np.random.default_rng(seed).permutation(len(y))
    assert digest.is_complete
    assert digest.known(X[order], y[order]) == (trained, True)
    assert digest.known(X[trained:], y[trained:]) == (0, True)


@settings(deadline=None)
@given(
    trained=st.integers(MOST + 1, 3000),
    share=st.floats(0, 1),
    others=st.integers(0, 3000),
    seed=st.integers(0, 99),
)
def test_the_estimate_for_many_is_near(trained, share, others, seed):
    X, y = rows(trained + others, seed, 1)
    digest = TrainingRows.of(X[:trained], y[:trained])
    common = round(share * trained)
    table = slice(trained - common, None)
    found = digest.known(X[table], y[table])
    if found is None:  # no row of the table is in the sample
        assert len(y[table]) < trained
        return
    assert not found.exact
    count = len(y[table])
    # Five standard errors of the smaller sample, and a rounding to three digits.
    sample = max(1.0, MOST * min(1.0, count / trained))
    assert abs(found.rows - common) <= 5 * count / np.sqrt(sample) + 10
    assert 0 <= found.rows <= count + 5


def test_a_table_that_holds_all_training_rows_is_known_well():
    X, y = rows(5666)
    digest = TrainingRows.of(X[:4568], y[:4568])
    assert digest.known(X, y) == (4570, False)
    assert digest.known(X, y).describe(5666) == "about 4,570 of 5,666 rows were trained on"
    # Part of what was trained on, and nothing else.
    assert digest.known(X[:2000], y[:2000]) == (2000, False)
    assert digest.known(X[4568:], y[4568:]) == (0, False)


@settings(deadline=None)
@given(st.integers(1, 300), st.integers(0, 99))
def test_neither_order_nor_repetition_matters(count, seed):
    X, y = rows(count, seed)
    order = np.random.default_rng(seed).integers(0, count, 2 * count)
    every = np.concatenate([np.arange(count), order])
    one, other = TrainingRows.of(X, y), TrainingRows.of(X[every], y[every])
    assert one.record() == other.record()
    assert one.count == count


def test_minus_zero_and_other_precision_are_the_same_row():
    X, y = np.array([[0.0, 1 / 3]]), np.array([0.1])
    other = hash_rows(np.array([[-0.0, np.float32(1 / 3)]]), np.array([np.float32(0.1)]))
    np.testing.assert_array_equal(hash_rows(X, y), other)
    assert hash_rows(X + 1e-3, y) != other
    assert hash_rows(np.array([[1e300]]), np.array([1.0])).shape == (1,)


def test_missing_values_are_filled_in_before_rows_are_compared():
    X, y = rows(20)
    fill = np.array([0.5, np.nan, -1.0])
    X[3, 0], X[7, 2] = 0.5, -1.0
    digest = TrainingRows.read(json.loads(json.dumps(TrainingRows.of(X, y, fill).record())))
    X[3, 0] = X[7, 2] = np.nan
    assert digest.known(X, y) == (20, True)


@settings(deadline=None)
@given(st.integers(0, 400), st.integers(0, 9))
def test_a_record_reads_back_and_is_small(count, seed):
    X, y = rows(count, seed)
    digest = TrainingRows.of(X, y)
    text = json.dumps(digest.record())
    assert len(text) < 600
    back = TrainingRows.read(json.loads(text))
    assert back.count == count
    np.testing.assert_array_equal(back.hashes, digest.hashes)


GOOD = b64encode(np.array([1, 5, 9], "<u4").tobytes()).decode()


@pytest.mark.parametrize(
    "record",
    [
        {},
        [],
        7,
        "text",
        {"count": 3},
        {"hashes": GOOD},
        {"count": 4, "hashes": GOOD},
        {"count": 2, "hashes": GOOD},
        {"count": "many", "hashes": GOOD},
        {"count": 3, "hashes": "not base64!"},
        {"count": 3, "hashes": GOOD[:-4]},
        {"count": 2, "hashes": b64encode(np.array([5, 1], "<u4").tobytes()).decode()},
        {"count": 3, "hashes": GOOD, "fill_values": ["x"]},
        {"count": 3, "hashes": GOOD, "fill_values": 3},
    ],
    ids=str,
)
def test_a_damaged_record_is_refused(record):
    with pytest.raises(InputError, match="digest of the training rows is damaged"):
        TrainingRows.read(record)


def test_an_older_record_has_none():
    assert TrainingRows.read(None) is None


def test_numpy_is_all_that_it_loads():
    code = "import sys, twinedge.provenance; print(sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout
    for heavy in ("tensorflow", "sklearn", "pandas", "scipy"):
        assert f"'{heavy}'" not in loaded


# From a table to a run, a pack, and back.


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """300 rows with a category, missing cells and a column that is left out."""
    X, y = rows(300)
    color = np.random.default_rng(1).choice(["red", "green"], 300)
    lines = [
        f"{k},{'' if k % 10 == 3 else repr(float(a))},{b!r},{one},{target!r}"
        for k, ((a, b, _), one, target) in enumerate(
            zip(X.tolist(), color, y.tolist(), strict=True)
        )
    ]
    path = tmp_path_factory.mktemp("provenance") / "table.csv"
    path.write_text("\n".join(["id,a,b,color,y", *lines]) + "\n")
    return path


@pytest.fixture(scope="module")
def trained(table, tmp_path_factory):
    folder = tmp_path_factory.mktemp("provenance") / "run"
    brief = {"hidden": 8, "steps": 40, "activation": "relu", "random_state": 0}
    options = {"drop": ["id"], "impute": "median", "missing": [-9999], "split": 2}
    fit_csv(table, target="y", run=folder, **options, **brief)
    export(folder, folder.with_name("out"), anchors=8, formats=("twin", "c"))
    return folder, folder.with_name("out") / "model.twin"


@pytest.mark.parametrize("kind", ["run", "pack"])
def test_evaluate_counts_the_training_rows(trained, table, capsys, kind):
    folder, pack = trained
    output = evaluated(capsys, folder if kind == "run" else pack, table, "--json")
    found = json.loads(output.out)
    assert found["trained_on_exact"] is (kind == "run")
    assert found["trained_on"] == 210
    about = "" if kind == "run" else "about "
    assert f"{about}210 of 300 rows were trained on" in output.err


def test_evaluate_says_nothing_of_other_rows(trained, table, capsys, tmp_path):
    head, *lines = table.read_text().splitlines()
    changed = [line.rsplit(",", 1)[0] + f",{k}.5" for k, line in enumerate(lines)]
    (tmp_path / "other.csv").write_text("\n".join([head, *changed]))
    for model in trained:
        output = evaluated(capsys, model, tmp_path / "other.csv", "--json")
        assert json.loads(output.out)["trained_on"] == 0
        assert "trained on" not in output.err


def test_the_digest_is_not_in_what_a_board_stores(trained):
    pack = trained[1].parent / "model.twin"
    stored = b"training_rows"
    assert stored in pack.read_bytes()
    for path in (trained[1].parent / "c").rglob("*"):
        assert not path.is_file() or stored not in path.read_bytes()


def test_run_and_pack_record_how_the_table_was_read(trained):
    folder, pack = trained
    source = load_run(folder).source
    expected = {"drop": ["id"], "missing": ["-9999"], "impute": "median"}
    assert source["split"] == 2
    assert source["options"] == expected
    metadata = load(pack).pack.metadata
    assert metadata["trained_on"]["options"] == expected
    record = json.loads((folder / "run.json").read_text())
    assert record[DIGEST] == metadata[DIGEST]
    assert record["twinedge"] in metadata["made_by"]


def test_a_run_knows_the_rows_of_the_file(trained, table):
    run = load_run(trained[0])
    lines = table.read_text().splitlines()
    assert sorted(np.concatenate(list(run.rows.values()))) == list(range(2, 302))
    points = {"train": run.model.anchor_y_, "val": run.validation[1], "test": run.test[1]}
    for part, y in points.items():
        named = [float(lines[number - 1].rsplit(",", 1)[1]) for number in run.rows[part]]
        np.testing.assert_array_equal(named, y)


def test_inspect_says_where_a_pack_comes_from(trained, capsys):
    with pytest.raises(SystemExit):
        main(["inspect", str(trained[1])])
    text = capsys.readouterr().out
    assert "210, with a hash of 96 of them to recognize them" in text
    assert "trained on, dataset" in text
    assert '"drop": ["id"]' in text
