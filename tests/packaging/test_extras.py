"""Each extra alone: every command works, or says in a line which extra it lacks."""

import json
import re
import subprocess
from importlib.metadata import metadata

import numpy as np
import pytest

EXTRAS = metadata("twinedge").get_all("Provides-Extra")
# What an extra brings of the others.
ALSO = {"export": {"train", "onnx"}, "cluster": {"train", "report"}}
TINY = "--hidden 8 --steps 100 --activation relu --learning-rate 0.01 --weight-decay 0.03"

# Commands, and the extras that they need: all of one of these sets. The folder has a run, an export
# and tables; a command that needs no extra runs on a Pi.
PI = [set()]
COMMANDS = {
    "data list": PI,
    "budget boards": PI,
    "inspect out/model.twin": PI,
    "inspect out/model.twin --verify": PI,
    "keys new shared --hmac": PI,
    "sign out/model.twin --key shared.key -o shared.twin": PI,
    "verify shared.twin --key shared.key": PI,
    "predict shared.twin data.csv --require-key shared.key": PI,
    "keys new own": [{"sign"}],
    "keys show product.pub": [{"sign"}],
    "sign out/model.twin --key product.key -o signed.twin": [{"sign"}],
    "verify product.twin --key product.pub": [{"sign"}],
    "predict product.twin data.csv --require-key product.pub": [{"sign"}],
    "predict out/model.twin data.csv": PI,
    "evaluate out/model.twin data.csv": PI,
    "calibrate out/model.twin data.csv -o calibrated.twin": PI,
    "adapt out/model.twin data.csv --store site.store": PI,
    "store show site.store --pack out/model.twin": PI,
    "store export site.store --pack out/model.twin -o points.csv": PI,
    "firmware boards": PI,
    "firmware sizes": PI,
    "predict out/model.tflite data.csv": [{"tflite"}, {"tflite-runtime"}, {"train"}],
    "predict out/model_twin.tflite data.csv": [{"tflite"}, {"tflite-runtime"}, {"train"}],
    "predict out/model.onnx data.csv": [{"onnx"}],
    "predict out/model_float_twin.onnx data.csv": [{"onnx"}],
    "predict out/model.twin data.parquet": [{"tables"}],
    "serve out/model.twin --mqtt mqtt://localhost:1 --topic raw --quiet": [{"mqtt"}],
    f"train data.csv --target level -o trained {TINY}": [{"train"}],
    "predict run data.csv": [{"train"}],
    "evaluate run data.csv": [{"train"}],
    "anchors run --counts 4,8 --methods xy": [{"train"}],
    "anchors run --counts 4,8 --methods xy --plot anchors.svg": [{"train", "report"}],
    "check data.csv --target level": [{"train"}],
    "export run --anchors 8 --formats twin -o pack": [{"train"}],
    "export run --anchors 8 --formats c -o project": [{"train"}],
    "export run --anchors 8 --formats tflite -o lite": [{"train"}],
    "export run --anchors 8 --formats onnx -o onnx": [{"export"}],
    "export run --anchors 8 -o all": [{"export"}],
    "report out/model.twin --data data.csv -o pack.html": [{"report"}],
    "report run --quick --anchors 8 -o run.html": [{"train", "report"}],
}
# Runs all of them in one process, since TensorFlow takes seconds to load. What serves is stopped.
RUN = """
import io, json, os, signal, sys, threading
from contextlib import redirect_stderr, redirect_stdout
from twinedge.cli import main
try:
    from twinedge.training.selection import PLANS, Plan
    PLANS["quick"] = Plan(folds=20, final=50, teachers=False)  # of the check
except ModuleNotFoundError:
    pass

def end(over):
    while signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
        if over.wait(0.02):
            return
    os.kill(os.getpid(), signal.SIGTERM)

done = {}
for line in json.loads(sys.argv[1]):
    over = threading.Event()
    if line.startswith("serve"):
        threading.Thread(target=end, args=(over,), daemon=True).start()
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()) as output:
        try:
            main(line.split())
        except SystemExit as stop:
            code = stop.code
        except BaseException as error:
            code = repr(error)
    over.set()
    done[line] = code, output.getvalue()
print(json.dumps(done))
"""


@pytest.fixture(scope="module")
def folder(tiny_run, curve, tmp_path_factory):
    """Make what the commands read: a run, an export of it in all formats, and two tables."""
    import pandas

    from twinedge.signing import Key, sign, write_key
    from twinedge_export.deploy import export

    home = tmp_path_factory.mktemp("extras")
    (home / "run").symlink_to(tiny_run)
    export(tiny_run, home / "out", anchors=8)
    key = Key.new()
    write_key(key, home / "product")
    (home / "product.twin").write_bytes(sign((home / "out" / "model.twin").read_bytes(), key))
    names = ["angle", "offset", "idle", "level"]
    table = pandas.DataFrame(np.column_stack(curve), columns=names)
    table.to_csv(home / "data.csv", index=False)
    table.to_parquet(home / "data.parquet")
    return home


@pytest.mark.parametrize("extra", ["", *(pytest.param(x, marks=pytest.mark.slow) for x in EXTRAS)])
def test_with_one_extra_a_command_works_or_names_the_one_it_lacks(
    extra, installed, folder, tmp_path
):
    environment = installed(*filter(None, [extra]))
    for path in folder.iterdir():
        (tmp_path / path.name).symlink_to(path)
    done = subprocess.run(
        ["python", "-c", RUN, json.dumps([*COMMANDS])],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    had = {extra, *ALSO.get(extra, ())}
    found = json.loads(done.stdout.splitlines()[-1])
    for command, ways in COMMANDS.items():
        code, output = found[command]
        if any(needs <= had for needs in ways):
            assert code == 0, (command, output)
            continue
        assert (code, output.count("\n")) == (2, 1), (command, code, output)
        named = set(re.findall(r"twinedge\[([\w-]+)\]", output))
        wanted = {one for needs in ways for name in needs for one in (name, *ALSO.get(name, ()))}
        assert named, (command, output)
        assert named <= wanted - had, (command, output)


def test_each_extra_is_what_the_table_here_says():
    needed = set().union(*(needs for ways in COMMANDS.values() for needs in ways))
    assert needed | {"cluster"} == set(EXTRAS)


def test_measuring_a_board_names_the_extra_it_lacks(installed, tmp_path):
    # What it says with all of them is in test_wheel.py.
    command = ["twinedge", "firmware", "measure", "--board", "mps2-an386", "-o", "sizes.json"]
    done = subprocess.run(command, cwd=tmp_path, env=installed(), capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert "twinedge[train]" in done.stderr
    assert done.stderr.count("\n") == 1
