import gzip
import hashlib
import io
import json
import sys
import zipfile
from types import SimpleNamespace
from urllib.error import URLError

import numpy as np
import pandas as pd
import pytest

from twinedge.data import fetch as fetching
from twinedge.data.catalogue import CATALOGUE
from twinedge.data.fetch import fetch, parse_bc, parse_openml

OPENML = ("bh", "cs", "wn", "yh")
RAD_LABELS = ["1", "2", "3", "5", "4", "8", "6", "7", "24"]  # out of order: a code is not its value


def bunch(name, values):
    """What scikit-learn makes of an OpenML set: categories as codes, labels beside them."""
    entry = CATALOGUE[name]
    data = values.copy()
    categories = {}
    if name == "bh":
        categories = {"CHAS": ["0", "1"], "RAD": RAD_LABELS}
        for column, labels in ((3, ["0", "1"]), (8, RAD_LABELS)):
            codes = {float(label): code for code, label in enumerate(labels)}
            data[:, column] = [codes[value] for value in values[:, column]]
    names = [*entry.feature_names, entry.target_name]
    return SimpleNamespace(data=data, feature_names=names, categories=categories)


def zipped(members):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return stream.getvalue()


def bc_zip(values, delimiter=","):
    """UCI 510: 14 columns, the first three text, one of them with brackets and signs."""
    entry = CATALOGUE["bc"]
    lines = [["CAS", "SMILES", "Set", *entry.feature_names, "Class", "logBCF"]]
    for k, row in enumerate(values.tolist()):
        x = [f"{value:g}" for value in row[:-1]]
        lines.append([f"{k}-02-7", "O=[N+](c1ccc(cc1)O)[O-]", "Train", *x, "1", f"{row[-1]:g}"])
    text = "\r\n".join(delimiter.join(line) for line in lines) + "\r\n"
    return zipped({entry.member: text})


def workbook(values, header=(*(f"X{k}" for k in range(1, 9)), "Y1", "Y2")):
    """UCI 242: X1..X8, Y1, Y2 in a workbook, then empty cells and empty rows."""
    stream = io.BytesIO()
    frame = pd.DataFrame(values, columns=header).assign(**{"": None})
    pd.concat([frame, frame[:3] * np.nan]).to_excel(stream, index=False)
    return zipped({"ENB2012_data.xlsx": stream.getvalue()})


@pytest.fixture
def ee_both(true_folder, true_values):
    """The eight features, heating load, cooling load."""
    heating = np.loadtxt(true_folder / "ee_heating.csv", delimiter=",", skiprows=1)
    return np.column_stack([heating, true_values("ee")[:, -1]])


@pytest.mark.parametrize("name", OPENML)
def test_an_openml_set_becomes_our_table(name, true_values, monkeypatch, nowhere):
    monkeypatch.setattr(fetching, "download_openml", lambda _: bunch(name, true_values(name)))
    values, address = fetch(CATALOGUE[name])
    np.testing.assert_array_equal(values, true_values(name))
    assert address == f"https://www.openml.org/d/{CATALOGUE[name].openml_id}"


def test_openml_columns_in_another_order_and_spelling_are_put_right(true_values):
    raw = bunch("wn", true_values("wn"))
    order = np.random.RandomState(0).permutation(12)
    raw.data = raw.data[:, order]
    raw.feature_names = [raw.feature_names[k].replace("_", ".").title() for k in order]
    np.testing.assert_array_equal(parse_openml(raw, CATALOGUE["wn"]), true_values("wn"))


def test_openml_columns_with_other_names_go_by_position(true_values):
    raw = bunch("yh", true_values("yh"))
    raw.feature_names = [f"V{k}" for k in range(1, 8)]
    np.testing.assert_array_equal(parse_openml(raw, CATALOGUE["yh"]), true_values("yh"))


def test_openml_columns_with_other_names_in_another_order_are_refused(
    true_values, monkeypatch, nowhere, complaint
):
    raw = bunch("yh", true_values("yh"))
    raw.feature_names = [f"V{k}" for k in range(1, 8)]
    raw.data = raw.data[:, ::-1]
    monkeypatch.setattr(fetching, "download_openml", lambda _: raw)
    assert "mean" in complaint(fetch, CATALOGUE["yh"])


