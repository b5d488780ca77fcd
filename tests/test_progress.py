"""What long work shows on standard error, and when it shows nothing."""

import io
import re
import threading
import time
from contextlib import redirect_stderr

import pytest

from twinedge import progress as subject
from twinedge.progress import Lines, Progress, clear, progress_bar
from twinedge.wording import format_duration

CLEARED = "\r\x1b[K"


class Terminal(io.StringIO):
    """A terminal."""

    def isatty(self):
        return True


class Gone(io.StringIO):
    """Nobody reads it any more."""

    def write(self, text):
        raise BrokenPipeError


def until(condition):
    """Wait for what another thread does."""
    for _ in range(500):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("it never happened")


def test_the_share_is_that_of_all_stages_by_the_seconds_they_may_take():
    work = Progress()
    work.plan({"read": 1, "train": 6, "skipped": 2, "write": 1})
    assert work.share == 0
    work.stage("read")
    assert work.share == 0
    work.stage("train", 4)
    assert work.share == pytest.approx(0.1)
    work.advance(2, 0.5, 0.25)
    assert (work.title, work.state) == ("train", "loss 0.5  val 0.25")
    assert work.share == pytest.approx(0.4)
    work.at("the second half", 3, 4)
    assert (work.title, work.state) == ("train, the second half", "3/4")
    assert work.share == pytest.approx(0.55)
    work.stage("not planned")
    assert work.share == pytest.approx(0.7)
    work.stage("write")
    assert work.share == pytest.approx(0.9)


def test_without_a_plan_there_is_one_stage():
    work = Progress()
    assert work.share == 0
    work.at("part 1", 1, 4)
    assert work.share == 0.25


def test_a_plan_may_change_but_for_what_has_begun():
    work = Progress()
    work.plan({"one": 1, "two": 1})
    work.stage("one", 2)
    work.advance(1, 0, 0)
    work.plan({"one": 5, "three": 3})
    assert work.share == pytest.approx(0.5 / 4)


def test_steps_of_an_earlier_run_are_not_expected_again():
    work = Progress()
    work.plan({"folds": 10, "final": 10})
    work.stage("folds", 0, of=500)
    work.stage("final", 100, of=200)
    work.advance(50, 0, 0)
    assert work.share == pytest.approx(0.5)


def test_a_part_may_hide_its_stages():
    work = Progress()
    with work.part("Fold 1", opaque=True) as inner:
        inner.stage("folds", 4)
        inner.advance(1, 0, 0)
        assert inner.title == work.title == "Fold 1"


def test_parts_plan_by_themselves_and_may_run_side_by_side():
    work = Progress()
    work.plan({"known": 4})
    with work.part("unknown") as inner:
        inner.plan({"a": 3, "b": 1})
        inner.stage("b")
        assert work.expected == 8
        assert work.share == pytest.approx(3 / 8)
        assert work.title == "b"
        with work.part("known") as beside, progress_bar(True) as found:
            assert found is beside
            found.stage("c", 2)
            found.advance(1, 0, 0)
            assert work.share == pytest.approx(5 / 8)
    assert work.share == 1


def test_lines_name_every_part(capsys):
    lines = Lines()
    for done in range(3):
        lines.at(f"part {done}", done, 2)
    assert capsys.readouterr() == ("", "part 0\n1/2 part 1\n2/2 part 2\n")


@pytest.fixture
def often(monkeypatch):
    """A line every hundredth of a second."""
    monkeypatch.setattr(subject, "INTERVAL", 0.01)


def test_silence(capsys, often):
    with progress_bar(False) as work:
        work.stage("first round", 4)
        with progress_bar(False) as inner:
            assert inner is not work
        time.sleep(0.05)
    assert capsys.readouterr() == ("", "")


def test_quick_work_shows_nothing(capsys):
    with progress_bar(True) as work:
        work.stage("first round", 4)
    assert capsys.readouterr() == ("", "")


def test_without_a_terminal_there_are_lines_with_stage_share_and_time_left(often):
    with redirect_stderr(io.StringIO()) as shown, progress_bar(True) as work:
        work.plan({"one": 1, "two": 1})
        work.stage("one", 10)
        until(lambda: shown.getvalue().count("\n") >= 2)
        work.advance(5, 0.1, 0.1)
        until(lambda: "25 %" in shown.getvalue())
        work.stage("two")
        until(lambda: "50 %" in shown.getvalue())
    lines = shown.getvalue().splitlines()
    assert lines[0] == "one: 0 % done"
    assert "two: 50 % done, about" in lines[-1]
    for line in lines:
        assert re.fullmatch(r"(one|two): \d+ % done(, about \d+ (s|min) left)?", line)


def test_the_time_left_is_that_of_the_whole():
    assert subject._left(0.25, 60) == "about 3 min left"
    assert subject._left(0.0, 60) == ""
    assert [format_duration(seconds) for seconds in (40, 700, 12600)] == ["40 s", "12 min", "3.5 h"]


def test_a_terminal_has_a_bar_that_goes_away_again(monkeypatch):
    monkeypatch.setenv("COLUMNS", "70")
    with redirect_stderr(Terminal()) as shown, progress_bar(True) as work:
        work.plan({"first round": 1, "another": 1})
        work.stage("first round", 4)
        work.advance(2, 0.5, 0.25)
        until(lambda: "25 %" in shown.getvalue())
    *_, last, end = shown.getvalue().split(CLEARED)
    assert end == ""
    assert re.match(r"first round  \[#{8}\.{22}\]  25 %", last)
    assert "left" in last
    assert all(len(one) < 70 for one in shown.getvalue().split(CLEARED))


def test_a_remark_has_the_line_of_the_bar_to_itself():
    with redirect_stderr(Terminal()) as shown:
        clear()
        assert shown.getvalue() == ""
        with progress_bar(True):
            clear()
            assert shown.getvalue().endswith(CLEARED)


def test_work_in_threads_is_shown_and_a_reader_that_is_gone_does_not_stop_it(often):
    with redirect_stderr(Gone()), progress_bar(True) as work:
        work.plan({"a": 1, "b": 1})

        def run(title):
            with work.part(title), progress_bar(True) as inner:
                inner.stage("half", 2)
                inner.advance(1, 0, 0)
                met.wait()
                met.wait()

        met = threading.Barrier(3)
        threads = [threading.Thread(target=run, args=title) for title in "ab"]
        for thread in threads:
            thread.start()
        met.wait()
        assert work.share == pytest.approx(0.5)
        met.wait()
        for thread in threads:
            thread.join()
        assert work.share == 1
