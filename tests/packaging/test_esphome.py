"""The component for ESPHome: what its checks refuse, and a device for this machine that predicts.

ESPHome itself checks each configuration and writes the C++, which is compiled with its own sources
for the host platform.
"""

import os
import re
import runpy
import subprocess
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import twinedge
from twinedge.budget import Model
from twinedge.pack import read_pack, write_pack
from twinedge.pack.contents import Release
from twinedge.pack.layout import NO_FILL, Kind
from twinedge.pack.sections import join, split
from twinedge.runtime.self_test import identified
from twinedge_export.boards.reference_packs import random_pack
from twinedge_export.esphome import esphome_package

ROOT = Path(__file__).parents[2]
VERSION = re.search(r"(?m)^esphome==(.*)$", (ROOT / "constraints-esphome.txt").read_text())[1]
# Reads lines from standard input: values of the sources, a true value, or "forget". When the
# component had its turn, it prints what that published, to the last bit.
SIMULATED = """\
esphome:
  name: simulated
host:
packages:
  power: !include power/model.yaml
substitutions:
  power_flow: water
sensor:
  - platform: template
    id: outdoor
  - platform: template
    id: water
    filters:
      - timeout: 1h
text_sensor:
  - platform: template
    id: mode
interval:
  - interval: 1ms
    then:
      - lambda: |-
          static int wait = 0;
          char line[256], word[64];
          float first, second;
          App.set_loop_interval(0);
          if (wait > 0) {
            if (--wait == 0)
              printf("%a %a %a %s\\n", id(power_value).state, id(power_low).state,
                     id(power_high).state, !id(power_outside).has_state() ? "unknown"
                     : id(power_outside).state ? "outside" : "inside");
            return;
          }
          if (fgets(line, sizeof line, stdin) == nullptr)
            exit(0);
          if (sscanf(line, "truth %f", &first) == 1) {
            id(power_truth).make_call().set_value(first).perform();
          } else if (sscanf(line, "learn %f", &first) == 1) {
            id(teach)->execute(first);
          } else if (strcmp(line, "forget\\n") == 0) {
            id(power_forget).press();
          } else if (sscanf(line, "%f %f %63s", &first, &second, word) == 3) {
            id(outdoor).publish_state(first);
            id(water).publish_state(second);
            id(mode).publish_state(word);
          }
          wait = 3;
script:
  - id: teach
    parameters:
      y: float
    then:
      - twinedge.learn:
          id: power_model
          value: !lambda return y;
"""
GIVEN = """\
esphome:
  name: given
host:
external_components:
  - source: power/components
sensor:
  - platform: template
    id: outdoor
  - platform: template
    id: flow
  - platform: twinedge
    id: model
    pack: power/model.twin
    sources:
      outdoor: outdoor
      flow: flow
      mode: mode
    coverage: 80%
    low:
      name: Power at least
text_sensor:
  - platform: template
    id: mode
"""
BY_NAME = "sources:\n      outdoor: outdoor\n      flow: flow\n      mode: mode"
NUMBER = """\
number:
  - platform: twinedge
    name: True power
    min_value: 0
    max_value: 1
    step: 0.1
"""
# Compiled by themselves: what they define is defined elsewhere as well, or has the time in it.
ALONE = ("main.cpp", "alloc_helpers.cpp", "build_info_data.cpp")
POINTS = 16  # that a device keeps by default


@pytest.fixture(scope="module")
def pack():
    """A pack of two numbers and a category; it fills in all but the second."""
    shape = replace(Model.of(4, (16, 8), 8, twins=2), activation="silu", intervals=True)
    drawn = random_pack(shape)
    fill = drawn.domain.fill.copy()
    fill[1] = NO_FILL
    names = ("outdoor", "flow", "mode=eco", "mode=boost")
    whole = replace(
        drawn,
        domain=replace(drawn.domain, fill=fill),
        metadata={
            "columns": [
                {"name": "outdoor"},
                {"name": "flow"},
                {"name": "mode", "levels": ["eco"], "others": ["boost", "turbo"]},
            ],
            "features": [
                {"name": name, "min": -1.0, "max": 1.0} for name in (*names[:3], "mode=(others)")
            ],
            "target": "power",
            "scores": {"rmse_val": 0.02},
        },
    )
    return identified(whole)


