"""A report on a tiny run, with made-up measurements of boards, and a browser to read it."""

import runpy
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def firmware():
    """Measurements of made-up cores: Uno and ESP8266 are among them, the Pico 2 is not.

    Some have all builds and curves, some only those without neighbors, and one only int8 with
    intervals, and maps.
    """
    from twinedge.budget.measurements import read_runtime

    made_up = runpy.run_path(str(HERE.parent / "budget" / "conftest.py"))
    core, parts = made_up["CORE"], made_up["PARTS"]
    scratch = {"block_bytes": 6, "room_bytes": 3, "lines": 1}
    near = [
        {**one, "neighbors": True, "references": [], "scratch": {**one["scratch"], **scratch}}
        for one in core["builds"]
    ]
    both = {**core, "builds": core["builds"] + near, "parts": parts}
    few = [one for one in core["builds"] if one["intervals"] and one["weights"] == "int8"]
    cores = {"avr5": core, "cortex-m4": both, "aarch64": core, "xtensa-lx106": both}
    cores["cortex-m0"] = {**core, "builds": few, "parts": {"map": parts["map"]}}
    return {name: read_runtime(one) for name, one in cores.items()}


@pytest.fixture(scope="session")
def look(firmware):
    """Measure a run, by default without training."""
    from twinedge_export.report.findings import ReportSettings
    from twinedge_export.report.measure_run import measure_run
    from twinedge_export.settings import ExportSettings

    def call(run, quick=True, ann_steps=20, **options):
        chosen = ExportSettings(**{"anchors": 8, **options})
        settings = ReportSettings(chosen, quick=quick, ann_steps=ann_steps)
        return measure_run(run, "runs/tiny", settings, firmware)

    return call


@pytest.fixture(scope="session")
def run(tiny_run):
    from twinedge.run_folder import load_run

    return load_run(tiny_run)


@pytest.fixture(scope="session")
def found(look, run):
    """The tiny run, ordinary networks of the same bytes included."""
    return look(run, quick=False)


@pytest.fixture(scope="session")
def quick(look, run):
    """The tiny run in a quick report."""
    return look(run)


@pytest.fixture(scope="session")
def spread(look, run):
    """The tiny run in a quick report, without intervals."""
    return look(run, intervals=False)


@pytest.fixture(scope="session")
def bent_run(curve, tmp_path_factory):
    """A tiny run with an input map and a logarithm of its target."""
    import numpy as np

    from twinedge import TwinRegressor
    from twinedge.run_folder import Run

    X, y = curve[0], np.exp(curve[1] / np.std(curve[1]))
    setting = {"learning_rate": 0.01, "weight_decay": 0.003, "steps": 1500, "random_state": 0}
    twin = TwinRegressor(hidden=(8,), activation="relu", input_map=4, target_curve="log", **setting)
    held, test = (X[80:100], y[80:100]), (X[100:], y[100:])
    twin.fit(X[:80], y[:80], validation=held)
    about = {"dataset": "curve", "split": 0, "rows": len(y)}
    scores = {"rmse_val": twin.validation_rmse_}
    folder = tmp_path_factory.mktemp("runs") / "bent"
    Run(twin, ("angle", "offset", "idle"), "level", held, test, about, scores).save(folder)
    return folder


@pytest.fixture(scope="session")
def bent(look, bent_run):
    """A quick report on it."""
    from twinedge.run_folder import load_run

    return look(load_run(bent_run))


@pytest.fixture(scope="session")
def write():
    """Put findings into words."""
    from twinedge_export.report.write import document

    return lambda found: document(found, "twinedge report runs/tiny")


@pytest.fixture(scope="session")
def text(found, write):
    return write(found)


@pytest.fixture(scope="session")
def page_file(text, tmp_path_factory):
    """The page as a file."""
    from twinedge_export.report.formats import page

    path = tmp_path_factory.mktemp("pages") / "report.html"
    path.write_text(page(text), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def page_of_targets(tmp_path_factory):
    """The page on a pack of two targets, as a file."""
    import numpy as np

    from twinedge.pack import write_pack
    from twinedge.runtime.loading import load
    from twinedge_export.report.findings import ReportSettings
    from twinedge_export.report.write import write_report

    made = runpy.run_path(str(HERE.parent / "cli" / "test_several_targets.py"))
    folder = tmp_path_factory.mktemp("targets")
    (folder / "model.twin").write_bytes(write_pack(made["pack_of"]("NOX", "CO, lab")))
    x = np.random.default_rng(3).uniform(-8, 8, (40, 2)).round(2)
    y = load(folder / "model.twin", "numpy").predict(x) + np.array([0.3, -0.1])
    rows = "\n".join(",".join(map(str, row)) for row in np.hstack([x, y]).tolist())
    (folder / "m.csv").write_text(f'temp,load,NOX,"CO, lab"\n{rows}\n')
    settings = ReportSettings(data=folder / "m.csv")
    path = folder / "report.html"
    write_report([folder / "model.twin"], path, settings, command="twinedge report model.twin")
    return path


@pytest.fixture
def complaints():
    """Errors and warnings that a person would see in the console; clear it where some are due."""
    return []


@pytest.fixture
def opened(driver, blank, complaints):
    """Open files in pages that are closed again; drawn, and on demand unfolded.

    A page gets nothing but itself. One that requests more, or complains, fails the test.
    """
    pages, addresses, requests = [], [], []

    def note(message):
        if message.type in ("error", "warning"):
            complaints.append(message.text)

    def call(path, *, unfolded=False, script=True, **options):
        address = path.as_uri()
        page = blank(script=script, **options)
        pages.append(page)
        addresses.append(address)
        page.on("console", note)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.route(lambda url: url != address, lambda route: route.abort())
        page.goto(address)
        if script:
            driver["wait_until_drawn"](page)
        if unfolded:
            page.locator("details").evaluate_all("(all) => all.forEach((one) => one.open = true)")
        return page

    yield call
    for page in pages:
        page.close()
    assert requests == addresses
    assert complaints == []
