"""``twinedge fleet``: a table, JSON and a page that say the same."""

import html
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")


@pytest.fixture(scope="module")
def stores(write_store, tmp_path_factory):
    """Healthy devices, one that is off, one with a hostile name, and a file of no use."""
    folder, rng = tmp_path_factory.mktemp("fleet"), np.random.default_rng(0)
    for number in range(6):
        times = 1_700_000_000 + 86400 * np.arange(20)
        write_store(folder / f"well-{number}.store", 0.5 * rng.normal(size=20), times=times)
    write_store(folder / "off.store", 5 + 0.5 * rng.normal(size=20))
    hostile = write_store(folder / "x.store", 4.5 + 0.5 * rng.normal(size=20))
    hostile.rename(folder / "<script>alert('1')&\x1b[31m\n.store")
    (folder / "readme.txt").write_text("not a store")
    return folder


class Page(HTMLParser):
    """What a browser sees: rows of each table, and every tag."""

    def __init__(self, text):
        super().__init__()
        self.tables, self.tags, self._cell = [], [], None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
            self._cell = self.tables[-1][-1]

    def handle_endtag(self, tag):
        if tag in ("td", "th"):
            self._cell = None

    def handle_data(self, data):
        if self._cell is not None:
            self._cell[-1] += data


def test_table_json_and_page_agree(cli, stores, fleet_pack):
    words = ("fleet", stores, "--pack", fleet_pack, "--top", "3", "-o", "fleet.html")
    shown = cli(*words)
    assert shown.code == 0
    record = cli(*words, "--json").json
    lines = shown.out.splitlines()
    assert lines[0].startswith("device ")
    page = Page(Path("fleet.html").read_text("utf-8"))
    rows = page.tables[0][1:]
    ranking = record["ranking"]
    assert len(rows) == 3
    assert len(ranking) == record["devices"] == 8
    for line, row, one in zip(lines[1:4], rows, ranking, strict=False):
        assert row[0] == one["device"]
        assert line.startswith(one["device"])
        assert row[2] == f"{one['rmse_shipped']:.4g}"
        assert row[2] in line
        assert row[-1] == (", ".join(one["findings"]) or "-")
        assert line.endswith(row[-1])
    assert "off" in ranking[0]["findings"]
    assert record["need_a_look"] == 2
    assert "8 devices, 160 points; 2 need a look: 2 off" in shown.out
    assert f"{record['retraining']['rmse_adapted']:.4g} to" in shown.out
    assert "readme.txt is not a store of twinedge" in shown.err


def test_the_page_is_alone_and_names_are_escaped(cli, stores, fleet_pack):
    answer = cli("fleet", stores, "--pack", fleet_pack, "-o", "fleet.html")
    assert answer.code == 0
    assert "\x1b" not in answer.out + answer.err
    assert "<script>alert('1')&?[31m?" in answer.out
    text = Path("fleet.html").read_text("utf-8")
    page = Page(text)
    assert "script" not in {tag for tag, _ in page.tags}
    links = [
        value for _, attrs in page.tags for name, value in attrs.items() if name in ("src", "href")
    ]
    assert set(links) == {"data:,", "#content"}
    assert not re.search(r"url\(|@import|https?:", text)
    assert html.escape("<script>alert('1')&?[31m?") in text
    assert "\x1b" not in text
    assert "default-src 'none'" in text


def test_times_are_dates_and_damage_is_counted(cli, stores, fleet_pack):
    answer = cli("fleet", stores / "well-1.store", "--pack", fleet_pack)
    assert "2023-12-03" in answer.out
    assert "Points of 5 devices are needed" in answer.out


def test_patterns_and_what_does_not_exist(cli, stores, fleet_pack):
    answer = cli("fleet", f"{stores}/well-*.store", "no.store", "--pack", fleet_pack, "--json")
    assert answer.code == 0
    assert answer.json["devices"] == 6
    assert answer.json["unused"] == [{"file": "no.store", "why": "does not exist"}]


def test_of_many_files_of_no_use_the_first_are_named(cli, stores, fleet_pack):
    absent = [f"no-{number}.store" for number in range(12)]
    answer = cli("fleet", stores / "off.store", *absent, "--pack", fleet_pack)
    assert answer.code == 0
    lines = answer.err.splitlines()
    assert lines[:10] == [f"{name} does not exist" for name in absent[:10]]
    assert lines[10] == "and 2 more files are of no use"


def test_a_page_names_files_of_no_use_only_if_there_are_some(cli, stores, fleet_pack, tmp_path):
    for more, is_there in (["no.store"], True), ([], False):
        words = (stores / "off.store", *more, "--pack", fleet_pack, "-o", "fleet.html")
        assert cli("fleet", *words).code == 0
        text = (tmp_path / "fleet.html").read_text()
        assert ("Files that were not used" in text) == is_there


def test_what_is_refused(refused, stores, fleet_pack, tmp_path):
    refused("fleet", "no.store", "--pack", fleet_pack, says=["no.store does not exist"])
    refused("fleet", stores, "--pack", "no.twin", says=["no.twin"])
    refused("fleet", stores, says=["--pack"])
    both = ("--cluster", "tcp://127.0.0.1:9", "--jobs", "2")
    refused("fleet", stores, "--pack", fleet_pack, *both, says=["--cluster has its own workers"])
    absent = tmp_path / "no" / "fleet.html"
    refused("fleet", stores, "--pack", fleet_pack, "-o", absent, says=["there is no folder"])


def test_a_plain_install_is_enough(stores, fleet_pack, tmp_path):
    import subprocess
    import sys

    hidden = ("sklearn", "tensorflow", "matplotlib", "jinja2", "scipy", "joblib", "distributed")
    code = (
        f"import sys\nsys.modules.update(dict.fromkeys({hidden!r}))\n"
        "from twinedge.cli import main\n"
        f"main(['fleet', {str(stores)!r}, '--pack', {str(fleet_pack)!r}, '-o', 'fleet.html'])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "fleet.html").stat().st_size > 10_000
