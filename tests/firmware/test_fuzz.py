"""The fuzzers make what they promise, get past the checks, and find planted faults only."""

import json
import re
import runpy
import shutil
import subprocess
from collections import Counter
from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest

from twinedge.errors import InputError
from twinedge.pack import write_pack

# The kept corpus: a few kilobytes of packs, with and without intervals, that cover everything.
CORPUS = {
    "small.twin": ("some-of-everything", False),
    "least.twin": ("one-anchor-one-feature", False),
    "int16.twin": ("odd-widths-int16", False),
    "lowest.twin": ("lowest-weights-int16", False),
    "neighbors.twin": ("neighbors-of-four-twins", False),
    "all_neighbors.twin": ("more-neighbors-than-anchors", False),
    "scaled.twin": ("some-of-everything", True),
    "scaled_int16.twin": ("odd-widths-int16", True),
    "scaled_relu.twin": ("neighbors-of-four-twins", True),
}

# Packs of several targets, as random_packs.py draws them.
TARGETS = {
    "two.twin": {"outputs": 2, "features": 3, "hidden": (6,), "counts": [4, 2]},
    "eight.twin": {"outputs": 8, "features": 2, "hidden": (7,), "counts": [3], "scaled": True},
    "three.twin": {"outputs": 3, "features": 4, "hidden": (5, 4), "counts": [5, 3], "scaled": True},
    "int16.twin": {"outputs": 2, "features": 2, "hidden": (5,), "counts": [4], "dtype": np.int16},
    "neighbors.twin": {
        "outputs": 2,
        "features": 3,
        "hidden": (6,),
        "counts": [6, 5],
        "neighbors": 2,
        "scaled": True,
    },
    "curves.twin": {
        "outputs": 3,
        "features": 2,
        "hidden": (4,),
        "counts": [3, 1],
        "scaled": True,
        "mapped": True,
        "curved": True,
    },
}

# Sections by the names of FORMAT.md; the last stands for kinds that it does not define.
SECTIONS = (
    *("scaling", "twins", "curve", "anchors", "ids", "metadata"),
    *("intervals", "domain", "schema", "map", "target_curve", "unknown"),
)

# As in firmware_ref/Makefile; libFuzzer itself comes in when its program is linked.
CHECKED = (
    "-O2",
    "-fsanitize=fuzzer-no-link,address,undefined",
    "-fno-sanitize=null,object-size,pointer-overflow",
    "-fno-sanitize-recover=all",
    "-fno-sanitize-coverage=trace-cmp",
)

# Planted faults: file, original text and faulty text.
FAULTS = {
    "steps-of-a-checksum-that-are-no-words": (
        "twin_open.c",
        "(twini_size)bytes & ~(twini_size)3",
        "(twini_size)bytes",
    ),
    "weights-of-the-output-that-are-too-large": (
        "twin_faults.h",
        "twini_overflows(2 * twini_sum(at, end, 1, step),",
        "twini_overflows(twini_sum(at, end, 1, step),",
    ),
    "scratch-for-an-aligned-address-only": (
        "twin_predict.c",
        "(at - start) + (TWIN_HOST ? kernel->align : 8) - 1;",
        "(at - start);",
    ),
    "neighbors-that-change-on-the-way": (
        "twin_predict.c",
        "twini_chosen(run->neighbors,",
        "twini_chosen(model->neighbors,",
    ),
    "a-kernel-that-changes-on-the-way": (
        "twin_predict.c",
        "const twin_kernel *kernel = run->kernel;",
        "const twin_kernel *kernel = run->model->kernel;",
    ),
    "memory-for-an-aligned-address-only": (
        "twin_prepare.c",
        "    walk.at += TWIN_ROOMY - 1;\n",
        "",
    ),
    "weights-of-the-difficulty-that-are-too-large": (
        "twin_faults.h",
        "twini_overflows(twini_sum(at + 2, end + 2, 1, step), bias)",
        "twini_overflows(0, bias)",
    ),
    "a-coverage-of-nothing": ("twin_open.c", "thousandths - 1u < 999 && ", ""),
    "a-watch-of-an-impossible-level": ("twin_watch.c", " || words[2] > 999", ""),
    "more-points-learnt-than-there-is-room-for": (
        "twin_store.c",
        "if (!status && store->count == store->most)",
        "if (!status && store->count > store->most)",
    ),
    "neighbors-that-are-not-the-nearest": (
        "twin_nearest.c",
        "heap[below + 1] > heap[below]",
        "heap[below + 1] < heap[below]",
    ),
    "infinity-that-is-refused": (
        "twin_edge.c",
        "bits << 1 > 0xFF000000u",
        "bits << 1 >= 0xFF000000u",
    ),
    "a-map-that-does-not-limit": ("twin_map.c", "(int16_t)twini_sat(", "(int16_t)("),
    "a-map-without-room": (
        "twin_predict.c",
        "if (model->map && at < width)",
        "if (0 && at < width)",
    ),
    "knots-beyond-the-last": ("twin_faults.h", "if (knot == end)", "if (knot > end)"),
    "a-target-curve-beyond-its-end": (
        "twin_target.c",
        "if (bin >= twini_u16(",
        "if (bin > twini_u16(",
    ),
    "one-kernel-that-does-not-limit": ("kernels/plain.h", "twini_sat(twini_rsh(", "(twini_rsh("),
}