@pytest.fixture(scope="module")
def home(pack, tmp_path_factory):
    """A folder of configurations, with the package of the pack."""
    folder = tmp_path_factory.mktemp("esphome")
    (folder / "power.twin").write_bytes(write_pack(pack))
    esphome_package(folder / "power.twin", folder / "power")
    return folder


@pytest.fixture(scope="module")
def reader(home):
    """What the component reads packs with, which needs nothing of ESPHome."""
    return SimpleNamespace(**runpy.run_path(home / "power/components/twinedge/pack.py"))


@pytest.fixture(scope="module")
def call(esphome, home):
    """Run a command of ESPHome on a configuration, in the folder of ``home``."""
    environment = os.environ | {"HOME": str(home)}
    for name in ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE"):  # it compiles itself once
        environment.pop(name, None)

    def run(command, text, *options):
        (home / "device.yaml").write_text(text)
        return subprocess.run(
            [esphome, *command.split(), *options, "device.yaml"],
            cwd=home,
            env=environment,
            capture_output=True,
            text=True,
        )

    return run


@pytest.fixture(scope="module")
def device(call, run, home):
    """The simulated device: ``device(*lines)`` are its answers after a start."""
    done = call("compile --only-generate", SIMULATED)
    assert done.returncode == 0, done.stdout + done.stderr
    source = home / ".esphome" / "build" / "simulated" / "src"
    # One unit, as each file would otherwise compile the same headers again.
    parts = [path for path in sorted(source.rglob("*.cpp")) if path.name not in ALONE]
    lines = [
        f'#define TAG TAG_{number}\n#include "{path.relative_to(source)}"\n#undef TAG\n'
        for number, path in enumerate(parts)
    ]
    (source / "all.cpp").write_text('#include "esphome.h"\n' + "".join(lines))
    alone = [path for path in source.rglob("*.cpp") if path.name in ALONE]
    flags = ("-DUSE_HOST", "-I.", "-O0", "-w")
    for file in (source / "all.cpp", *alone):
        made = ("-c", file.relative_to(source), "-o", home / f"{file.stem}.o")
        run("g++", "-std=gnu++20", "-fno-exceptions", *flags, *made, cwd=source)
    component = source / "esphome" / "components" / "twinedge"
    run("gcc", "-O0", "-Wall", "-Werror", "-c", component / "twin.c", "-o", home / "twin.o")
    run("g++", *home.glob("*.o"), "-o", home / "device")

    def answers(*lines, program="device"):
        done = subprocess.run(
            [home / program],
            input="".join(f"{line}\n" for line in lines),
            env=os.environ | {"HOME": str(home)},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        found = done.stdout.splitlines()
        assert len(found) == len(lines), done.stdout
        return found

    return answers


def line(outdoor, flow, mode):
    return f"{outdoor:.9g} {flow:.9g} {mode}"


def expected(python, x):
    """Answers of Python in the form of the device."""
    mean = python.predict(x)
    ends = python.predict_interval(x, coverage=0.9)
    numbers = np.column_stack([mean, ends]).astype(np.float64)
    return [tuple(map(float.hex, row)) for row in numbers.tolist()]


def numbers_of(answers):
    return [tuple(float.fromhex(word).hex() for word in answer.split()[:3]) for answer in answers]


def queries(count, seed):
    rng = np.random.default_rng(seed)
    numbers = rng.normal(0, 1.5, (count, 2)).astype(np.float32)
    return [(*row, rng.choice(["eco", "boost", "turbo"])) for row in numbers.tolist()]


def inputs(rows):
    """Inputs of the pack for rows of values."""
    levels = {"eco": (1, 0), "boost": (0, 1), "turbo": (0, 1), "unknown": (np.nan, np.nan)}
    return np.array([(*row[:2], *levels.get(row[2], (0, 0))) for row in rows], np.float32)


@pytest.mark.slow
def test_a_device_gives_the_same_bits_as_python(device, home):
    rows = queries(60, 1)
    rows += [(np.nan, 0.5, "eco"), (0.5, 0.5, "unknown"), (np.inf, -np.inf, "boost")]
    answers = device(*(line(*row) for row in rows))
    python = twinedge.load(home / "power.twin")
    assert numbers_of(answers) == expected(python, inputs(rows))
    flags = [answer.split()[3] for answer in answers]
    assert flags[-1] == "outside"
    assert {"inside", "outside"} == set(flags)


@pytest.mark.slow
def test_a_query_that_is_refused_is_unknown(device):
    rows = [(0.1, 0.2, "eco"), (0.1, np.nan, "eco"), (0.1, 0.2, "eco")]
    first, refused, again = device(*(line(*row) for row in rows))
    assert refused == "nan nan nan unknown"
    assert again == first


@pytest.mark.slow
def test_a_level_that_training_did_not_see_is_outside(device, home):
    (answer,) = device(line(0.1, 0.2, "holiday"))
    python = twinedge.load(home / "power.twin")
    assert numbers_of([answer]) == expected(python, np.array([[0.1, 0.2, 0, 0]], np.float32))
    assert answer.endswith("outside")


@pytest.mark.slow
def test_it_learns_remembers_and_forgets_as_python_does(device, home):
    rows = queries(POINTS + 4, 2)
    truths = np.linspace(0.1, 0.9, len(rows), dtype=np.float32)
    asked = (0.3, -0.2, "eco")
    lines = []
    for k, (row, truth) in enumerate(zip(rows, truths, strict=True)):
        lines += [line(*row), f"{('truth', 'learn')[k % 2]} {truth:.9g}"]
    answers = device(line(*asked), *lines, line(*asked), "forget", line(*asked))

    python = twinedge.load(home / "power.twin")
    x, asked_x = inputs(rows), inputs([asked])
    assert numbers_of(answers[:1]) == expected(python, asked_x)
    for k in range(len(rows)):
        assert numbers_of([answers[1 + 2 * k]]) == expected(python, x[k : k + 1])
        python.learn(x[k : k + 1], truths[k : k + 1])
        python.forget(keep=POINTS)
        assert numbers_of([answers[2 + 2 * k]]) == expected(python, x[k : k + 1])
    assert numbers_of(answers[-3:-2]) == expected(python, asked_x)
    python.forget(keep=POINTS)
    kept = twinedge.load(home / "power.twin")
    kept.learn(x[-POINTS:-1], truths[-POINTS:-1])
    assert numbers_of(answers[-1:]) == expected(kept, asked_x)

    # After a restart, and with one more.
    answers = device(line(*asked), "truth 0.5", "forget")
    assert numbers_of(answers[::2]) == expected(kept, asked_x) * 2
    kept.learn(asked_x, [0.5])
    assert numbers_of(answers[1:2]) == expected(kept, asked_x)
    device(*["forget"] * POINTS)
    assert numbers_of(device(line(*asked))) == expected(twinedge.load(home / "power.twin"), asked_x)


@pytest.mark.slow
def test_a_pack_that_fails_its_self_test_predicts_nothing(device, reader, home):
    right = reader.read_pack(home / "power.twin").content
    header, sections = split(right)
    assert sections[-1].kind == Kind.SELF_TEST
    answer = sections[-1].data
    wrong = sections[-1]._replace(data=answer[:-1] + bytes([answer[-1] ^ 1]))
    image = (home / "device").read_bytes()
    assert image.count(right) == 1
    (home / "unsound").write_bytes(image.replace(right, join(header, [*sections[:-1], wrong])))
    (home / "unsound").chmod(0o755)
    assert device(line(0.1, 0.2, "eco"), program="unsound") == ["nan nan nan unknown"]


@pytest.mark.slow
def test_nothing_is_learnt_before_a_prediction(device, home):
    answers = device("truth 0.5", line(0.1, 0.2, "eco"))
    python = twinedge.load(home / "power.twin")
    assert answers[0] == "nan nan nan unknown"
    assert numbers_of(answers[1:]) == expected(python, inputs([(0.1, 0.2, "eco")]))


@pytest.fixture(scope="module")
def other_packs(home, pack):
    """Packs beside that of the package: one with a flipped bit, and one without intervals."""
    content = bytearray((home / "power" / "model.twin").read_bytes())
    content[-40] ^= 1
    (home / "power" / "damaged.twin").write_bytes(content)
    twins = tuple(replace(twin, bias=0, difficulty=None) for twin in pack.twins)
    plain = replace(pack, twins=twins, intervals=None)
    (home / "power" / "plain.twin").write_bytes(write_pack(plain))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("model.twin", "none.twin"), "Could not find file '{home}/power/none.twin'."),
        (("model.twin", "damaged.twin"), "damaged.twin is damaged: its checksum is wrong."),
        (("      flow: flow\n", ""), "2 sources are given, but the pack needs 3: flow is missing."),
        (("flow: flow", "fliw: flow"), "the pack has no feature fliw; it has outdoor, flow, mode."),
        ((BY_NAME, "sources: [flow]"), "1 sources are given, but the pack needs 3: outdoor, flow,"),
        (("mode: mode", "mode: flow"), "doesn't inherit from text_sensor::TextSensor"),
        (("flow: flow", "flow: wind"), "Couldn't find ID 'wind'"),
        (("80%", "81%"), "the pack has intervals for 50%, 80%, 90%, 95%, 99%."),
        (("model.twin", "plain.twin"), "the pack was exported without intervals."),
    ],
)
def test_a_bad_configuration_is_refused(call, home, other_packs, change, says):
    assert GIVEN.count(change[0]) == 1
    done = call("config", GIVEN.replace(*change))
    output = done.stdout + done.stderr
    assert done.returncode == 2
    assert output.count(says.format(home=home)) == 1, output
    assert "Traceback" not in output


