import threading
from dataclasses import dataclass, field

import numpy as np
import pytest

from twinedge.progress import Progress
from twinedge.training import batches, network, trainer
from twinedge.training.batches import Setting
from twinedge.training.tasks import PairTask
from twinedge.training.trainer import Checkpoint, Interrupted, NetworkJob, _stacks, train

STAGE = "final round"
CHUNK = 50  # and the validations every 100 of 2000 steps
LOOK = 100


@pytest.fixture(autouse=True)
def _short_chunks(monkeypatch):
    for module in (batches, trainer):
        monkeypatch.setattr(module, "CHUNK", CHUNK)


@dataclass(frozen=True)
class Scripted(PairTask):
    """Validation errors as a test wants them: one for each look, 1 after the last."""

    script: list = field(default_factory=list)
    seen: list = field(default_factory=list)

    def score(self, architecture, stack, jobs):
        self.seen.append(stack.copy())
        return np.full(len(jobs), self.script[len(self.seen) - 1 : len(self.seen)] or 1.0, float)


def task(kind=PairTask, **more):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(50, 2)).astype(np.float32)
    return kind(x, x[:, 0] + x[:, 1], 40, 1.0, **{"hidden": (4,), **more})


def job(steps=2000, activation="silu", rate=0.01, decay=0.01, seed=0, fold=None):
    return NetworkJob(activation, Setting(rate, decay), steps, seed, fold)


class Counter(Progress):
    """Counts the steps reported."""

    def __init__(self):
        self.planned = self.steps = 0

    def stage(self, title, steps, *, of):
        self.planned += steps

    def advance(self, steps, loss, score):
        self.steps += steps


def run(mine, jobs, progress=None, checkpoint=None, threads=2):
    return train(
        mine,
        jobs,
        stage=STAGE,
        seed=5,
        progress=progress or Progress(),
        checkpoint=checkpoint or Checkpoint(None),
        threads=threads,
    )


@pytest.fixture
def interrupt(monkeypatch):
    """Make Ctrl-C arrive in the main thread during a chunk, after this many chunks."""
    advance, wait = batches.Stack.advance, trainer.wait

    def arrange(chunks):
        reached, stopped = threading.Event(), threading.Event()
        done = []

        def counted(self):
            done.append(self)
            if len(done) == chunks:
                reached.set()
                stopped.wait(300)
            return advance(self)

        def pressed(futures, timeout):
            assert reached.wait(300)
            threading.Timer(0.1, stopped.set).start()
            raise KeyboardInterrupt

        monkeypatch.setattr(batches.Stack, "advance", counted)
        monkeypatch.setattr(trainer, "wait", pressed)

    def undo():
        monkeypatch.setattr(batches.Stack, "advance", advance)
        monkeypatch.setattr(trainer, "wait", wait)

    arrange.undo = undo
    return arrange


def test_networks_come_back_in_the_order_of_their_jobs_with_their_own_error():
    mine = task()
    jobs = [
        job(200, seed=3),
        job(400, "relu", seed=4),
        job(200, "relu", rate=0.003),
        job(400, seed=5),
        job(200, decay=0.3),
    ]
    results = run(mine, jobs)
    assert [one.job for one in results] == jobs
    for one in results:
        architecture = mine.architecture(one.job)
        (score,) = mine.score(architecture, one.weights[None], [one.job])
        assert one.score == pytest.approx(score, rel=1e-4)


