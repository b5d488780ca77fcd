import resource
import sys

import pytest

from twinedge.anchors import METHODS, Point
from twinedge.anchors.curves import Measurement
from twinedge.anchors.plot import LETTERS, draw, text_plot


def measurement(*points, rmse_all=1.0):
    return Measurement(tuple(Point(*point) for point in points), rmse_all, 60, 20, 0.01)


FALLING = measurement(
    *(("xy", k, 1 + 1 / k) for k in (1, 2, 4, 8)),
    *(("random", k, 1 + 2 / k) for k in (1, 2, 4)),
)


def test_letters_fall_to_the_line_of_all_anchors():
    *plot, axis, legend = text_plot(FALLING)
    assert axis.split() == ["anchors", "1", "2", "4", "8"]
    assert legend.split() == ["x", "xy", "r", "random"]
    rows = {}
    for number, line in enumerate(plot[1:]):
        for column, letter in enumerate(line.partition("|")[2].removesuffix(" all")):
            if letter in "xr":
                rows[letter, column] = number
    assert len(rows) == 7
    for letter in "xr":
        down = [row for (which, _), row in sorted(rows.items()) if which == letter]
        assert down == sorted(set(down))
    assert plot[-1].endswith("- all")
    assert plot[-1].split()[0] == "1"
    assert sum("---" in line for line in plot) == 1


def test_every_method_has_a_letter_of_its_own():
    assert LETTERS.keys() == {"auto", *METHODS}
    assert len(set(LETTERS.values())) == len(LETTERS)
    assert all(len(letter) == 1 and letter in name for name, letter in LETTERS.items())


def test_curves_that_meet_stand_side_by_side():
    names = list(LETTERS)
    points = [(name, k, 1 + 1 / k) for name in names for k in (2, 4)]
    *plot, axis, legend = text_plot(measurement(*points))
    drawn = [line.partition("|")[2] for line in plot]
    together = "".join(LETTERS[name] for name in names)
    for k in (2, 4):
        start = axis.index(f" {k}") + 1 - 12
        cells = (line[start : start + len(names)] for line in drawn)
        assert [cell for cell in cells if cell.strip(" -")] == [together]
    assert legend.split() == [word for name in names for word in (LETTERS[name], name)]


def test_an_error_that_stands_out_does_not_flatten_the_rest():
    points = [("xy", k, 1 + 0.1 / k) for k in range(1, 20)]
    plain, outlying = (
        text_plot(measurement(*points, *more)) for more in ([], [("random", 1, 50.0)])
    )
    assert outlying[1].split()[0].startswith(">1.0")
    assert "r" in outlying[1]
    lines = [
        sum("x" in line.partition("|")[2] for line in plot[1:-2]) for plot in (plain, outlying)
    ]
    assert lines[0] == lines[1] > 4


@pytest.mark.parametrize(
    ("points", "rmse_all"),
    [
        ([("xy", 1, 1.0)], 1.0),
        ([("xy", 1, 0.0), ("xy", 2, 0.0)], 0.0),
        ([("xy", 1, 0.0), ("xy", 2, 3.0)], 1.0),
        ([("xy", 1, 1e-30), ("xy", 2, 1e30)], 1.0),
        ([("xy", 1, 0.5), ("greedy", 4096, 0.6)], 2.0),
    ],
    ids=["one", "perfect", "perfect once", "far apart", "better than all"],
)
def test_every_point_is_drawn_once(points, rmse_all):
    *plot, _, _ = text_plot(measurement(*points, rmse_all=rmse_all))
    drawn = "".join(line.partition("|")[2].removesuffix(" all") for line in plot)
    assert len(drawn.replace("-", "").replace(" ", "")) == len(points)
    assert sum(line.endswith(" all") for line in plot) == 1


@pytest.mark.parametrize("ending", ["png", "SVG"])
def test_the_same_measurement_gives_the_same_picture(tmp_path, ending):
    one, other = tmp_path / f"one.{ending}", tmp_path / f"other.{ending}"
    for path in (one, other):
        draw(FALLING, path, title="runs/a $x^$ $ \udcff", target="y ($)")
    assert one.read_bytes() == other.read_bytes()
    words = {"png": ["\x89PNG"], "SVG": ["<?xml", "runs/a", ">xy<", ">random<", ">all 60<"]}
    assert all(word in one.read_text("latin-1") for word in words[ending])
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([one.name, other.name])


def test_pictures_that_cannot_be_written_are_refused(complaint, tmp_path, monkeypatch):
    def refusal(path):
        return complaint(draw, FALLING, path, title="", target="")

    assert ".svg or .png" in refusal(tmp_path / "plot.pdf")
    assert "there is no folder" in refusal(tmp_path / "none" / "plot.svg")
    (tmp_path / "folder.svg").mkdir()
    assert "is a folder" in refusal(tmp_path / "folder.svg")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert "pip install 'twinedge[report]'" in refusal(tmp_path / "plot.svg")
    assert [path.name for path in tmp_path.iterdir()] == ["folder.svg"]


def test_a_picture_too_large_for_its_place_leaves_the_old_one(complaint, tmp_path):
    path = tmp_path / "plot.png"
    path.write_bytes(b"old")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        assert "File too large" in complaint(draw, FALLING, path, title="", target="")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_bytes() == b"old"
    assert len(list(tmp_path.iterdir())) == 1