def test_a_model_without_intervals_predicts_but_cannot_be_taught(call, other_packs):
    given = GIVEN.replace("model.twin", "plain.twin").replace("    coverage: 80%\n", "")
    given = given.replace(" low:", " value:").replace(BY_NAME, "sources: [outdoor, flow, mode]")
    done = call("config", given)
    assert done.returncode == 0, done.stdout + done.stderr
    done = call("config", given + NUMBER)
    assert done.returncode == 2
    assert "this model cannot learn" in done.stdout + done.stderr


@pytest.fixture(scope="module")
def printed():
    """The configurations of the page, in order."""
    page = (ROOT / "docs" / "esphome.md").read_text("utf-8")
    assert f"ESPHome {VERSION} " in page
    return re.findall(r"(?ms)^```yaml\n(.*?)^```", page)


def test_the_configurations_of_the_page_are_valid(call, printed):
    device, extended, taught, by_hand = printed
    with_package = device.replace("\nsensor:\n", f"\n{extended}{taught.removeprefix('sensor:')}", 1)
    done = call("config", with_package)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "name: Heating power" in done.stdout
    assert "twinedge.learn" in done.stdout
    start, end = device.index("packages:"), device.index("sensor:\n")
    alone = device[:start] + by_hand.replace("sensor:\n", device[end:].partition("text_")[0], 1)
    done = call("config", alone + device[device.index("text_sensor:") :])
    assert done.returncode == 0, done.stdout + done.stderr
    assert "points: 32" in done.stdout


