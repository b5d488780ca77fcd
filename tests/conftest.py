"""Models small enough to train in a second, trained once for all tests."""

import importlib
import os
import runpy
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
# Were TensorFlow used before it trains, it would take a thread per core, and round differently.
os.environ.setdefault("TF_NUM_INTRAOP_THREADS", "1")

# A shell makes background jobs ignore Ctrl-C, and the commands under test would
# inherit that.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A busy machine is not a failure; nor is a fixture of which a property damages a copy.
settings.register_profile(
    "thorough",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.register_profile("quick", settings.get_profile("thorough"), max_examples=40)
settings.load_profile("thorough")

# Files that take long go first, so that no process is left with one at the end.
LONGEST = (
    "test_extras.py",
    "test_wheel.py",
    "test_matrix.py",
    "test_report.py",
    "test_terminal.py",
    "test_few_groups.py",
    "test_interrupt.py",
)

# Files whose paths begin so share what takes long to make: models of reports, the wheel.
TOGETHER = ("tests/report/", ("tests/packaging/test_extras.py", "tests/packaging/test_wheel.py"))


def pytest_configure(config):
    if config.getoption("markexpr") == "not slow":
        settings.load_profile("quick")


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: item.path.name not in LONGEST)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Where a file stays in one process, keep all files of an entry of ``TOGETHER`` in one, too."""
    if config.getoption("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid):
            start = next((one for one in TOGETHER if nodeid.startswith(one)), None)
            return str(start) if start else super()._split_scope(nodeid)

    return Scheduling(config, log)


@pytest.fixture(autouse=True)
def unhurried(monkeypatch):
    """No lines about progress, however slow the machine is; tests of them set their own pace."""
    monkeypatch.setattr("twinedge.progress.INTERVAL", 3600.0)


@pytest.fixture(scope="session", autouse=True)
def few_trees():
    """Learn intervals with few trees, which take most of the time of a brief training."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("_HELD_OUT_TREES", "_TREES"):
            patch.setattr(f"twinedge.estimators.difficulty.{name}", 10)
        yield