@pytest.mark.parametrize("delimiter", [",", "\t", ";"])
def test_bc_is_taken_out_of_ucis_zip(delimiter, true_values):
    values = parse_bc(bc_zip(true_values("bc"), delimiter), CATALOGUE["bc"])
    np.testing.assert_array_equal(values, true_values("bc"))


@pytest.mark.parametrize("name", ["bc", "ee"])
def test_a_uci_set_is_fetched_from_its_address(name, ee_both, true_values, monkeypatch, nowhere):
    sent = {
        "bc": bc_zip(true_values("bc")),
        "ee": workbook(ee_both),
    }
    requested = []
    monkeypatch.setattr(
        fetching, "download_bytes", lambda address: requested.append(address) or sent[name]
    )
    values, address = fetch(CATALOGUE[name])
    np.testing.assert_array_equal(values, true_values(name))
    assert requested == [address] == [CATALOGUE[name].address]


SHORT = ",".join([*CATALOGUE["bc"].feature_names, "logBCF"]) + "\n1,2\n"
BROKEN = {
    "not a zip": ("bc", b"<html>moved</html>", "not a zip file"),
    "no file in the zip": ("bc", zipped({"other.csv": "a,b\n"}), "no Grisoni"),
    "empty file": ("bc", zipped({CATALOGUE["bc"].member: ""}), "empty"),
    "other columns": ("bc", zipped({CATALOGUE["bc"].member: "a,b\n1,2\n"}), "no column 'nHM'"),
    "short row": ("bc", zipped({CATALOGUE["bc"].member: SHORT}), "rows of different lengths"),
    "open quote": ("bc", zipped({CATALOGUE["bc"].member: 'a,b\n"1,2\n'}), "not Bio Concentration"),
    "cut off": ("bc", bc_zip(np.ones((50, 10)))[:-40], "not a zip file"),
    "too few rows": ("bc", bc_zip(np.ones((5, 10))), "has 5 rows"),
    "zip bomb": ("bc", zipped({CATALOGUE["bc"].member: b"0" * (2**25 + 1)}), "unpacks to"),
    "no workbook": ("ee", zipped({"ENB2012_data.xlsx": b"PK"}), "cannot be read as xlsx"),
    "empty sheet": ("ee", workbook(np.ones((0, 0)), ()), "empty"),
    "no cooling load": ("ee", workbook(np.ones((3, 2)), ["X1", "Y1"]), "no column 'X2'"),
    "a hole": ("ee", workbook(np.where(np.eye(3, 10), np.nan, 1)), "not Energy Efficiency"),
}


@pytest.mark.parametrize(("name", "sent", "reason"), BROKEN.values(), ids=BROKEN)
def test_a_broken_download_is_refused_in_one_line(
    name, sent, reason, monkeypatch, nowhere, complaint
):
    monkeypatch.setattr(fetching, "download_bytes", lambda _: sent)
    message = complaint(fetch, CATALOGUE[name])
    assert message.startswith(CATALOGUE[name].address)
    assert reason in message


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        ({"feature_names": ["a"]}, "1 names for"),
        ({"categories": {"CHAS": ["0"]}}, "codes without a label"),
        ({"categories": {"CHAS": ["no", "yes"]}}, "could not convert"),
        ({"categories": {"RIVER": ["0"]}}, "'RIVER' is not in list"),
        ({"data": np.ones((506, 14))}, "mean"),
    ],
)
def test_a_broken_openml_set_is_refused(
    damage, reason, true_values, monkeypatch, nowhere, complaint
):
    raw = bunch("bh", true_values("bh"))
    vars(raw).update(damage)
    if "data" in damage:
        raw.categories = {}
    monkeypatch.setattr(fetching, "download_openml", lambda _: raw)
    assert reason in complaint(fetch, CATALOGUE["bh"])