# The same for packs of several targets.
TARGETS_FAULTS = {
    "sums-of-the-first-for-all": ("twin_targets.c", "run->sums[target]", "run->sums[0]"),
    "a-target-that-is-not-there": (
        "twin_targets.c",
        "if (target >= twini_targets(model))",
        "if (target > twini_targets(model))",
    ),
    "true-values-of-the-first-for-all": (
        "twin_store.c",
        "target = targets[i];",
        "target = *targets;",
    ),
}

# For stores.
STORE_FAULTS = {
    "more-points-than-there-is-memory-for": (
        "twin_store.c",
        "if (store->count == store->most) {",
        "if (store->count > store->most) {",
    ),
    "a-block-that-is-full": (
        "twin_journal.c",
        "if ((extent & 65535u) == journal->slots)",
        "if ((extent & 65535u) > journal->slots)",
    ),
    "numbers-that-do-not-ascend": ("twin_journal.c", "whole && number >= journal->least", "whole"),
    "checksums-of-another-generation": (
        "twin_journal.c",
        "twini_slot_sum(journal, slot, journal->generation + other, &end)",
        "twini_slot_sum(journal, slot, journal->generation, &end)",
    ),
    "points-that-are-forgotten-in-ram-only": (
        "twin_store.c",
        "if (twini_forgets(range, number, twini_word(record + TIME)))\n        return 0;",
        "if (twini_forgets(range, number, twini_word(record + TIME)))\n        return 1;",
    ),
}

# And for slots, with the packs that come as updates.
SLOT_FAULTS = {
    "a-bank-that-is-not-there": (
        "twin_slots.c",
        "        state->current &= 1; /* whatever a journal says */\n",
        "",
    ),
    "an-update-larger-than-its-bank": (
        "twin_slots.c",
        "if (size > slots->banks->block_size - slots->written)",
        "if (size > slots->banks->block_size)",
    ),
    "a-start-that-is-not-counted": (
        "twin_slots.c",
        "state->trial--;",
        "state->trial -= state->trial > 2;",
    ),
    "a-section-beyond-the-end": (
        "twin_release.c",
        "found->length > size - offset",
        "found->length > size",
    ),
}


@pytest.fixture(scope="module")
def kept(native):
    return native.FIRMWARE / "test" / "corpus"


@pytest.fixture(scope="module")
def kept_targets(native):
    return native.FIRMWARE / "test" / "corpus_targets"


@pytest.fixture(scope="module")
def kept_stores(native):
    return native.FIRMWARE / "test" / "corpus_store"


@pytest.fixture(scope="module")
def kept_slots(native):
    return native.FIRMWARE / "test" / "corpus_slots"


@pytest.fixture(scope="module")
def objects(native):
    """Objects of the runtime, the fuzzers and their driver, by name; `make fuzz` links them."""
    native.run("make", "--silent", "-C", native.FIRMWARE, "watched")
    sources = [*native.SOURCES, *(native.FIRMWARE / "test").glob("fuzz_*.c")]
    built = native.FIRMWARE / "build" / "watched"
    paths = [built / source.relative_to(native.FIRMWARE).with_suffix(".o") for source in sources]
    return {path.stem: path for path in paths}


