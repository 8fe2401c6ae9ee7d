"""A history on a device, here JAX's CPU: the estimates, moments and choices of the one that numba computes."""

from __future__ import annotations

import numpy as np
import pytest

import randomist as rd
from randomist.errors import MediatorError, ParameterError

pytest.importorskip("jax", reason="a history on a device needs JAX")

from randomist.histories import device as on_device
from randomist.histories import device_columns, device_nodes

RNG = np.random.default_rng(3)
UNEVEN = rd.Finite(rd.Gaussian(np.array([[0.0, 3.0], [0.1, 2.0], [-0.2, 3.5], [0.05, 3.1]]), np.array([0.3, 1.1])))
STDS = rd.Finite(rd.Gaussian([[0.0, 3.0], [0.1, 2.0], [-0.2, 3.5]], [[0.3, 1.1], [0.5, 1.0], [0.31, 1.3]]))
FAR = rd.Finite(rd.Gaussian([0.0, 1.0, 2.0, 2.95, 3.0], [0.1, 0.1, 0.1, 2.0, 0.1]))  # log-densities down to -10⁴
LINE = rd.Finite.grid(rd.Gaussian(std=0.15), low=-1, high=1, points=40)
BOXED = rd.Finite(
    rd.TruncatedGaussian(
        RNG.normal(size=(12, 2)) * [1, 30], np.exp(RNG.normal(size=(12, 2))) * [1, 10], [-1, -20], [1, 20]
    )
)
ACTIONS = rd.Finite(rd.Categorical([[0.7, 0.2, 0.1], [0.1, 0.2, 0.7], [0.3, 0.3, 0.4]]))
UNIFORM = rd.Finite(rd.Uniform(low=[0.0, 0.5, -1.0], high=[1.0, 2.0, 3.0]))
MIXED = rd.Finite([rd.Gaussian(0.0, 1.0), rd.Uniform(low=-1, high=1), rd.Gaussian(2.0, 0.5)])
SPACES = {
    "uneven": UNEVEN, "stds": STDS, "far": FAR, "line": LINE, "boxed": BOXED, "actions": ACTIONS, "uniform": UNIFORM,
    "mixed": MIXED,
}  # fmt: skip


def samples(space, count, seed=0):
    """Decisions, mediators and payoffs in [0, 1]."""
    rng = np.random.default_rng(seed)
    decisions = rng.integers(space.size, size=count)
    return decisions, [space.family.draw(x, rng) for x in decisions.tolist()], rng.random(count)


def pair(space, learner=rd.Optimist, **settings):
    """The same learner on the CPU and on a device."""
    return tuple(learner(space, payoff_range=(0, 1), device=device, **settings) for device in ("cpu", "jax-cpu"))


def tell(learners, decisions, mediators, payoffs):
    for t, (x, z, y) in enumerate(zip(decisions.tolist(), mediators, payoffs.tolist(), strict=True)):
        for learner in learners:
            learner.adopt(rd.Trial(learner._next_id if t else learner.told, x, z))
            learner.tell(learner.pending[-1], y)


def agree(cpu, device):
    """η to within 1e-6 and values to within 1e-5; weights below what float32 holds count as none."""
    ours, theirs = cpu.history.estimate(2.0), device.history.estimate(2.0)
    some = ours.effective_samples > 1e-300
    np.testing.assert_allclose(theirs.effective_samples, ours.effective_samples, rtol=1e-6, atol=1e-300)
    np.testing.assert_allclose(theirs.log_effective_samples, ours.log_effective_samples, rtol=1e-6, atol=1e-6)
    seen = ours.coverage > 1e-30
    np.testing.assert_allclose(theirs.value[seen], ours.value[seen], rtol=1e-5)
    np.testing.assert_allclose(theirs.coverage, ours.coverage, rtol=1e-5, atol=1e-30)
    np.testing.assert_allclose(theirs.width[some], ours.width[some], rtol=1e-6)
    np.testing.assert_allclose(theirs.threshold[some], ours.threshold[some], rtol=1e-6)
    np.testing.assert_array_equal(theirs.plays, ours.plays)
    for entry in theirs:
        assert not np.isnan(entry).any()


CASES = [(name, "harmonic") for name in SPACES]
CASES += [(name, "mixture") for name in ("stds", "line", "actions", "mixed")] + [("uneven", "empirical")]


@pytest.mark.parametrize(("name", "divergence"), CASES)
def test_estimates_are_those_of_the_cpu(name, divergence):
    space = SPACES[name]
    cpu, device = learners = pair(space, divergence=divergence, estimator="self-normalised")
    decisions, mediators, payoffs = samples(space, 60)
    for start in (0, 1, 7, 40):
        end = {0: 1, 1: 7, 7: 40, 40: 60}[start]
        tell(learners, decisions[start:end], mediators[start:end], payoffs[start:end])
        agree(cpu, device)
    ours, theirs = (
        learner.history.standard_error(cpu.history.estimate(2.0).value, cpu.history.estimate(2.0))
        for learner in learners
    )
    np.testing.assert_allclose(theirs, ours, rtol=1e-5, atol=1e-12)
    rows = np.arange(space.size)[::-1].copy()
    for ours, theirs in zip(
        *(one.history.payoff_distributions(rows, cpu.history.estimate(2.0)) for one in learners), strict=True
    ):
        np.testing.assert_allclose(theirs, ours, rtol=1e-5, atol=1e-30)


