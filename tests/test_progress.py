"""What long work shows on standard error, and when it shows nothing."""

import io
from contextlib import redirect_stderr

import pytest

from twinedge.progress import Lines, Progress, progress_bar, saying, watched


class Terminal(io.StringIO):
    """Somebody watches."""

    def isatty(self):
        return True


def report(progress):
    progress.stage("first round", 4)
    progress.advance(2, 0.5, 0.25)
    for done in range(3):
        progress.at(f"part {done}", done, 2)


def test_nobody_watches_a_file():
    assert not watched()


def test_somebody_watches_a_terminal_unless_it_is_to_be_quiet():
    with redirect_stderr(Terminal()):
        assert watched()
        assert not watched(quiet=True)


def test_lines_tell_of_every_part(capsys):
    report(Lines())
    assert capsys.readouterr() == ("", "part 0\n1/2 part 1\n2/2 part 2\n")


def test_silence(capsys):
    report(Progress())
    with progress_bar(shown=False) as bar:
        report(bar)
    with saying("Reading") as say:
        say("Still reading")
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("clock", [True, False])
def test_a_bar_ends_with_the_last_part(clock, capsys, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    with redirect_stderr(Terminal()) as shown, progress_bar(shown=True, clock=clock) as bar:
        report(bar)
    assert capsys.readouterr() == ("", "")
    assert "part 2" in shown.getvalue()
    assert "2/2" in shown.getvalue()
    assert ("0:00:00" in shown.getvalue()) == clock


def test_what_is_said_goes_away_again(monkeypatch):
    monkeypatch.setenv("COLUMNS", "20")
    with redirect_stderr(Terminal()) as shown, saying("Reading") as say:
        say("Reading what does not fit the line")
    cleared = "\r\x1b[K"
    assert shown.getvalue() == cleared.join(["", "Reading ...", "Reading what doe ...", ""])