@pytest.fixture(scope="module")
def fuzzers(native, objects, tmp_path_factory):
    """Link with libFuzzer, once: ``fuzzers(name)``."""
    folder = tmp_path_factory.mktemp("fuzzer")
    return cache(
        lambda name: link(native, objects, folder / name, "fuzzer,address,undefined", {name})
    )


def link(native, objects, program, checked, drivers):
    parts = [
        path for name, path in objects.items() if not name.startswith("fuzz_") or name in drivers
    ]
    native.run("clang", f"-fsanitize={checked}", *parts, "-o", program)
    return program


def link_alone(native, objects, program, fuzzer="fuzz_open"):
    return link(native, objects, program, "address,undefined", {fuzzer, "fuzz_alone"})


def run_alone(program, kept, inputs, seed=1):
    """Fuzz without libFuzzer: the same inputs each time."""
    command = [program, str(seed), str(inputs), "0", *sorted(kept.iterdir())]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_corpus_is_what_these_packs_are(kept, packs, cases):
    assert {path.name for path in kept.iterdir()} == set(CORPUS)
    for name, (case, scaled) in CORPUS.items():
        pack = cases.draw(packs, case, scaled=scaled)
        assert (kept / name).read_bytes() == write_pack(pack, metadata=False)


def test_the_corpus_of_targets_is_what_these_packs_are(kept_targets, packs):
    assert {path.name for path in kept_targets.iterdir()} == set(TARGETS)
    for number, (name, given) in enumerate(TARGETS.items()):
        pack = packs.random_pack(np.random.default_rng(number), **given)
        assert (kept_targets / name).read_bytes() == write_pack(pack, metadata=False)


def test_stores_belong_to_this_pack(native, packs, cases):
    pack = cases.draw(packs, "some-of-everything", scaled=True)
    pack = replace(pack, intervals=replace(pack.intervals, trust=40000))
    text = (native.FIRMWARE / "test" / "fuzz_store_pack.h").read_text()
    found = bytes(int(number, 16) for number in re.findall(r"0x(\w\w)", text))
    assert found == write_pack(pack, metadata=False)


