"""``twinedge predict -o``: predictions in a file, whole or not at all."""

import json

import pytest

from twinedge import atomic_files


@pytest.mark.parametrize(("name", "form"), [("-o", ()), ("--output", ("--json",))])
def test_a_file_holds_what_would_be_printed(cli, pack, tiny_run, curve_csv, tmp_path, name, form):
    for model in (pack, tiny_run):
        printed = cli("predict", model, curve_csv, *form)
        answer = cli("predict", model, curve_csv, *form, name, "predicted")
        assert (answer.code, answer.out) == (0, "")
        assert answer.err == printed.err + "120 predictions in predicted\n"
        assert (tmp_path / "predicted").read_text(encoding="utf-8") == printed.out
    assert cli("predict", tiny_run, curve_csv, name, "predicted", "--quiet").err == ""


def test_an_earlier_file_is_replaced(cli, pack, curve_csv, tmp_path):
    (tmp_path / "predicted.json").write_text("old")
    assert cli("predict", pack, curve_csv, "--json", "-o", "predicted.json").code == 0
    assert json.loads((tmp_path / "predicted.json").read_text())["rows"] == 120


def test_a_write_that_fails_leaves_the_earlier_file(
    refused, pack, curve_csv, tmp_path, monkeypatch
):
    (tmp_path / "predicted.csv").write_text("old")

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(atomic_files.os, "fsync", full)
    says = ["cannot write predicted.csv: No space left on device"]
    refused("predict", pack, curve_csv, "-o", "predicted.csv", says=says)


def test_places_that_cannot_be_written_are_refused(refused, pack, curve_csv, tmp_path):
    (tmp_path / "new.csv").write_text(curve_csv.read_text())
    predict = ("predict", pack, "new.csv", "-o")
    refused(*predict, "none/predicted.csv", says=["none/predicted.csv", "there is no folder none"])
    refused(*predict, ".", says=[". is a folder: name a file"])
    refused(*predict, "./new.csv", says=["--output new.csv would replace what is read"])
    refused(*predict, pack, says=["would replace what is read"])
    refused("predict", ".", "new.csv", "-o", pack, says=["would replace what is read"])
    refused(
        "predict", pack, "-", "-o", "predicted.csv", says=["lines are answered on standard output"]
    )