def test_the_reader_sees_what_ours_does(reader, home, pack):
    read = reader.read_pack(home / "power.twin")
    assert read.coverages == tuple(pack.intervals.quantiles)
    assert (read.features, read.schema, read.domain) == (4, pack.schema, True)
    assert [one.name for one in read.columns] == ["outdoor", "flow", "mode"]
    assert dict(read.columns[2].levels) == {"eco": 0, "boost": 1, "turbo": 1}
    assert read.target == "power"
    # What goes to the device predicts the same, without what it does not read.
    bare = read_pack(read.content)
    assert bare.metadata == {}
    kept = Release(pack.release.id, pack.release.self_test)
    assert write_pack(bare) == write_pack(replace(pack, metadata={}, ids=None, release=kept))


def test_the_reader_refuses_every_damage(reader, home, tmp_path):
    content = (home / "power.twin").read_bytes()
    rng = np.random.default_rng(0)
    damaged = [content[:size] for size in (0, 3, 20, 47, 48, 60, len(content) - 1)]
    damaged.append(content + bytes(16))
    for place in [*range(60), *rng.integers(60, len(content), 200).tolist()]:
        one = bytearray(content)
        one[place] ^= 1 << int(rng.integers(8))
        damaged.append(bytes(one))
    for one in damaged:
        (tmp_path / "bad.twin").write_bytes(one)
        with pytest.raises(reader.PackError) as refused:
            reader.read_pack(tmp_path / "bad.twin")
        assert len(str(refused.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("column", "says"),
    [
        ({"name": "when", "calendar": {}}, "needs times (when)"),
        ({"name": "temp@6", "derived": {}}, "needs inputs derived from past samples (temp@6)"),
    ],
)
def test_columns_that_it_cannot_serve_are_refused(reader, pack, tmp_path, column, says):
    metadata = pack.metadata | {"columns": [column]}
    (tmp_path / "model.twin").write_bytes(write_pack(replace(pack, metadata=metadata)))
    with pytest.raises(reader.PackError, match=re.escape(says)):
        reader.read_pack(tmp_path / "model.twin")
