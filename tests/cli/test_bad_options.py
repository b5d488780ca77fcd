"""Arguments that cannot be used: refused before any work is done."""

import pytest

WHOLE = "is not a valid whole number"
AT_LEAST_1 = "is not in the range x>=1"
BAD = [
    ("--hidden 0", ["'--hidden'", "0 is", "like 128,128"]),
    ("--activation tanh", ["'--activation'", "'tanh'", "'auto', 'relu', 'silu'"]),
    ("--effort lazy", ["'--effort'", "'lazy'", "'quick', 'normal', 'thorough'"]),
    ("--steps 0", ["'--steps'", f"0 {AT_LEAST_1}, nor 'auto'"]),
    ("--twins 0", ["'--twins'", f"0 {AT_LEAST_1}"]),
    ("--pairs x", ["'--pairs'", f"'x' {WHOLE}, nor 'all' or 'neighbors'"]),
    ("--neighbors 0", ["'--neighbors'", f"0 {AT_LEAST_1}"]),
    ("--jobs 0", ["'--jobs'", f"0 {AT_LEAST_1}"]),
    ("--split -1", ["'--split'", "-1 is not in the range x>=0"]),
    ("--seed -1", ["'--seed'", "-1 is not in the range x>=0"]),
    ("--learning-rate x", ["'--learning-rate'", "'x' is not a valid number, nor 'auto'"]),
    ("--weight-decay inf", ["'--weight-decay'", "'inf' is not a finite number"]),
    ("--teachers gp,aunt", ["'--teachers'", "'aunt'", "'boosting', 'gp'", "'auto' or 'none'"]),
    ("--impute mean", ["'--impute'", "'mean'", "is not 'median'"]),
]


@pytest.mark.parametrize(("options", "says"), BAD, ids=[options for options, _ in BAD])
def test_bad_values_for_train(refused, curve_csv, options, says):
    hint = "see twinedge train --help"
    refused("train", curve_csv, "--target", "level", *options.split(), says=[*says, hint])


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("--anchors 0", ["'--anchors'", f"0 {AT_LEAST_1}, nor 'auto' or 'all'"]),
        ("--anchors many", ["'--anchors'", f"'many' {WHOLE}, nor 'auto' or 'all'"]),
        ("--anchors 81", ["81", "more than the 80 training points"]),
        ("--neighbors 0", ["'--neighbors'", f"0 {AT_LEAST_1}"]),
    ],
)
def test_bad_values_for_predict(refused, tiny_run, curve_csv, options, says):
    refused("predict", tiny_run, curve_csv, *options.split(), says=says)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("train", ["DATA.csv", "--dataset"]),
        ("train t.csv --dataset cs", ["t.csv", "--dataset cs", "not both"]),
        ("train t.csv", ["--target is missing", "name or position"]),
        ("train --dataset css", ["'css'", "did you mean 'cs'?"]),
        ("train --dataset tf --split 99", ["split 99", "0 to 24"]),
        ("anchors a b", ["unexpected extra argument", "b", "twinedge anchors --help"]),
        ("train --targt y", ["--targt", "did you mean '--target'?", "twinedge train --help"]),
        ("train t.csv --target", ["--target", "requires an argument", "twinedge train --help"]),
        ("report run --select", ["--select", "requires an argument", "twinedge report --help"]),
        ("budget fit --board", ["--board", "requires", "twinedge budget fit --help"]),
        ("trian", ["'trian'", "twinedge --help"]),
        ("data lst", ["'lst'", "twinedge data --help"]),
        ("data show", ["Missing argument 'NAME'", "twinedge data show --help"]),
        ("predict", ["Missing argument 'FILE'", "twinedge predict --help"]),
        ("evaluate run", ["Missing argument 'DATA.csv'", "twinedge evaluate --help"]),
        ("--bogus", ["--bogus", "twinedge --help"]),
    ],
)
def test_commands_that_make_no_sense(refused, arguments, says):
    refused(*arguments.split(), says=says)


def test_python_is_not_spoken_on_the_command_line(refused, tiny_run, curve_csv, tmp_path):
    (tmp_path / "model.onnx").write_bytes(b"")
    says = ["--backend tflite reads .tflite files, but model.onnx is not one"]
    for command in ("predict", "evaluate"):
        refused(command, "model.onnx", curve_csv, "--backend", "tflite", says=says)


def test_a_training_that_diverges_is_not_kept(refused, curve_csv, tiny, changed):
    wild = changed(tiny, "--learning-rate", "1e9")
    refused(
        *("train", curve_csv, "--target", "level", "-o", "run", *wild),
        says=["diverged", "--learning-rate"],
    )


def test_the_words_are_those_the_estimator_knows():
    from twinedge.cli.train import train
    from twinedge.training.network import ACTIVATIONS
    from twinedge.training.selection import PLANS

    shown = {option.name: option.metavar for option in train.params}
    assert shown["activation"] == "|".join(["auto", *ACTIVATIONS])
    assert shown["effort"] == "|".join(PLANS)
    assert shown["teachers"] == "auto|none|NAME,NAME"
