"""The public splits: read as they are published, scored from the pack, compared fairly."""

import json
from functools import partial

import numpy as np
import pytest
from scipy.stats import norm
from scipy.stats import t as student

from twinedge import TwinRegressor
from twinedge.errors import InputError
from twinedge.training import VERSION


@pytest.fixture(scope="module")
def public(benchmark_named):
    return benchmark_named("public")


@pytest.fixture
def folder(tmp_path):
    """A made-up table of 120 rows in the published layout, with two splits."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (120, 3))
    table = np.column_stack([X[:, :2], 3 + X @ [1, 2, 0] + 0.1 * rng.normal(size=120), X[:, 2]])
    place = tmp_path / "uci" / "yacht"
    place.mkdir(parents=True)
    text = "\n".join(" ".join(f"{one:.6f}" for one in row) for row in table)
    (place / "data.txt").write_text(f"{text}\n\n")
    (place / "index_features.txt").write_text("0\n1\n3\n")
    (place / "index_target.txt").write_text("2\n")
    for split in range(2):
        order = np.random.default_rng(split).permutation(120)
        np.savetxt(place / f"index_train_{split}.txt", order[:108], "%.18e")
        np.savetxt(place / f"index_test_{split}.txt", order[108:], "%d")
    return place


def test_rows_are_those_of_the_index_files(public, folder):
    (X, y), (X_test, y_test) = public.read_split(folder, 1)
    table, order = np.loadtxt(folder / "data.txt"), np.random.default_rng(1).permutation(120)
    np.testing.assert_array_equal(X, table[order[:108]][:, [0, 1, 3]])
    np.testing.assert_array_equal(y, table[order[:108], 2])
    np.testing.assert_array_equal(X_test, table[order[108:]][:, [0, 1, 3]])
    np.testing.assert_array_equal(y_test, table[order[108:], 2])


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("data.txt", None, "data.txt cannot be read"),
        ("data.txt", "1 2 3\n4 5\n", "is not a table of numbers"),
        ("data.txt", "1 2 x\n", "is not a table of numbers"),
        ("data.txt", "1 2 nan 4\n" * 9, "not a number"),
        ("data.txt", "1 2 3 4\n", "several rows"),
        ("index_features.txt", "0\n4\n", "names 4, but the table has 4 columns"),
        ("index_features.txt", "0\n-1\n", "names -1"),
        ("index_features.txt", "0\n0\n", "names a number twice"),
        ("index_features.txt", "0.5\n", "not a whole number"),
        ("index_target.txt", "1\n2\n", "names 2 columns instead of one"),
        ("index_train_0.txt", None, "index_train_0.txt cannot be read"),
        ("index_test_0.txt", "120\n", "names 120, but the table has 120 rows"),
        ("index_train_0.txt", "5\n6\n7\n", "is in the training and the test of split 0"),
    ],
)
def test_a_folder_that_is_not_right_is_refused_in_one_line(public, folder, file, text, message):
    if file == "index_train_0.txt" and text:
        (folder / "index_test_0.txt").write_text("7\n8\n")
    (folder / file).unlink() if text is None else (folder / file).write_text(text)
    with pytest.raises(InputError, match=message) as error:
        public.read_split(folder, 0)
    assert "\n" not in str(error.value)


@pytest.fixture
def quick(public, monkeypatch, tiny):
    tiny.pop("random_state")
    monkeypatch.setattr(public, "TwinRegressor", partial(TwinRegressor, **tiny))


def options(folder, tmp_path, *more):
    files = ["--results", str(tmp_path / "public.json"), "--cells", str(tmp_path / "cells")]
    data = ["--data", str(folder.parent), "--tables", "yacht"]
    return [*data, *files, *more]


def test_a_split_is_scored_from_its_pack(public, folder, quick):
    cell = public.compute(public.Job("yacht", 0, folder.parent))
    assert cell["rows"] == 12
    assert 0.05 < cell["rmse"] < 0.5
    assert cell["rmse"] == pytest.approx(cell["rmse_float"], rel=0.1)
    assert 0.5 <= cell["coverage"] <= 1
    assert 0 < cell["width"] < 2
    assert 1000 < cell["bytes"] < 5000
    assert -2 < cell["nll_student"] < 2
    assert -2 < cell["nll_normal"] < 5


def test_the_result_is_a_table_beside_what_others_report(public, folder, tmp_path, capsys, quick):
    (tmp_path / "cells").mkdir()
    cells = [
        {"cell": f"normal/yacht/{k}", "training": VERSION}
        | public.compute(public.Job("yacht", k, folder.parent))
        for k in range(2)
    ]
    lines = "\n".join(map(json.dumps, cells))
    (tmp_path / "cells" / "a.jsonl").write_text(lines)
    public.BENCHMARK.run(options(folder, tmp_path, "--no-compute", "--splits", "2"))
    printed = capsys.readouterr().out
    assert json.loads(printed.splitlines()[-1])["tables"]["yacht"]["splits"] == 2
    assert "| yacht | 2 | 1.02 | 0.67 | 1.58 | 0.57 | 0.50 | 0.48 | **0." in printed
    assert "RMSE: ahead on yacht" in printed
    assert "Lakshminarayanan et al. 2017" in printed
    assert "arXiv 2405.09536" in printed


def test_a_refused_pack_is_counted_and_has_no_figures(public, folder, monkeypatch, quick):
    def refuse(*given, **more):
        raise InputError("the error of the pack is too large")

    monkeypatch.setattr(public, "export", refuse)
    cell = public.compute(public.Job("yacht", 0, folder.parent))
    assert cell["refused"] == "the error of the pack is too large"
    found = public.summarise({"normal/yacht/0": cell})["tables"]["yacht"]
    assert (found["splits"], found["refused"]) == (1, 1)
    assert "rmse" not in found
    text = public.text({"tables": {"yacht": found}})
    assert "yacht: 1 of 1 exports were refused" in text


def test_a_wrong_option_is_refused_in_one_line(public, folder, tmp_path, capsys):
    for words, message in (
        (["--tables", "moon"], "no such table: moon"),
        (options(folder, tmp_path)[2:], "--data FOLDER must name"),
    ):
        with pytest.raises(SystemExit) as stop:
            public.BENCHMARK.run(["--splits", "1", *words])
        assert stop.value.code == 2
        assert message in capsys.readouterr().err.splitlines()[-1]


class Device:
    """Predicts a mean, a scale and intervals, as a pack with or without a curve does."""

    def __init__(self, mean, scale, curve=None):
        quantiles = {900: round(65_536 * 2.0), 500: round(65_536 * 0.8)}
        metadata = {} if curve is None else {"target_curve": {"kind": curve}}
        intervals = type("", (), {"quantiles": quantiles})
        self.pack = type("", (), {"intervals": intervals, "metadata": metadata})
        self.mean, self.scale, self.curve = mean, scale, curve

    def predict(self, X, return_std=False):
        on = np.exp if self.curve else np.asarray
        return on(self.mean), self.scale

    def predict_interval(self, X, coverage):
        ends = self.mean[:, None] + np.outer(2 * self.scale, [-1, 1])
        return np.exp(ends) if self.curve else ends


def test_likelihoods_are_those_of_the_two_distributions(public):
    rng = np.random.default_rng(0)
    mean, scale, y = rng.normal(size=50), rng.uniform(0.5, 2, 50), rng.normal(size=50)
    found = public.score(Device(mean, scale), None, y)
    assert found["nll_normal"] == pytest.approx(-np.mean(norm.logpdf(y, mean, scale)))
    fitted = found["student"]
    wide = student.logpdf(y, fitted["degrees"], mean, fitted["width"] * scale)
    assert found["nll_student"] == pytest.approx(-np.mean(wide))
    assert found["coverage"] == np.mean(np.abs(y - mean) <= 2 * scale)
    # A target on a logarithm: the density of the target itself, which integrates to one.
    curved = public.score(Device(mean, scale, "log"), None, np.exp(y))
    assert curved["nll_normal"] == pytest.approx(found["nll_normal"] + y.mean())
    assert curved["nll_student"] == pytest.approx(found["nll_student"] + y.mean())


@pytest.mark.parametrize(("degrees", "width"), [(2.0, 0.3), (4.0, 1.0), (30.0, 5.0)])
def test_a_student_distribution_is_found_from_its_quantiles(public, degrees, width):
    shares = (0.5, 0.8, 0.9, 0.95, 0.99)
    exact = {one: width * float(student.ppf((1 + one) / 2, degrees)) for one in shares}
    assert public.fit_student(exact) == pytest.approx((degrees, width), rel=0.02)


def test_normal_quantiles_have_no_heavy_tails(public):
    degrees, width = public.fit_student({one: norm.ppf((1 + one) / 2) for one in (0.5, 0.9, 0.99)})
    assert degrees > 100
    assert width == pytest.approx(1, rel=0.01)


def test_a_verdict_allows_for_errors_and_digits(benchmark_named):
    literature = benchmark_named("literature")
    verdict = partial(literature.compare, "energy", "rmse")  # the best is printed as 0.42
    assert [verdict(one, 0.0) for one in (0.41, 0.418, 0.424, 0.43)] == [
        *("ahead", "level", "level", "behind")
    ]
    assert [verdict(one, 0.02) for one in (0.39, 0.41, 0.46)] == ["ahead", "level", "behind"]
    assert literature.best("energy", "rmse") == (0.42, "WGBoost")
    assert literature.best("naval-propulsion-plant", "nll") == (-5.63, "deep ensembles")