def fuzz(fuzzer, kept, folder, *limits):
    """Fuzz from a copy of the corpus; return how much code was reached at first and in the end."""
    shutil.copytree(kept, folder / "corpus")
    done = subprocess.run(
        [fuzzer, "-seed=1", "-max_len=8192", "-timeout=10", *limits, folder / "corpus"],
        cwd=folder,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    assert done.returncode == 0, done.stderr[-5000:]
    seen = [int(number) for number in re.findall(r"cov: (\d+)", done.stderr)]
    return seen[0], seen[-1]


@pytest.mark.slow  # as are all that compile it; `make fuzz` is the quick check
@pytest.mark.parametrize(
    ("name", "corpus", "runs", "reached"),
    [
        ("fuzz_open", "kept", 5000, 200),
        ("fuzz_targets", "kept_targets", 3000, 200),
        ("fuzz_store", "kept_stores", 3000, 100),
        ("fuzz_slots", "kept_slots", 3000, 100),
    ],
)
def test_some_fuzzing_finds_nothing(request, fuzzers, tmp_path, name, corpus, runs, reached):
    kept = request.getfixturevalue(corpus)
    start, end = fuzz(fuzzers(name), kept, tmp_path, f"-runs={runs}")
    # Valid packs are evaluated from the start; damaged ones reach new checks.
    assert end > start > reached


@pytest.mark.slow
def test_a_minute_of_fuzzing_finds_nothing(fuzzers, kept, tmp_path):
    fuzz(fuzzers("fuzz_open"), kept, tmp_path, "-max_total_time=60")


@pytest.mark.slow
def test_the_fuzzer_makes_packs_of_all_kinds(native, objects, kept, tmp_path):
    inputs = 20_000
    done = run_alone(link_alone(native, objects, tmp_path / "fuzz_alone"), kept, inputs)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    statuses = {native.name_of(-n): count for n, count in enumerate(seen["statuses"]) if count}
    assert seen["executions"] == sum(statuses.values()) == inputs
    # There are some of every kind of fault behind the checksums.
    behind_checksums = {"truncated", "length", "header", "section", "padding", "value", "overflow"}
    assert set(statuses) == {"ok"} | behind_checksums
    counts = seen["counts"]
    assert counts["repaired"] == sum(statuses[name] for name in ("padding", "value", "overflow"))
    assert counts["sound"] == statuses["ok"] + counts["repaired"] > inputs / 3
    assert counts["scaled"] > counts["sound"] / 3
    assert sum(counts[f"version_{one}"] for one in (1, 2, 3)) == counts["sound"]
    kinds = (*(f"section_{name}" for name in SECTIONS), "layers_1", "layers_2", "layers_3")
    for kind in (*kinds, "version_1", "silu", "wide", "several_twins", "neighbors"):
        assert counts[kind] > counts["sound"] / 10, kind
    assert max(counts["silu"], counts["wide"], counts["scaled"]) < 0.7 * counts["sound"]
    # All kernels that this processor has evaluated them, prepared or not, and all else was done.
    assert seen["kernels"]["portable"] > 0.9 * counts["sound"]
    assert len(seen["kernels"]) > 1
    assert all(count > 300 for count in seen["kernels"].values())
    assert all(count > 200 for name, count in seen["prepared"].items() if name != "portable")
    for name in ("stepped", "disturbed", "filled_queries", "outside_queries", "refused_queries"):
        assert counts[name] > 500, name
    for name in ("watched", "learnt", "adapted"):
        assert counts[name] > 100, name


@pytest.mark.slow
def test_some_packs_are_as_large_as_the_format_allows(native, objects, kept, tmp_path):
    program = link_alone(native, objects, tmp_path / "fuzz_alone")
    largest = Counter()
    for number in range(1, 13):
        done = run_alone(program, kept, 1, seed=8192 * number)  # as fuzz_alone.c has it
        assert done.returncode == 0, done.stderr
        largest |= Counter(json.loads(done.stdout)["largest"])
    del largest["bytes"]
    assert largest == {"features": 1024, "width": 1024, "anchors": 4096, "twins": 256}


@pytest.mark.slow
def test_the_fuzzer_of_targets_predicts_and_learns_all(native, objects, kept_targets, tmp_path):
    inputs = 10_000
    program = link_alone(native, objects, tmp_path / "fuzz_alone", "fuzz_targets")
    done = run_alone(program, kept_targets, inputs)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen["executions"] == sum(seen["statuses"]) == inputs
    counts = seen["counts"]
    assert counts["sound"] > counts["several"] > inputs / 15
    for kind in ("scaled", "mapped", "curved", "silu", "wide", "neighbors"):
        assert counts[kind] > counts["sound"] / 10, kind
    for name in ("stepped", "disturbed", "filled_queries", "outside_queries", "refused_queries"):
        assert counts[name] > 200, name
    for name in ("learnt", "adapted"):
        assert counts[name] > 100, name
    assert len(seen["kernels"]) > 1


@pytest.mark.slow
def test_the_fuzzer_of_stores_reads_learns_and_forgets(native, objects, kept_stores, tmp_path):
    program = link_alone(native, objects, tmp_path / "fuzz_alone", "fuzz_store")
    done = run_alone(program, kept_stores, 5000)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    statuses = {native.name_of(-n): count for n, count in enumerate(seen["statuses"]) if count}
    assert seen["executions"] == sum(statuses.values()) == 5000
    assert statuses["ok"] > 2500
    assert set(statuses) == {"ok", "other", "full", "storage"}
    for name, least in (("points", 5000), ("damaged", 1000), ("learnt", 3000)):
        assert seen["counts"][name] > least
    for name, least in (("forgotten", 2000), ("failed", 100), ("adapted", 10_000)):
        assert seen["counts"][name] > least


@pytest.mark.slow
def test_the_fuzzer_of_slots_updates_confirms_and_undoes(native, objects, kept_slots, tmp_path):
    program = link_alone(native, objects, tmp_path / "fuzz_alone", "fuzz_slots")
    done = run_alone(program, kept_slots, 5000)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen["executions"] == 5000
    statuses = {native.name_of(-n): count for n, count in enumerate(seen["statuses"]) if count}
    kinds = {"unsigned", "signature", "identity", "untested", "self_test", "schema", "counter"}
    assert kinds | {"ok", "storage", "other", "trial", "early", "body_crc"} <= set(statuses)
    for name, least in (("signed_packs", 3000), ("identities", 3000), ("accepted", 2000)):
        assert seen["counts"][name] > least
    for name, least in (("tried", 1000), ("confirmed", 100), ("undone", 500), ("failed", 1000)):
        assert seen["counts"][name] > least


@pytest.mark.slow
@pytest.mark.parametrize("fault", [*FAULTS, *TARGETS_FAULTS, *STORE_FAULTS, *SLOT_FAULTS])
def test_a_planted_fault_is_found(native, objects, kept, tmp_path, fault):
    name, right, wrong = (FAULTS | TARGETS_FAULTS | STORE_FAULTS | SLOT_FAULTS)[fault]
    tree = shutil.copytree(native.FIRMWARE / "src", tmp_path / "src")
    text = (tree / name).read_text()
    assert text.count(right) == 1, "the runtime was rewritten: this fault needs another place"
    (tree / name).write_text(text.replace(right, wrong))
    unit = tree / {
        "kernels/plain.h": "kernels/kernel_portable.c",
        "twin_faults.h": "twin_open.c",
    }.get(name, name)
    faulty = tmp_path / f"{unit.stem}.o"
    native.compile_c(faulty, *CHECKED, "-c", compiler="clang", sources=[unit])
    parts = {**objects, faulty.stem: faulty}
    kinds = {"open": FAULTS, "targets": TARGETS_FAULTS, "store": STORE_FAULTS, "slots": SLOT_FAULTS}
    (kind,) = (kind for kind, those in kinds.items() if fault in those)
    corpus = kept if kind == "open" else kept.with_name(f"corpus_{kind}")
    program = link_alone(native, parts, tmp_path / "fuzz_alone", f"fuzz_{kind}")
    done = run_alone(program, corpus, 5000)
    assert done.returncode != 0
    found = "does not hold", "runtime error", "AddressSanitizer"
    assert any(words in done.stderr for words in found), done.stderr


# ---- what benchmarks/fuzz.py records


@pytest.fixture(scope="module")
def benchmark(native):
    folder = native.FIRMWARE.parent / "benchmarks"
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        return SimpleNamespace(**runpy.run_path(str(folder / "fuzz.py")))


def part_of(seed, **more):
    found = {"seeds": [seed], "seconds": 2, "executions": 100, "sound": 60, "findings": 0}
    more = {"kernels": {"portable": 50}, "largest": {"width": 3 + seed}, **more}
    machine = {"processor": "any", "date": "2026-01-01"}
    return {"subject": "packs", "machine": machine, "sources": "a", "found": found | more}


def test_parts_of_one_machine_add_up(benchmark):
    merged = benchmark.merge([part_of(1), part_of(2, findings=1)])["packs"]["any"]
    assert (merged["executions"], merged["sound"], merged["findings"]) == (200, 120, 1)
    assert merged["kernels"] == {"portable": 100}
    assert merged["largest"] == {"width": 5}
    assert (merged["seeds"], merged["executions_per_second"]) == ([1, 2], 50)


def test_parts_that_do_not_add_up_are_refused(benchmark):
    with pytest.raises(InputError, match="a seed counts once"):
        benchmark.merge([part_of(1), part_of(1)])
    with pytest.raises(InputError, match="different versions of the runtime"):
        benchmark.merge([part_of(1), part_of(2) | {"sources": "b"}])


def test_the_page_has_what_was_recorded(benchmark):
    recorded = json.loads(benchmark.RESULTS.read_text())
    assert benchmark.tables(recorded) in benchmark.PAGE.read_text()
    assert {*recorded} - {"machine"} == {*benchmark.SUBJECTS}
    found = [one["findings"] for name in benchmark.FUZZERS for one in recorded[name].values()]
    assert found
    assert not any(found)