@pytest.mark.parametrize("threads", [1, 3])
def test_every_job_is_in_one_stack_of_networks_alike_and_none_is_longer_than_a_threads_share(
    threads,
):
    jobs = [
        job(steps, activation, rate, decay)
        for decay in (0.1, 0.2, 0.3)
        for activation in ("relu", "silu")
        for rate in (0.01, 0.003)
        for steps in (100, 200)
    ]
    stacks = _stacks(jobs, threads)
    assert sorted(i for stack in stacks for i in stack) == list(range(len(jobs)))
    assert max(map(len, stacks)) <= -(-len(jobs) // threads)
    for stack in stacks:
        alike = {(jobs[i].steps, jobs[i].activation, jobs[i].setting.learning_rate) for i in stack}
        assert len(alike) == 1
    lengths = [jobs[stack[0]].steps for stack in stacks]
    assert lengths == sorted(lengths, reverse=True)  # longest first


def test_a_network_is_kept_as_it_ended_with_its_best_look_beside():
    mine = task(Scripted, script=[1.0] * 5 + [0.1] + [0.95] * 3)
    (one,) = run(mine, [job()])
    np.testing.assert_array_equal(one.weights, mine.seen[-1][0])
    np.testing.assert_array_equal(one.best, mine.seen[5][0])
    assert one.score == 1.0
    assert len(mine.seen) == 2000 // LOOK


def test_a_network_that_diverged_is_the_worst_not_the_best():
    mine = task(Scripted, script=[1.0, 0.5, np.nan, 0.8] + [np.nan] * 16)
    (one,) = run(mine, [job()])
    np.testing.assert_array_equal(one.weights, mine.seen[1][0])
    np.testing.assert_array_equal(one.best, one.weights)
    assert one.score == 0.5


def test_all_steps_are_reported():
    counter = Counter()
    run(task(), [job(120), job(330, "relu")], counter)
    assert counter.steps == counter.planned == 450


def test_ctrl_c_ends_with_the_best_weights_so_far(interrupt):
    mine = task()
    interrupt(7)
    with pytest.raises(Interrupted) as caught:
        run(mine, [job(100_000)])
    (one,) = caught.value.results
    (untrained,) = mine.score(mine.architecture(job()), np.zeros_like(one.weights)[None], [job()])
    (score,) = mine.score(mine.architecture(job()), one.weights[None], [job()])
    assert one.score == score < untrained


def test_a_training_resumed_ends_with_the_bits_of_one_never_stopped(interrupt, tmp_path):
    jobs = [job(1000), job(1000, "relu", decay=0.1), job(600, seed=2)]
    whole = run(task(), jobs)
    interrupt(9)
    with pytest.raises(Interrupted):
        run(task(), jobs, checkpoint=Checkpoint(tmp_path / "c", {}))
    interrupt.undo()
    counter = Counter()
    resumed = run(task(), jobs, counter, Checkpoint(tmp_path / "c", {}, resume=True))
    assert 0 < counter.steps < 2600 - 8 * CHUNK
    for one, other in zip(resumed, whole, strict=True):
        np.testing.assert_array_equal(one.weights, other.weights)
        np.testing.assert_array_equal(one.best, other.best)
        assert one.score == other.score


def test_the_look_taken_at_ctrl_c_is_unknown_to_the_training_that_goes_on(interrupt, tmp_path):
    # Stopped at step 350, between two validations, and by luck far better than ever after.
    lucky = task(Scripted, script=[1.0] * 3 + [0.1])
    interrupt(7)
    with pytest.raises(Interrupted) as caught:
        run(lucky, [job()], checkpoint=Checkpoint(tmp_path / "c", {}))
    assert caught.value.results[0].score == 0.1
    interrupt.undo()
    (resumed,) = run(
        task(Scripted), [job()], checkpoint=Checkpoint(tmp_path / "c", {}, resume=True)
    )
    (whole,) = run(task(Scripted), [job()])
    np.testing.assert_array_equal(resumed.weights, whole.weights)
    assert resumed.score == whole.score == 1.0


def test_a_finished_round_is_not_trained_again(tmp_path):
    (before,) = run(task(), [job(500)], checkpoint=Checkpoint(tmp_path / "c", {}))
    counter = Counter()
    (after,) = run(task(), [job(500)], counter, Checkpoint(tmp_path / "c", {}, resume=True))
    assert counter.steps == 0
    np.testing.assert_array_equal(after.weights, before.weights)
    assert after.score == before.score


def test_a_checkpoint_that_cannot_be_written_stops_the_training_at_once(monkeypatch):
    class FullDisk(Checkpoint):
        def save(self, stage, stacks):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(trainer, "INTERVAL", 0.01)
    counter = Counter()
    with pytest.raises(OSError, match="No space"):
        run(task(), [job(200_000)], counter, FullDisk(None))
    assert counter.steps < 100_000


def test_a_stack_that_fails_stops_the_others_soon():
    class Broken(PairTask):
        def score(self, architecture, stack, jobs):
            if architecture.activation == "silu":
                raise ZeroDivisionError
            return super().score(architecture, stack, jobs)

    counter = Counter()
    with pytest.raises(ZeroDivisionError):
        run(task(Broken), [job(20_000, "relu"), job(20_000, "silu")], counter)
    assert counter.steps < 10_000


def test_networks_are_the_same_on_any_number_of_threads():
    jobs = [job(300, seed=seed) for seed in range(3)]
    together, apart, more = (run(task(), jobs, threads=threads) for threads in (1, 3, 4))
    for one, other in zip(apart, more, strict=True):
        np.testing.assert_array_equal(one.weights, other.weights)
        assert one.score == other.score
    # A stack of three has its last, incomplete vector elsewhere, which may round differently.
    for one, other in zip(together, apart, strict=True):
        np.testing.assert_allclose(one.weights, other.weights, atol=1e-4)
        assert one.score == pytest.approx(other.score, rel=1e-4)


def test_saves_while_the_threads_go_on_are_whole_states(monkeypatch, tmp_path):
    monkeypatch.setattr(trainer, "INTERVAL", 0.02)
    whole = run(task(), [job(2000), job(2000, "relu")])
    states = []

    class Kept(Checkpoint):
        def save(self, stage, stacks):
            states.append(stacks)

    run(task(), [job(2000), job(2000, "relu")], checkpoint=Kept(None))
    middle = states[len(states) // 2]
    Checkpoint(tmp_path / "c", {}).save(STAGE, middle)
    again = Checkpoint(tmp_path / "c", {}, resume=True)
    resumed = run(task(), [job(2000), job(2000, "relu")], checkpoint=again)
    for one, other in zip(resumed, whole, strict=True):
        np.testing.assert_array_equal(one.weights, other.weights)


def largest_sum(mine, weights):
    """Return the largest sum of a hidden layer at pairs of the training rows."""
    x = mine.x[: mine.train]
    h = np.concatenate([np.repeat(x, len(x), axis=0), np.tile(x, (len(x), 1))], axis=1)
    found = 0.0
    for kernel, bias in mine.architecture(job()).parts(weights)[:-1]:
        h = h @ kernel + bias
        found = max(found, np.abs(h).max())
        h = h / (1 + np.exp(-h))
    return found


def test_sums_are_limited_at_every_look_and_the_networks_still_learn(monkeypatch):
    mine = task(Scripted, hidden=(6, 6))
    jobs = [job(rate=0.1, decay=0.0)]
    (free,) = run(mine, jobs)
    assert largest_sum(mine, free.weights) > 4
    monkeypatch.setattr(network, "LARGEST_SUM", 3.0)
    limited = task(Scripted, hidden=(6, 6))
    (one,) = run(limited, jobs)
    assert len(limited.seen) == 2000 // LOOK
    assert max(largest_sum(mine, stack[0]) for stack in limited.seen) < 3.01
    plain = task(hidden=(6, 6))
    score = plain.score(plain.architecture(job()), np.stack([one.weights, free.weights]), 2 * jobs)
    assert score[0] < max(2 * score[1], 0.05)