@pytest.mark.parametrize("space", [UNEVEN, BOXED, UNIFORM], ids=["uneven", "boxed", "uniform"])
def test_what_does_not_fit_the_memory_is_made_again(space, monkeypatch):
    """One block is stored; those after it are computed anew, or lie with the CPU where the family cannot do that."""
    monkeypatch.setattr(device_columns, "LARGEST", 16)
    monkeypatch.setattr(device_columns, "SMALLEST", 16)
    monkeypatch.setattr(on_device, "memory_of", lambda device: 16 * 4 * space.size)
    cpu, device = learners = pair(space)
    tell(learners, *samples(space, 45))
    agree(cpu, device)
    blocks = device.history.columns.blocks
    assert len(blocks) == 3
    assert isinstance(blocks[0].ratios, on_device.jax.Array)
    assert not any(isinstance(block.ratios, on_device.jax.Array) for block in blocks[1:])
    decisions, mediators, payoffs = samples(space, 20, seed=5)
    for learner in learners:  # at once, into a block that has room, and a new one
        learner.history.extend(decisions, np.array(mediators), payoffs)
    agree(cpu, device)


@pytest.mark.parametrize("name", ["randomist", "realist", "ftl"])
@pytest.mark.parametrize("space", [LINE, ACTIONS], ids=["line", "actions"])
def test_a_run_is_saved_on_one_device_and_goes_on_on_another(space, name):
    """The same draws, the same choices: here, CPU and device never disagree."""
    runs = {}
    for device in ("cpu", "jax-cpu"):
        learner = rd.make(name, space, payoff_range=(0, 1), device=device, seed=4)
        rng, chosen = np.random.default_rng(1), []
        for t in range(60):
            if t == 30:  # to the other one
                state = learner.state()
                assert "device" not in state["settings"]
                learner = rd.load(state, device="cpu" if device != "cpu" else "jax-cpu")
                assert learner.told == 30
            trial = learner.ask()
            chosen.append(trial.decision)
            learner.tell(trial, float(np.clip(0.5 + 0.3 * np.sum(trial.mediator) + 0.1 * rng.standard_normal(), 0, 1)))
        runs[device] = chosen
    assert runs["cpu"] == runs["jax-cpu"]


def test_likelihoods_of_any_size():
    """Log-likelihoods of ±10⁴, some of which are told twice; what leaves float32 stays in log space."""
    cpu, device = learners = tuple(
        rd.Optimist(rd.Finite.likelihoods(4), payoff_range="running", device=name) for name in ("cpu", "jax-cpu")
    )
    rng, kinds = np.random.default_rng(2), [0.5, 3.0, 80.0, 1e4]
    told = []
    for t in range(40):
        x = int(rng.integers(4))
        likelihoods = rng.normal(size=4) * kinds[t % 4] if t % 3 or not told else told[t // 2]
        told.append(likelihoods)
        payoff = float(rng.normal() * 10)
        for learner in learners:
            learner.adopt(rd.Trial(t, x, None))
            learner.tell(t, payoff, log_likelihoods=likelihoods)
    agree(cpu, device)
    assert device.history.columns.distant
    agree(rd.load(device.state()), device)
    agree(cpu, rd.load(cpu.state(), device="jax-cpu"))


def test_decisions_come_and_a_range_grows():
    cpu, device = learners = tuple(
        rd.Randomist(LINE, payoff_range="running", device=name, bias_correction="computed")
        for name in ("cpu", "jax-cpu")
    )
    decisions, mediators, payoffs = samples(LINE, 30)
    tell(learners, decisions, mediators, 100 * payoffs - 20)
    for learner in learners:
        learner.add(rd.Gaussian([0.33], [0.2]), name="new")
        learner.retire(3)
    agree(cpu, device)
    assert cpu.ask().decision == device.ask().decision
    np.testing.assert_allclose(device.digested["bias"], cpu.digested["bias"], rtol=1e-6)


def test_log_smoothing_and_refreshes():
    settings = {"estimator": "log-smoothing", "refresh": 1.5, "refresh_from": 20}
    cpu, device = learners = pair(UNEVEN, rd.Randomist, **settings)
    tell(learners, *samples(UNEVEN, 70))
    for ours, theirs in zip(cpu.estimates(), device.estimates(), strict=True):
        np.testing.assert_allclose(theirs, ours, rtol=1e-5)
    np.testing.assert_allclose(device.history.harmonic(), cpu.history.harmonic(), rtol=1e-12)


@pytest.mark.parametrize("rounds", [300, pytest.param(5000, marks=pytest.mark.slow)])
def test_given_the_same_history_and_draws_the_choices_are_the_same(rounds):
    """In at least 99.9% of the rounds with 100 decisions; the others are near-ties."""
    task, different = rd.task("lqg"), 0
    cpu, device = (rd.make("randomist", task, refresh=None, device=name) for name in ("cpu", "jax-cpu"))
    rng = np.random.default_rng(0)
    for _ in range(rounds):
        trial, other = cpu.ask(), device.propose().trials[0]
        different += trial.decision != other.decision
        device._rng.bit_generator.state = cpu._rng.bit_generator.state
        device.adopt(trial)
        payoff = float(task.payoff(np.array([trial.mediator]), rng)[0])
        cpu.tell(trial, payoff)
        device.tell(trial, payoff)
    assert different <= 0.001 * rounds


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"device": "abacus"}, "device must be one of"),
        ({"device": "tpu"}, "no device"),
        ({"device": "jax-cpu", "window": 10}, "forgets"),
    ],
)
def test_what_a_device_cannot_do_is_said(settings, words):
    with pytest.raises(ParameterError, match=words):
        rd.Optimist(LINE, **settings)


