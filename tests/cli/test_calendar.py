"""Tables with times to learn from, on the command line and in Python."""

import json
import warnings

import numpy as np
import pytest

import twinedge
from twinedge.encoding.calendars import Calendar, waves
from twinedge.run_folder import load_run

TINY = {
    "hidden": 8,
    "steps": 200,
    "activation": "relu",
    "learning_rate": 0.01,
    "weight_decay": 0.03,
    "random_state": 0,
}
ROWS = 240
START = 1_704_067_200  # 2024-01-01


def times(count=ROWS):
    return START + 3600 * 5 * np.arange(count)


def written(seconds, form):
    """Write a time: as ISO 8601, day first or month first, or as a number."""
    one = np.datetime64(int(seconds), "s").item()
    patterns = {"iso": "%Y-%m-%dT%H:%M", "day": "%d/%m/%Y %H:%M", "month": "%m/%d/%Y %H:%M"}
    return one.strftime(patterns[form]) if form in patterns else str(int(seconds))


def table_of(form, count=ROWS):
    rng = np.random.default_rng(0)
    load = rng.uniform(0, 1, count)
    power = 10 * waves(times(count))[:, 0] + 3 * load
    rows = zip(times(count), load, power, strict=True)
    lines = [f"{written(t, form)},{one:.4f},{two:.4f}" for t, one, two in rows]
    return "\n".join(["when,load,power", *lines]) + "\n"


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A run on a table that writes the day first, its export, and the table."""
    folder = tmp_path_factory.mktemp("calendar")
    (folder / "day.csv").write_text(table_of("day"))
    table = folder / "day.csv"
    twinedge.fit_csv(table, target="power", calendar="when", run=folder / "run", **TINY)
    twinedge.export(folder / "run", folder / "out", anchors=8, formats=("twin",), tolerance=10.0)
    return folder


def test_a_run_knows_its_calendar(home):
    run = load_run(home / "run")
    kind = run.encoding.kinds[0]
    assert isinstance(kind, Calendar)
    assert kind.notation.day_first is True
    assert START <= kind.first < kind.last <= START + 3600 * 5 * ROWS
    assert run.encoding.names == ("when", "load")
    kept = json.loads((home / "run" / "run.json").read_text())["columns"]
    assert kept[0]["calendar"]["day_first"] is True


@pytest.mark.parametrize("model", ["run", "out/model.twin"])
def test_every_notation_gives_the_same_predictions(cli, home, model, tmp_path):
    (tmp_path / "day.csv").write_text(table_of("day", 12))  # which alone would not decide
    (tmp_path / "iso.csv").write_text(table_of("iso", 12))
    (tmp_path / "seconds.csv").write_text(table_of("seconds", 12))
    found = [
        cli("predict", home / model, f"{form}.csv", "--json", "--quiet").json
        for form in ("day", "iso", "seconds")
    ]
    assert found[0]["prediction"] == found[1]["prediction"] == found[2]["prediction"]
    assert found[0]["outside"] == [[]] * 12


def test_a_table_of_the_same_form_is_evaluated_calibrated_and_learnt(cli, home):
    table = home / "day.csv"
    by_run = cli("evaluate", home / "run", table, "--json", "--quiet").json
    by_pack = cli("evaluate", home / "out" / "model.twin", table, "--json", "--quiet").json
    assert by_run["rmse"] == pytest.approx(by_pack["rmse"], rel=0.2)
    pack = home / "out" / "model.twin"
    assert cli("calibrate", pack, table, "-o", "new.twin", "--quiet").code == 0
    assert cli("adapt", pack, table, "--store", "site.store", "--quiet").code == 0
    assert cli("predict", pack, table, "--store", "site.store", "--quiet").code == 0


def test_the_time_column_may_be_the_calendar(cli, home):
    pack = home / "out" / "model.twin"
    found = cli("evaluate", pack, home / "day.csv", "--time", "when", "--json", "--quiet").json
    assert found["rows"] == ROWS


def test_inspect_describes_a_calendar(cli, home):
    lines = cli("inspect", home / "out" / "model.twin").out.splitlines()
    (line,) = [one for one in lines if "a calendar" in one]
    assert line.split()[:2] == ["when", "6"]
    assert "trained on 2024-01-01T00:00:00Z to 2024-02-" in line


def test_a_remark_describes_what_became_of_the_times(tmp_path):
    (tmp_path / "t.csv").write_text(table_of("iso"))
    found = []
    table = tmp_path / "t.csv"
    plain = {**TINY, "intervals": False}
    twinedge.fit_csv(table, target="power", calendar="when", say=found.append, **plain)
    (remark,) = [one for one in found if "calendar" in one]
    words = "t.csv: column 'when' is a calendar: hour, weekday and season of its times, in UTC"
    assert remark.endswith(words)
    assert not any("'when'" in one for one in found if one != remark)  # nothing looks wrong with it


def test_hours_of_new_year_are_not_too_fine_for_a_device(tmp_path):
    """The season hardly moves in an hour, least of all its cosine then; that is no mistake."""
    rng = np.random.default_rng(0)
    cells = [f"{START + 60 * k},{load:.4f},{load + k % 7}" for k, load in enumerate(rng.random(60))]
    (tmp_path / "t.csv").write_text("\n".join(["when,load,power", *cells]))
    remarks = []
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*32-bit")
        table = tmp_path / "t.csv"
        plain = {**TINY, "intervals": False}
        twinedge.fit_csv(table, target="power", calendar="when", say=remarks.append, **plain)
    assert not any("32-bit" in one for one in remarks)


def test_a_data_frame_has_times_of_its_own_kind(home, tmp_path):
    import pandas

    frame = pandas.read_csv(home / "day.csv")
    frame["when"] = pandas.to_datetime(frame["when"], dayfirst=True)
    run = twinedge.fit_csv(frame, target="power", calendar="when", intervals=False, **TINY)
    assert isinstance(run.encoding.kinds[0], Calendar)
    same = load_run(home / "run").model.predict(frame[["when", "load"]])
    assert run.model.predict(frame[["when", "load"]]) == pytest.approx(same, rel=1e-5)
    device = twinedge.load(home / "out" / "model.twin")
    texts = pandas.read_csv(home / "day.csv")
    assert device.predict(frame).tolist() == device.predict(texts).tolist()
    assert not device.outside(frame.iloc[:3])[:, :6].any()


def test_a_regressor_takes_a_calendar_by_its_encoding(home):
    import pandas

    from twinedge.encoding.encoder import Encoding

    frame = pandas.read_csv(home / "day.csv", usecols=["when", "load"])
    frame["when"] = pandas.to_datetime(frame["when"], dayfirst=True)
    power = pandas.read_csv(home / "day.csv")["power"]
    encoding = Encoding([("when", Calendar()), ("load", None)])
    model = twinedge.TwinRegressor(**TINY, intervals=False).fit(frame, power, encoding=encoding)
    assert model.predict(frame[["load", "when"]]).shape == (ROWS,)
    assert not model.outside(frame.assign(when=pandas.Timestamp("2030-07-01"))).any()


BAD = {
    "no such column": (["--calendar", "wen"], ["no column 'wen' to take times from"]),
    "the target": (
        ["--calendar", "power"],
        ["column 'power' is the target and cannot be a calendar"],
    ),
    "left out": (
        ["--calendar", "when", "--drop", "when"],
        ["column 'when' is left out and cannot be a calendar"],
    ),
    "a category": (
        ["--calendar", "when", "--categorical", "when"],
        ["column 'when' is a category and cannot be a calendar"],
    ),
    "numbers that are no times": (
        ["--calendar", "when,load"],
        ["column 'load' holds numbers such as 0.", "which are no times", "seconds since 1970"],
    ),
}


@pytest.mark.parametrize(("options", "says"), BAD.values(), ids=BAD)
def test_a_column_that_cannot_be_a_calendar_is_refused(refused, tmp_path, options, says):
    (tmp_path / "t.csv").write_text(table_of("iso"))
    refused("train", "t.csv", "--target", "power", *options, says=says)


def test_other_commands_refuse_it_too(refused, tmp_path):
    (tmp_path / "t.csv").write_text(table_of("iso"))
    options, says = BAD["the target"]
    for command in ("check", "budget fit --board uno"):
        refused(*command.split(), "t.csv", "--target", "power", *options, says=says)


def test_a_word_or_a_hole_among_times_is_refused_by_its_row(refused, tmp_path, home):
    lines = table_of("iso").splitlines()
    hole = [*lines[:7], "," + lines[7].partition(",")[2], *lines[8:]]
    (tmp_path / "hole.csv").write_text("\n".join(hole))
    words = ["row 8, column 'when': missing value; fill it in or remove the row"]
    options = ["--target", "power", "--calendar", "when", "--impute", "median"]
    refused("train", "hole.csv", *options, says=words)
    lines[7] = "soon" + lines[7][lines[7].index(",") :]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    words = ["row 8, column 'when': 'soon' cannot be read as a time"]
    refused("train", "t.csv", "--target", "power", "--calendar", "when", says=words)
    refused("predict", home / "out" / "model.twin", "t.csv", says=words)
