"""``--time``: train on the past, test on the future, and say so."""

import json

import numpy as np
import pytest

from twinedge.data.source import from_table
from twinedge.run_folder import load_run

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")

START = np.datetime64("2024-01-01T00:00")


@pytest.fixture(scope="module")
def log(curve, tmp_path_factory):
    """The curve with a row every hour, written in no order."""
    X, y = curve
    rows = [
        f"{START + 60 * k},{','.join(map(repr, row))},{target!r}"
        for k, (row, target) in enumerate(zip(X.tolist(), y.tolist(), strict=True))
    ]
    order = np.random.default_rng(0).permutation(len(rows))
    path = tmp_path_factory.mktemp("tables") / "log.csv"
    lines = ["at,angle,offset,idle,level", *(rows[k] for k in order)]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def trained(done, log, loud, tmp_path_factory):
    """A run, the JSON that was printed, and the remarks."""
    folder = tmp_path_factory.mktemp("timed") / "run"
    arguments = ["train", log, "--target", "level", "--time", "at", "-o", folder, "--json"]
    answer = done(*arguments, *loud)
    return folder, answer.json, answer.err


def test_the_past_is_trained_on_and_the_future_tested(trained, curve):
    run = load_run(trained[0])
    X, _ = curve
    count = len(X)
    np.testing.assert_array_equal(run.test[0], X[count - count // 5 :])
    first = count - count // 5 - count // 10
    np.testing.assert_array_equal(run.validation[0], X[first : count - count // 5])
    np.testing.assert_array_equal(run.model.anchor_X_, X[:first])
    assert run.model.groups_.tolist() == sorted(run.model.groups_)
    assert run.feature_names == ("angle", "offset", "idle")


def test_the_run_records_column_and_ranges(trained):
    folder, report, _ = trained
    record = json.loads((folder / "run.json").read_text())
    source = record["source"]
    assert source["time"] == report["time"] == "at"
    assert source["time_notation"] == {"day_first": None, "unit": None}
    ranges = source["time_ranges"]
    assert list(ranges) == ["train", "validation", "test"]
    assert ranges["train"][0] == "2024-01-01T00:00:00Z"
    flat = [end for part in ranges.values() for end in part]
    assert flat == sorted(flat)
    assert report["time_ranges"] == ranges


def test_the_naive_forecast_is_beside_the_other_models(trained, curve):
    _, report, _ = trained
    y = curve[1]
    first = len(y) - len(y) // 5
    expected = np.sqrt(np.mean((y[first - 1 : -1] - y[first:]) ** 2))
    np.testing.assert_allclose(report["rmse_naive"], expected)
    assert report["beats_naive"] == (report["rmse_test"] < expected)


def test_errors_are_given_block_by_block(trained):
    _, report, _ = trained
    blocks = report["by_time"]
    assert len(blocks) == 5
    mean = sum(one["rows"] * one["rmse"] ** 2 for one in blocks) / sum(
        one["rows"] for one in blocks
    )
    np.testing.assert_allclose(np.sqrt(mean), report["rmse_test"])
    assert [blocks[0]["from"], blocks[-1]["until"]] == report["time_ranges"]["test"]


def test_remarks_describe_where_time_divides_the_rows(trained):
    _, report, err = trained
    ends = [part[1] for part in report["time_ranges"].values()]
    assert f"84 to train until {ends[0]}, 12 to validate until {ends[1]}, 24 to test until" in err
    assert "rows in another order: they are sorted by time" in err


def test_people_read_that_scores_are_for_the_future(cli, log, tiny):
    answer = cli("train", log, "--target", "level", "--time", "at", *tiny, "--no-intervals")
    assert answer.code == 0
    assert "rmse naive" in answer.out
    assert "beats naive" in answer.out
    assert "Trained on rows until 2024-01-04T11:00:00Z, tested on later ones until" in answer.out
    (header,) = (line for line in answer.out.splitlines() if line.startswith("from "))
    assert header.split() == ["from", "until", "rows", "rmse", "rmse", "naive"]
    assert "{" not in answer.out


def test_evaluate_shows_errors_along_time(cli, trained, log):
    answer = cli("evaluate", trained[0], log, "--time", "at", "--json", "--quiet")
    assert answer.code == 0
    blocks = answer.json["by_time"]
    assert [one["rows"] for one in blocks] == [24] * 5
    assert blocks[0]["rmse_naive"] > 0
    mean = np.mean([one["rmse"] ** 2 for one in blocks])
    np.testing.assert_allclose(np.sqrt(mean), answer.json["rmse"])
    np.testing.assert_allclose(blocks[-1]["rmse"], trained[1]["rmse_test"])
    text = cli("evaluate", trained[0], log, "--time", "at", "--quiet").out
    assert "rmse naive" in text
    assert blocks[0]["until"] in text


def test_evaluate_knows_how_the_run_wrote_its_times(cli, curve, tiny, tmp_path):
    """A later file, all days of which are below 13, is read with the month first as well."""
    X, y = curve
    days = START.astype("datetime64[D]") + np.arange(len(y))
    written = [f"{str(one)[5:7]}/{str(one)[8:]}/{str(one)[:4]}" for one in days]
    rows = [
        f"{day},{','.join(map(repr, row))},{level!r}"
        for day, row, level in zip(written, X.tolist(), y.tolist(), strict=True)
    ]
    header = "at,angle,offset,idle,level"
    (tmp_path / "all.csv").write_text("\n".join([header, *rows]) + "\n")
    (tmp_path / "few.csv").write_text("\n".join([header, rows[32], rows[33]]) + "\n")
    given = ("--target", "level", "--time", "at", "-o", "run", *tiny, "--no-intervals")
    assert cli("train", "all.csv", *given).code == 0
    answer = cli("evaluate", "run", "few.csv", "--time", "at", "--json", "--quiet")
    assert [one["from"] for one in answer.json["by_time"]] == [
        "2024-02-02T00:00:00Z",
        "2024-02-03T00:00:00Z",
    ]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--time", "at", "--group", "idle"], ["--group idle and --time at", "choose one"]),
        (["--time", "at", "--split", "3"], ["--split 3 and --time at", "leave one of them out"]),
        ([], ["'at' holds dates or times", "use --time at", "use --calendar at", "--drop at"]),
    ],
)
def test_options_that_do_not_go_together_are_refused(refused, log, options, says):
    refused("train", log, "--target", "level", *options, says=says)


def test_evaluate_refuses_columns_that_cannot_hold_the_times(refused, trained, log):
    arguments = "evaluate", trained[0], log, "--time"
    refused(*arguments, "when", says=["no column 'when' for the times"])
    refused(*arguments, "angle", says=["'angle' is a feature and cannot hold times"])
    refused(*arguments, "level", says=["'level' is the target and cannot hold times"])


@pytest.mark.slow
def test_a_board_is_fitted_to_times_and_to_groups(cli, log, tmp_path):
    words = "--board uno --anchors 8 --tries 1 --steps 40 --effort quick --tolerance 10"
    quick = *words.split(), "--quiet", "--json"
    made = cli("budget", "fit", log, "--target", "level", "--time", "at", *quick)
    assert made.code == 0
    record = json.loads((tmp_path / "runs" / "uno" / "run.json").read_text())
    assert record["source"]["time"] == "at"
    assert load_run(tmp_path / "runs" / "uno").model.groups_.max() == 4
    text = log.read_text().splitlines()
    grouped = [f"{line},{k % 6}" for k, line in enumerate(text[1:])]
    (tmp_path / "groups.csv").write_text("\n".join([f"{text[0]},batch", *grouped]) + "\n")
    more = "--drop", "at", "--group", "batch", "--overwrite"
    made = cli("budget", "fit", "groups.csv", "--target", "level", *more, *quick)
    assert made.code == 0
    assert len(np.unique(load_run(tmp_path / "runs" / "uno").model.groups_)) == 4


# The score that is promised, and the error on later rows.


def plant(rows, seed=0):
    """A plant that moves slowly from one state to another, with a valve that nobody recorded.

    Twelve sensors show where it is, so that a model can learn how the valve was set then, which
    helps for rows between those it saw, and for none that come later.
    """
    rng = np.random.default_rng(seed)
    window = np.hanning(60)
    window /= np.sqrt(np.square(window).sum())
    slow = [np.convolve(rng.normal(size=rows + 59), window, "valid") for _ in range(12)]
    fast = rng.normal(size=rows)
    valve = np.repeat(rng.choice([-1.0, 1.0], rows // 20), 20)
    y = np.sin(2 * fast) + 0.5 * slow[0] + valve + rng.normal(0, 0.2, rows)
    return np.column_stack([fast, *slow, y])


def write(path, values, first):
    lines = ["at,fast,a,b,c,d,e,f,g,h,i,j,k,l,flow"]
    for k, row in enumerate(values.tolist(), first):
        lines.append(f"{START + 10 * k},{','.join(f'{one:.5f}' for one in row)}")
    path.write_text("\n".join(lines) + "\n")


@pytest.mark.slow
def test_time_promises_the_error_on_later_rows_and_a_random_split_does_not(cli, tmp_path):
    values = plant(4000)
    write(tmp_path / "past.csv", values[:2000], 0)
    write(tmp_path / "later.csv", values[2000:], 2000)
    setting = "--twins 1 --hidden 32,32 --activation relu --learning-rate 0.01 --weight-decay 0.03"
    ratios = {}
    for name, options in {"time": ["--time", "at"], "random": ["--drop", "at"]}.items():
        arguments = ("train", "past.csv", "--target", "flow", *setting.split(), "--steps", "1500")
        options += ["--no-intervals", "--quiet", "--json", "-o", name]
        trained = cli(*arguments, *options).json
        found = cli("evaluate", name, "later.csv", "--quiet", "--json").json
        ratios[name] = trained["rmse_test"] / found["rmse"]
    assert abs(ratios["time"] - 1) < 0.15
    assert ratios["random"] < 0.85
    remarks = from_table(tmp_path / "past.csv", target="flow", drop=["at"]).remarks
    assert any("errors on later rows may be larger" in one for one in remarks)


def test_a_report_has_a_section_on_time(cli, trained, tmp_path):
    assert cli("report", trained[0], "--quick", "--format", "md", "--quiet").code == 0
    page = (tmp_path / "report.md").read_text()
    assert "How errors change with time" in page
    for block in trained[1]["by_time"]:
        assert block["until"] in page


def test_evaluate_reads_times_for_a_pack_too(cli, trained, log):
    assert cli("export", trained[0], "-o", "out", "--formats", "twin", "--quiet").code == 0
    answer = cli("evaluate", "out/model.twin", log, "--time", "at", "--json", "--quiet")
    assert len(answer.json["by_time"]) == 5