def test_a_mediator_that_cannot_have_been_drawn_is_refused():
    learner = rd.Optimist(BOXED, device="jax-cpu")
    learner.adopt(rd.Trial(0, 1, np.array([5.0, 0.0])))
    with pytest.raises(MediatorError, match="density 0 under decision 1"):
        learner.tell(0, 0.5)
    assert len(learner.history) == 0


@pytest.mark.parametrize(
    "box", [rd.Box(rd.Gaussian(std=0.2), -1, 2), rd.Box(rd.Gaussian(std=[0.2, 3]), [-1, 0], [1, 9])]
)
def test_a_grid_that_grows(box):
    """The same points, round after round, and when the run is saved and goes on elsewhere."""
    runs = {}
    for device in ("cpu", "jax-cpu"):
        learner, rng, chosen = rd.GridOptimist(box, device=device), np.random.default_rng(1), []
        for t in range(20):
            if t == 12:
                learner = rd.load(learner.state(), device="cpu" if device != "cpu" else "jax-cpu")
            trial = learner.ask()
            chosen.append(trial.decision)
            learner.tell(trial, float(np.clip(0.4 + 0.1 * np.sum(trial.mediator) + 0.1 * rng.random(), 0, 1)))
        runs[device] = np.array(chosen)
    np.testing.assert_array_equal(runs["cpu"], runs["jax-cpu"])


def test_a_grid_on_a_device_is_one_of_gaussians():
    with pytest.raises(ParameterError, match="one of Gaussians"):
        rd.GridOptimist(rd.Box(rd.TruncatedGaussian(std=0.2), 0, 1), device="jax-cpu")


def test_nodes_of_many_members_are_those_of_few(monkeypatch):
    """Neighbours by a tree instead of by all pairs; nodes are then kept in float32."""
    space = rd.Finite(rd.Gaussian(np.random.default_rng(0).normal(size=(300, 2)) * [1, 5], [0.3, 1.5]))
    decisions, mediators, payoffs = samples(space, 50)
    found = []
    for compared in (device_nodes.COMPARED, 0):
        monkeypatch.setattr(device_nodes, "COMPARED", compared)
        history = rd.Realist(space, device="jax-cpu").history
        history.extend(decisions, np.array(mediators), payoffs)
        found.append(history.estimate(2.0).effective_samples)
    np.testing.assert_allclose(found[1], found[0], rtol=1e-4)


def test_rows_of_a_log_with_a_logger_and_safe_play():
    """Absorbed rows come from a source that is no decision; a learner inside of `Safe` may be on a device."""
    pytest.importorskip("polars", reason="logs need polars")
    every = rd.Gaussian([0.0, 1.0, 2.5, 0.7], [1.0, 0.8, 1.2, 1.5])
    space = rd.Finite(rd.Gaussian([0.0, 1.0, 2.5], [1.0, 0.8, 1.2]), loggers={"other": rd.Gaussian([0.7], [1.5])})
    who = np.repeat(np.arange(4), 15)
    z = every.sample(who, np.random.default_rng(0))
    names = np.array(["a", "b", "c", "other"])
    log = rd.Log.from_arrays(
        np.clip(z / 4, 0, 1), dict(zip(names, every.log_density(None, z), strict=True)), loggers=names[who]
    )
    cpu, device = learners = pair(space, rd.Realist)
    for learner in learners:
        learner.absorb(log)
    agree(cpu, device)
    tell(learners, *samples(space, 10))
    agree(cpu, rd.load(device.state()))
    guarded = rd.Safe(rd.Optimist(LINE, device="jax-cpu"), baseline=0, fraction=0.1)
    for _ in range(6):
        trial = guarded.ask()
        guarded.tell(trial, 0.5)
    assert guarded.told == 6