@pytest.mark.parametrize(
    "error",
    [URLError("Name or service\nnot known"), TimeoutError(), ConnectionResetError(), KeyError("x")],
    ids=repr,
)
@pytest.mark.parametrize("name", ["bh", "ee"])
def test_without_a_network_the_message_names_the_file_to_write(
    name, error, monkeypatch, nowhere, complaint
):
    def fail(_):
        raise error

    monkeypatch.setattr(fetching, "download_openml", fail)
    monkeypatch.setattr(fetching, "download_bytes", fail)
    message = complaint(fetch, CATALOGUE[name])
    assert "cannot be reached" in message
    assert f"{name}.csv" in message
    assert CATALOGUE[name].header in message
    assert str(nowhere) in message
    assert "TWINEDGE_DATA" in message


def test_without_scikit_learn_the_message_names_the_extra(monkeypatch, nowhere, complaint):
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    message = complaint(fetch, CATALOGUE["bh"])
    assert "pip install 'twinedge[train]'" in message
    assert "bh.csv" in message


@pytest.mark.parametrize("name", ["tf", "rcl", "wsb"])
def test_a_generated_set_is_not_fetched(name, complaint):
    assert "generated" in complaint(fetch, CATALOGUE[name])


def test_without_a_reader_of_workbooks_the_message_names_the_extra(
    ee_both, monkeypatch, nowhere, complaint
):
    data = workbook(ee_both)
    monkeypatch.setattr(fetching, "download_bytes", lambda _: data)
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    assert "pip install 'twinedge[tables]'" in complaint(fetch, CATALOGUE["ee"])


def test_bytes_are_downloaded_with_a_limit(monkeypatch):
    answers = iter([b"small", b"0" * (2**25 + 1)])
    monkeypatch.setattr("urllib.request.urlopen", lambda *_, **__: io.BytesIO(next(answers)))
    assert fetching.download_bytes("https://example.org/a.zip") == b"small"
    with pytest.raises(OSError, match="more than"):
        fetching.download_bytes("https://example.org/a.zip")


def test_scikit_learn_hands_over_what_openml_serves(true_folder, true_values, monkeypatch, nowhere):
    """From answers in OpenML's format, through scikit-learn, to our table."""
    entry = CATALOGUE["bh"]
    names = [*entry.feature_names, entry.target_name]
    kinds = {"CHAS": "{'0','1'}", "RAD": "{" + ",".join(f"'{r}'" for r in RAD_LABELS) + "}"}
    rows = (true_folder / "bh.csv").read_text().split("\n", 1)[1]
    head = "".join(f"@ATTRIBUTE {name} {kinds.get(name, 'REAL')}\n" for name in names)
    arff = f"@RELATION boston\n{head}@DATA\n{rows}".encode()
    features = [
        {
            "index": str(k),
            "name": name,
            "data_type": "nominal" if name in kinds else "numeric",
            "is_target": str(name == "MEDV").lower(),
            "is_ignore": "false",
            "is_row_identifier": "false",
        }
        for k, name in enumerate(names)
    ]
    description = {
        "id": "531",
        "name": "boston",
        "version": "1",
        "description": "",
        "format": "ARFF",
        "file_id": "52643",
        "status": "active",
        "default_target_attribute": "MEDV",
        "md5_checksum": hashlib.md5(arff).hexdigest(),
        "url": "https://api.openml.org/data/v1/download/52643/boston.arff",
    }
    qualities = [{"name": "NumberOfInstances", "value": "506.0"}]
    served = {
        "/data/features/531": {"data_features": {"feature": features}},
        "/data/qualities/531": {"data_qualities": {"quality": qualities}},
        "/json/data/531": {"data_set_description": description},
    }

    def urlopen(request, *_, **__):
        for end, content in served.items():
            if request.full_url.endswith(end):
                answer = io.BytesIO(json.dumps(content).encode())
                answer.info = dict
                return answer
        answer = io.BytesIO(gzip.compress(arff))
        answer.info = lambda: {"Content-Encoding": "gzip"}
        return answer

    monkeypatch.setattr("sklearn.datasets._openml.urlopen", urlopen)
    values, _ = fetch(entry)
    np.testing.assert_array_equal(values, true_values("bh"))
