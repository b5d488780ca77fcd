"""What the estimators do to the process that imports them: nothing, until a training begins."""

import json
import os
import subprocess
import sys

import pytest

from twinedge import AnnRegressor
from twinedge.errors import InputError
from twinedge.training.parameters import jobs_of

# scikit-learn and TensorFlow set variables of their own, which do not count.
START = """
import json, os, sys
import sklearn
before, seen = dict(os.environ), []
"""
TRAIN = """
import numpy as np
from twinedge import TwinRegressor
X = np.linspace(0, 1, 30)[:, None]
setting = dict(activation="relu", learning_rate=0.01, weight_decay=0.01, steps=20)
TwinRegressor(hidden=4, intervals=False, random_state=0, **setting).fit(X, X[:, 0])
"""
NOTE = """
import tensorflow as tf
threads = tf.config.threading
seen.append([
    {key: value for key, value in os.environ.items() if before.get(key) != value},
    threads.get_intra_op_parallelism_threads(),
    threads.get_inter_op_parallelism_threads(),
])
"""
NOTE_LOADED = """
seen.append([os.environ == before, "tensorflow" in sys.modules])
"""
THREE_THREADS = "tf.config.threading.set_intra_op_parallelism_threads(3)\n"


@pytest.fixture
def python():
    """Run code in a process without variables of TensorFlow; return what it saw."""
    bare = {key: value for key, value in os.environ.items() if not key.startswith("TF_")}

    def run(*code):
        command = [sys.executable, "-c", "".join([*code, "\nprint(json.dumps(seen))"])]
        done = subprocess.run(command, env=bare, capture_output=True, text=True)
        assert not done.returncode, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    return run


def test_importing_changes_no_variable_and_loads_no_tensorflow(python):
    found = python(
        START, "import twinedge\n", NOTE_LOADED, "import twinedge.estimators\n", NOTE_LOADED
    )
    assert found == [[True, False], [True, False]]


@pytest.mark.slow
def test_a_training_sets_up_a_tensorflow_of_its_own(python):
    ((changed, intra, inter),) = python(START, TRAIN, NOTE)
    assert changed["TF_ENABLE_ONEDNN_OPTS"] == "0"
    assert changed["TF_CPP_MIN_LOG_LEVEL"] == "3"
    assert intra == 1
    assert inter >= 1


@pytest.mark.slow
def test_importing_and_training_leave_a_tensorflow_alone_that_was_there_before(python):
    imports = ["import tensorflow as tf\n", START, "import twinedge.estimators\n", NOTE]
    imported, (changed, intra, inter) = python(*imports, THREE_THREADS, TRAIN, NOTE)
    assert imported == [{}, 0, 0]
    assert not [key for key in changed if key.startswith("TF_")]
    assert (intra, inter) == (3, 0)


@pytest.mark.slow
def test_a_training_leaves_a_tensorflow_alone_that_came_after_twinedge(python):
    imports = ["import twinedge.estimators\nimport tensorflow as tf\n", THREE_THREADS, START]
    ((changed, intra, inter),) = python(*imports, TRAIN, NOTE)
    assert not [key for key in changed if key.startswith("TF_")]
    assert (intra, inter) == (3, 0)


def test_n_jobs_means_what_it_means_in_scikit_learn():
    from joblib import cpu_count, parallel_config

    assert [jobs_of(n) for n in (None, 1, 3, -1)] == [1, 1, 3, cpu_count()]
    with parallel_config(backend="threading", n_jobs=2):
        assert jobs_of(None) == 2
    for wrong in (0, True, 1.5, "all"):
        with pytest.raises(InputError, match="n_jobs="):
            jobs_of(wrong)


def test_n_jobs_decides_how_many_threads_train(tiny, curve, monkeypatch):
    from twinedge.training import trainer

    seen = []
    pool = trainer.ThreadPoolExecutor

    def counted(threads):
        seen.append(threads)
        return pool(threads)

    monkeypatch.setattr(trainer, "ThreadPoolExecutor", counted)
    models = [AnnRegressor(**tiny | {"steps": 40}, n_jobs=n).fit(*curve) for n in (None, 3)]
    assert seen == [1, 3]
    assert (models[0].weights_ == models[1].weights_).all()
