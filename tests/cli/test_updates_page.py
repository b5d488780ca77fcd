"""Every command of docs/updates.md runs as it is printed, one after the other."""

import re
import shlex
import shutil
from pathlib import Path

import numpy as np

from twinedge.pack import read_pack
from twinedge.runtime.self_test import id_of, identity_of

PAGE = Path(__file__).parents[2] / "docs" / "updates.md"


def commands():
    """Commands of blocks and of the prose, in the order of the page."""
    text = PAGE.read_text("utf-8")
    printed = re.findall(r"(?m)^(twinedge .*)$|`(twinedge [^`<>]+)`", text)
    found = [block or prose for block, prose in printed]
    return [line for line in found if line != "twinedge inspect"]  # named, not called


def run_printed(cli, line, folder):
    """Run a command as a shell would: with patterns of files, and output to a file."""
    words = shlex.split(line)[1:]
    to = words[words.index(">") + 1] if ">" in words else None
    words = words[: words.index(">")] if to else words
    found = []
    for word in words:
        matching = sorted(str(one.relative_to(folder)) for one in folder.glob(word))
        found += matching if "*" in word else [word]
    answer = cli(*found)
    assert answer.code == 0, f"{line}: {answer.err}"
    if to:
        (folder / to).write_text(answer.out)
    return answer.out


def test_the_commands_of_the_page_run(cli, tiny_run, fleet_pack, write_store, curve, tmp_path):
    shutil.copytree(tiny_run, tmp_path / "runs" / "latest")
    shutil.copy(fleet_pack, tmp_path / "fielded.twin")
    (tmp_path / "dumps").mkdir()
    for number in range(4):
        z = np.random.default_rng(number).normal(size=30)
        write_store(tmp_path / "dumps" / f"{number}.bin", z)
    rows = "\n".join(",".join(map(str, row)) for row in curve[0][100:104])
    (tmp_path / "new.csv").write_text(f"angle,offset,idle\n{rows}\n")
    lines = commands()
    assert len(lines) >= 10
    printed = {line: run_printed(cli, line, tmp_path) for line in lines}
    parent = id_of(read_pack((tmp_path / "fielded.twin").read_bytes()))
    release = identity_of(read_pack((tmp_path / "model-7.twin").read_bytes()))
    lean = identity_of(read_pack((tmp_path / "lean-7.twin").read_bytes()))
    assert (release.parent, release.counter) == (parent, 7)
    assert lean.id == release.id
    assert (tmp_path / "lean-7.twin").stat().st_size < (tmp_path / "model-7.twin").stat().st_size
    header = (tmp_path / "product_key.h").read_text()
    assert "twin_key[32]" in header
    predicted = next(out for line, out in printed.items() if line.startswith("twinedge predict"))
    assert len(predicted.splitlines()) == 5
    assert sum(line.startswith("twinedge fleet") for line in lines) == 2