@pytest.fixture(scope="session")
def curve():
    """120 points of a smooth function of three features, the last of which has no effect."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (120, 3)) * [1.0, 10.0, 100.0] + [0.0, 5.0, -20.0]
    return X, 50 + 10 * np.sin(2 * X[:, 0]) + X[:, 1]


@pytest.fixture(scope="session")
def tiny_twin(curve):
    """A twin with one hidden layer of 8, trained for a second."""
    from twinedge import TwinRegressor

    X, y = curve
    model = TwinRegressor(
        hidden=(8,),
        activation="silu",
        learning_rate=0.01,
        weight_decay=0.003,
        steps=1500,
        random_state=0,
    )
    return model.fit(X[:80], y[:80], validation=(X[80:100], y[80:100]))


@pytest.fixture(scope="session")
def four_twins(curve):
    """Four small networks, trained in parallel."""
    from twinedge import TwinRegressor

    X, y = curve
    model = TwinRegressor(
        twins=4,
        hidden=(6, 5),
        activation="relu",
        learning_rate=0.01,
        weight_decay=0.003,
        steps=500,
        random_state=1,
    )
    return model.fit(X[:60], y[:60], validation=(X[80:100], y[80:100]))


@pytest.fixture(scope="session")
def tiny_run(tiny_twin, curve, tmp_path_factory) -> Path:
    """The same as a run folder; copy it before damaging it."""
    from twinedge.run_folder import Run

    X, y = curve
    folder = tmp_path_factory.mktemp("runs") / "tiny"
    Run(
        tiny_twin,
        ("angle", "offset", "idle"),
        "level",
        (X[80:100], y[80:100]),
        (X[100:], y[100:]),
        {"dataset": "curve", "split": 0, "rows": len(y)},
        {"rmse_val": tiny_twin.validation_rmse_},
    ).save(folder)
    return folder


@pytest.fixture(scope="session")
def stones(tmp_path_factory) -> Path:
    """A table with text and missing cells: carat and cut may be missing, grade has two values.

    One cut has a comma, one is not ASCII, two are rare, and Superb is only in a test row.
    """
    from twinedge.data import split_rows

    rng = np.random.default_rng(5)
    cuts = np.array(["Fair", "Good, really", "Idéal", "Odd", "Strange"])
    cut = rng.choice(cuts[:3], 120)
    rows = split_rows(120, 0)
    cut[rows.train[[3, 20]]], cut[rows.train[[4, 40]]] = "Odd", "Strange"
    cut[rows.test[3]] = "Superb"
    carat, depth = rng.uniform(0.2, 2.5, 120), rng.normal(61, 1.5, 120)
    grade = rng.integers(1, 4, 120)
    carat[rows.test] += 0.4  # which moves the median of all rows
    depth[rows.test] += 4
    worth = dict(zip(cuts, [0, 4, 9, 2, 3], strict=True))
    price = 5 * carat + grade + [worth.get(one, 5) for one in cut] + 0.1 * depth
    carats = [f"{one:.6g}" for one in carat]
    for row in (7, 30, 31, 90):
        carats[row] = ""
    cut[rows.train[[12, 50]]] = "NA"
    path = tmp_path_factory.mktemp("stones") / "stones.csv"
    lines = [
        f'{c},"{name}",{d:.6g},{g},{y:.6g}'
        for c, name, d, g, y in zip(carats, cut, depth, grade, price, strict=True)
    ]
    path.write_text("\n".join(["carat,cut,depth,grade,price", *lines, ""]), "utf-8")
    return path


@pytest.fixture(scope="session")
def stones_run(stones, tmp_path_factory) -> Path:
    """Its run by ``twinedge train``, with cut and grade as categories."""
    from twinedge.cli import main

    folder = tmp_path_factory.mktemp("runs") / "stones"
    command = f"train {stones} --target price --impute median --categorical grade -o {folder}"
    options = "--hidden 8,8 --steps 300 --activation relu --learning-rate 0.01 --weight-decay 0.03"
    with redirect_stdout(StringIO()), pytest.raises(SystemExit) as stop:
        main([*command.split(), *options.split(), "--quiet"])
    assert stop.value.code == 0
    return folder


@pytest.fixture(scope="session")
def stones_export(stones_run, tmp_path_factory) -> Path:
    """The same in all formats."""
    import twinedge

    folder = tmp_path_factory.mktemp("exports") / "stones"
    formats = ("twin", "c", "tflite", "onnx")
    twinedge.export(stones_run, folder, anchors=12, formats=formats, tolerance=10.0)
    return folder


@pytest.fixture(scope="session")
def stream_log(tmp_path_factory) -> Path:
    """Samples of two devices, one a minute, with a gap of an hour, missing cells and names.

    The power follows from temperatures and flows of the last minutes. Every third row has none.
    """
    rng = np.random.default_rng(7)
    count = 260
    times = 1_700_000_000 + 60 * np.arange(count)
    times[count // 2 :] += 3600
    lines = ["at,device,temp,flow,mode,power"]
    for device, start in (("A", 20.0), ("B", 35.0)):
        temp = start + np.cumsum(rng.normal(0, 0.3, count))
        flow, mode = rng.normal(5, 1, count), rng.choice(["eco", "full"], count)
        mean = np.convolve(temp, np.ones(6) / 6)[:count]
        power = mean + 2 * np.r_[5, 5, flow[:-2]] + (mode == "full") + rng.normal(0, 0.1, count)
        for k in range(count):
            cell = "" if k % 50 == 33 else f"{temp[k]:.3f}"
            target = "" if k % 3 == 1 else f"{power[k]:.3f}"
            lines.append(f"{times[k]},{device},{cell},{flow[k]:.3f},{mode[k]},{target}")
    path = tmp_path_factory.mktemp("streams") / "log.csv"
    path.write_text("\n".join([*lines, ""]))
    return path


@pytest.fixture(scope="session")
def stream_run(stream_log, tmp_path_factory) -> Path:
    """Its run by ``twinedge train --derive``."""
    from twinedge.cli import main

    folder = tmp_path_factory.mktemp("runs") / "stream"
    command = f"train {stream_log} --target power --impute median --time at --group device"
    derived = "temp@1, mean(temp, 6min), max(flow, 4), std(flow, 5), slope(temp, 6), delta(flow)"
    options = "--hidden 8 --steps 200 --activation relu --learning-rate 0.01 --weight-decay 0.03"
    more = ["--drop-missing-target", "--derive", derived, "-o", str(folder), "--quiet"]
    with redirect_stdout(StringIO()), pytest.raises(SystemExit) as stop:
        main([*command.split(), *options.split(), *more])
    assert stop.value.code == 0
    return folder


@pytest.fixture(scope="session")
def stream_export(stream_run, tmp_path_factory) -> Path:
    """Its pack and C project."""
    import twinedge

    folder = tmp_path_factory.mktemp("exports") / "stream"
    twinedge.export(stream_run, folder, anchors=8, formats=("twin", "c"), tolerance=10.0)
    return folder


@pytest.fixture(scope="session")
def complaint() -> Callable[..., str]:
    """Return a function that expects an InputError of one line and returns its message."""
    from twinedge import InputError

    def call(function: Callable[..., Any], *args: Any, **kwargs: Any) -> str:
        with pytest.raises(InputError) as caught:
            function(*args, **kwargs)
        message = str(caught.value)
        assert message
        assert len(message.splitlines()) == 1
        return message

    return call


@pytest.fixture(scope="session")
def tflite_runtime(tmp_path_factory):
    """Path of a Python that has tflite-runtime, the interpreter of 32-bit Raspberry Pis.

    TWINEDGE_TFLITE_RUNTIME names a folder to keep its environment in.
    """
    folder = os.environ.get("TWINEDGE_TFLITE_RUNTIME") or tmp_path_factory.mktemp("env")
    done = subprocess.run(
        [Path(__file__).parents[1] / "tools" / "tflite-runtime-env", folder],
        env=os.environ | {"PYTHON": sys.executable},
        capture_output=True,
        text=True,
    )
    if done.returncode and not os.environ.get("CI"):
        pytest.skip(f"no environment with tflite-runtime: {done.stderr[-200:]}")
    assert not done.returncode, done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="session")
def monocypher():
    """Folder of the C source of Monocypher, which verifies signatures in examples."""
    home = Path(__file__).parents[1]
    done = subprocess.run(
        [sys.executable, home / "tools" / "monocypher", home / "build" / "monocypher"],
        capture_output=True,
        text=True,
    )
    if done.returncode and not os.environ.get("CI"):
        pytest.skip(done.stderr[-200:])
    assert not done.returncode, done.stderr
    return home / "build" / "monocypher"


@pytest.fixture(scope="session")
def fleet_pack(tiny_run, tmp_path_factory) -> Path:
    """A pack that can learn, for a fleet of devices.

    Its intervals hold for errors that are Student with 4 degrees of freedom, divided by 1.14.
    """
    from dataclasses import replace

    import twinedge
    from twinedge.pack import read_pack, write_pack

    path = tmp_path_factory.mktemp("exports") / "fleet" / "model.twin"
    twinedge.export(tiny_run, path.parent, anchors=8, formats=("twin",))
    pack = read_pack(path.read_bytes())
    quantiles = {500: 42600, 800: 88100, 900: 122500, 950: 159600}
    path.write_bytes(
        write_pack(replace(pack, intervals=replace(pack.intervals, quantiles=quantiles)))
    )
    return path


@pytest.fixture(scope="session")
def write_store(fleet_pack) -> Callable[..., Path]:
    """Write the store of a device on which the pack is off by known numbers of scales.

    ``write_store(path, z)`` draws features; others may be given, and times.
    """
    from twinedge.runtime.loading import load
    from twinedge.runtime.reference import quantise

    device = load(fleet_pack)
    pack, raw = device.pack, device.evaluator.raw

    def write(path: Path, z: Any, X: Any = None, times: Any = None) -> Path:
        if X is None:
            X = np.random.default_rng(len(z)).uniform([-1, -5, -120], [1, 15, 80], (len(z), 3))
        X = np.asarray(X, np.float32)
        mean, _, scale = raw(quantise(pack, X)).astype(float)
        y = (mean + np.asarray(z) * scale / 16) * float(pack.y_gain) + float(pack.y_offset)
        one = load(fleet_pack, store=path)
        one.learn(X, y, times)
        one.store.journal.close()
        return path

    return write


@pytest.fixture(scope="module")
def benchmark_named() -> Callable[[str], ModuleType]:
    """Import a benchmark by its name, when a test needs it."""
    return lambda name: importlib.import_module(f"benchmarks.{name}")


@pytest.fixture
def tiny() -> dict[str, Any]:
    """Parameters of a network that trains instantly, with nothing left to choose."""
    return {
        "hidden": (8,),
        "activation": "silu",
        "learning_rate": 0.01,
        "weight_decay": 0.003,
        "steps": 300,
        "random_state": 0,
    }


@pytest.fixture(scope="session")
def perceptron() -> Callable[..., np.ndarray]:
    """Return a plain network in double precision that shares no code with the package."""

    def evaluate(architecture: Any, network: np.ndarray, x: np.ndarray) -> np.ndarray:
        widths = [architecture.inputs, *architecture.hidden, 1]
        flat, h = network.astype(np.float64), np.asarray(x, np.float64)
        for depth, (rows, columns) in enumerate(pairwise(widths)):
            kernel, flat = flat[: rows * columns].reshape(rows, columns), flat[rows * columns :]
            bias, flat = flat[:columns], flat[columns:]
            h = h @ kernel + bias
            if depth < len(architecture.hidden):
                h = h * (h > 0) if architecture.activation == "relu" else h / (1 + np.exp(-h))
        assert not len(flat)
        return h[..., 0]

    return evaluate


@pytest.fixture(scope="session")
def difference(perceptron) -> Callable[..., float]:
    """Return F(p, q) of one of a model's twins, in units of the target."""

    def evaluate(model: Any, twin: int, p: np.ndarray, q: np.ndarray) -> float:
        shift, scale = model.scaling_.x_mean, model.scaling_.x_scale
        pair = np.concatenate([(p - shift) / scale, (q - shift) / scale])
        return float(perceptron(model.architecture_, model.weights_[twin], pair)) * (
            model.scaling_.y_scale
        )

    return evaluate


@pytest.fixture(scope="session")
def driver():
    """What drives the browser, loaded where a test needs it."""
    return runpy.run_path(str(Path(__file__).parent / "browser.py"))


@pytest.fixture(scope="session")
def blank(driver):
    """Make empty pages of one Chromium for all tests."""
    with driver["chromium"]() as blank:
        yield blank


ROOT = Path(__file__).parents[1]
AXE = ROOT / "build" / "axe" / "node_modules" / "axe-core" / "axe.min.js"
RUN_AXE = """(options) => axe.run(document, options).then((found) => found.violations.map(
  (one) => [one.id, one.help, one.nodes.slice(0, 3).map((node) => node.html.slice(0, 160))]))"""


@pytest.fixture(scope="session")
def violations():
    """What axe-core has against a page; without axe-core, nothing is checked."""
    if not AXE.is_file() and os.environ.get("CI") != "true":
        pytest.skip(f"axe-core is not installed: make {AXE.relative_to(ROOT)}")
    axe = AXE.read_text("utf-8")

    def call(page, **options):
        # Its script is not of the page, whose policy would refuse it.
        page.evaluate(f"() => {{ {axe} }}")
        return page.evaluate(RUN_AXE, options)

    return call
