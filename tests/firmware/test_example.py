"""The example of forty lines predicts."""

import numpy as np
import pytest

from twinedge.pack import write_pack
from twinedge.runtime import reference


@pytest.fixture(scope="module")
def example(native, objects, tmp_path_factory):
    program = tmp_path_factory.mktemp("example") / "example"
    sources = [*objects(*native.SANITIZED), native.FIRMWARE / "example" / "main.c"]
    return native.compile_c(program, "-DTWIN_HOST=0", *native.SANITIZED, sources=sources)


def test_the_example_predicts(example, native, small, tmp_path):
    (tmp_path / "model.twin").write_bytes(write_pack(small))
    x = [0.5, -1.25]
    output = native.run(example, tmp_path / "model.twin", *x).split()
    expected = reference.evaluate(small, [x])
    mean, spread, *ends = (np.float32(word) for word in output)
    assert [mean, spread] == [expected.mean[0], expected.spread[0]]
    assert np.isnan(ends).all()


def test_the_example_prints_the_interval_of_a_pack_that_has_them(example, native, packs, tmp_path):
    pack = packs.random_pack(np.random.default_rng(3), features=2, scaled=True)
    (tmp_path / "model.twin").write_bytes(write_pack(pack))
    x = [0.5, -1.25]
    output = native.run(example, tmp_path / "model.twin", *x).split()
    found = reference.evaluate(pack, [x])
    bounds = reference.bounds(pack, found, pack.intervals.usual_level)
    right = [found.mean[0], found.spread[0], bounds.low[0], bounds.high[0]]
    assert [np.float32(word) for word in output] == right


def test_the_example_predicts_after_a_self_test(example, native, small, releases, tmp_path):
    for name, data in (("older", write_pack(small)), ("tested", releases.released(small))):
        (tmp_path / name).write_bytes(data)
    older, tested = (native.run(example, tmp_path / name, 1, 2) for name in ("older", "tested"))
    assert older == tested


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ([], "missing"),
        (["nothing.twin"], "missing"),
        (["model.twin", "1"], "query"),
        (["model.twin", "1", "nan"], "not a number"),
        (["broken.twin", "1", "2"], "checksum of the content"),
        (["unsound.twin", "1", "2"], "does not answer as it must"),
    ],
    ids=["no file", "no such file", "too few features", "not a number", "damaged", "unsound"],
)
def test_the_example_says_what_is_wrong(
    native, example, small, tmp_path, releases, words, complaint
):
    data = write_pack(small)
    test = releases.self_test(small)
    test.answers["mean"][-1] += 1
    (tmp_path / "unsound.twin").write_bytes(releases.released(small, test=test))
    (tmp_path / "model.twin").write_bytes(data)
    (tmp_path / "broken.twin").write_bytes(data[:-1] + b"\1")
    done = native.attempt(example, *words, cwd=tmp_path)
    assert done.returncode == 1
    assert complaint in done.stderr


def test_a_query_that_is_refused_does_not_stop_the_next_one(native, example, small, tmp_path):
    (tmp_path / "model.twin").write_bytes(write_pack(small))
    queries = np.array([(np.nan, 0), (1e30, -np.inf), (0.5, np.nan), (0.5, -1.25)], np.float32)
    done = native.attempt(example, tmp_path / "model.twin", *queries.ravel())
    assert done.returncode == 1
    assert done.stderr.count("not a number") == len(done.stderr.splitlines()) == 2
    found = reference.evaluate(small, queries[[1, 3]])
    means = [np.float32(line.split()[0]) for line in done.stdout.splitlines()]
    assert means == found.mean.tolist()


def test_it_has_about_forty_lines(native):
    assert len((native.FIRMWARE / "example" / "main.c").read_text().splitlines()) <= 44
