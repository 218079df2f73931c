"""The loop does what its config says, step by step as by hand, and leaves the process as it found it."""

from dataclasses import replace

import pytest

torch = pytest.importorskip("torch")

from torch.nn.functional import cross_entropy  # noqa: E402

from setminus.nn.checkpoints import load_checkpoint  # noqa: E402
from setminus.nn.passes import Batches  # noqa: E402
from setminus.nn.training import NotFiniteError, Task, TrainingConfig, train  # noqa: E402

CONFIG = TrainingConfig(steps=12, seed=5, log_every=1)


class Fit(Task):
    def __init__(self, dropout=0.0, rate=0.05, optimizer=torch.optim.SGD):
        with torch.random.fork_rng():
            torch.manual_seed(0)
            layers = torch.nn.Linear(5, 16), torch.nn.Tanh(), torch.nn.Dropout(dropout), torch.nn.Linear(16, 3)
            self.net = torch.nn.Sequential(*layers)
            x = torch.randn(64, 5)
        self.modules = {"net": self.net}
        self.optimizers = {"net": optimizer(self.net.parameters(), rate)}
        self.batches = Batches(x, x[:, :3].argmax(1), size=16, seed=1)

    def loss(self, index, x, y):
        return cross_entropy(self.net(x), y)

    def step(self, loop):
        loop.update("net", self.loss(loop.index, *loop.batch(self.batches)))


def weights(task):
    return torch.cat([weight.detach().reshape(-1) for weight in task.net.parameters()])


def by_hand(steps, clip=None, rate=lambda step: 1.0, decay=None):
    """The same training, without a loop around it; and the average, without torch's."""
    task, average = Fit(), None
    for step in range(steps):
        x, y = task.batches.at(step)
        gradients = torch.autograd.grad(cross_entropy(task.net(x), y), list(task.net.parameters()))
        norm = torch.sqrt(sum((g**2).sum() for g in gradients))
        scale = 1.0 if clip is None else min(1.0, clip / float(norm))
        with torch.no_grad():
            for weight, gradient in zip(task.net.parameters(), gradients, strict=True):
                weight -= 0.05 * rate(step) * scale * gradient
        if decay is not None:
            average = weights(task) if average is None else decay * average + (1 - decay) * weights(task)
    return weights(task), average


def test_is_gradient_descent():
    task = Fit()
    outcome = train(task, CONFIG)
    torch.testing.assert_close(weights(task), by_hand(12)[0])
    assert not torch.allclose(weights(task), by_hand(11)[0])
    assert outcome.steps == 12
    assert outcome.seconds > 0
    assert outcome.averaged == {}
    x, y = Fit().batches.at(0)
    assert outcome.history[0] == {"step": 1, "net": pytest.approx(cross_entropy(Fit().net(x), y).item())}


def test_clips_the_norm_of_the_gradient():
    task = Fit()
    train(task, replace(CONFIG, clip=0.1))
    torch.testing.assert_close(weights(task), by_hand(12, clip=0.1)[0], rtol=1e-4, atol=1e-6)
    assert not torch.allclose(weights(task), by_hand(12)[0], atol=1e-4)
    # a clip that no gradient reaches changes nothing
    wide = Fit()
    train(wide, replace(CONFIG, clip=1e6))
    torch.testing.assert_close(weights(wide), by_hand(12)[0])


def test_rates_follow_the_schedule():
    task = Fit()
    task.rate = lambda step: 0.8**step
    train(task, CONFIG)
    torch.testing.assert_close(weights(task), by_hand(12, rate=lambda step: 0.8**step)[0])
    assert task.optimizers["net"].param_groups[0]["lr"] == pytest.approx(0.05 * 0.8**11)
    assert not torch.allclose(weights(task), by_hand(12)[0], atol=1e-3)


def test_average_is_the_one_by_hand():
    task = Fit()
    outcome = train(task, replace(CONFIG, ema=0.7))
    expected = by_hand(12, decay=0.7)[1]
    torch.testing.assert_close(torch.cat([w.reshape(-1) for w in outcome.averaged["net"].parameters()]), expected)
    torch.testing.assert_close(weights(task), by_hand(12)[0])
    assert not torch.allclose(expected, weights(task), atol=1e-3)


def test_an_evaluation_sees_the_average_and_the_training_goes_on_from_the_weights():
    task, seen = Fit(), []
    task.modules["counts"] = torch.nn.BatchNorm1d(2, affine=False)
    task.evaluate = lambda loop: seen.append(weights(task)) or {}
    outcome = train(task, replace(CONFIG, ema=0.7, evaluate_every=6))
    for place, steps in enumerate((6, 12)):
        torch.testing.assert_close(seen[place], by_hand(steps, decay=0.7)[1])
    torch.testing.assert_close(weights(task), by_hand(12)[0])
    # no weights, no average
    assert [*outcome.averaged] == ["net"]


def test_batch_statistics_are_averaged_too():
    task = Fit()
    task.net.insert(1, torch.nn.BatchNorm1d(16))
    averaged = train(task, replace(CONFIG, ema=0.9)).averaged["net"]
    assert torch.isfinite(averaged[1].running_var).all()
    assert not torch.equal(averaged[1].running_mean, task.net[1].running_mean)
    assert averaged[1].running_mean.any()


def test_entries_evaluations_and_checkpoints_come_when_asked(tmp_path):
    seen, task = [], Fit()
    task.evaluate = lambda loop: {"index": loop.index, "kept": loop.kept}
    config = replace(CONFIG, log_every=5, evaluate_every=4, checkpoint_every=3)
    outcome = train(task, config, folder=tmp_path, observers=[lambda step, values: seen.append((step, dict(values)))])
    assert [entry["step"] for entry in outcome.history] == [5, 10, 12]
    assert seen == [(entry["step"], {"net": entry["net"]}) for entry in outcome.history]
    assert [(e["step"], e["index"]) for e in outcome.evaluations] == [(4, 3), (8, 7), (12, 11)]
    assert [e["kept"].split(" in ")[0][-7:] for e in outcome.evaluations] == [" step 3", " step 6", " step 9"]
    ends = train(Fit(), replace(config, log_every=0, evaluate_every=0))
    assert [e["step"] for e in ends.history] == [e["step"] for e in ends.evaluations] == [12]


def test_an_entry_holds_what_its_own_step_logged():
    class Rarely(Fit):
        def step(self, loop):
            super().step(loop)
            if loop.index % 4 == 0:
                loop.log(rare=loop.index)

    history = train(Rarely(), CONFIG).history
    assert {entry["step"]: entry.get("rare") for entry in history if "rare" in entry} == {1: 0, 5: 4, 9: 8}


def test_gradients_set_by_hand_are_applied():
    class Signs(Fit):
        def step(self, loop):
            for weight in self.net.parameters():
                weight.grad = torch.ones_like(weight)
            loop.apply("net")

    task = Signs()
    train(task, CONFIG)
    torch.testing.assert_close(weights(task), weights(Fit()) - 12 * 0.05)


def test_each_optimizer_moves_its_own_weights():
    task = Fit()
    parts = {"first": task.net[0], "last": task.net[3]}
    task.optimizers = {name: torch.optim.SGD(part.parameters(), 0.05) for name, part in parts.items()}
    task.step = lambda loop: loop.update("last", task.loss(loop.index, *loop.batch(task.batches)))
    train(task, CONFIG)
    assert torch.equal(task.net[0].weight, Fit().net[0].weight)
    assert not torch.equal(task.net[3].weight, Fit().net[3].weight)


def test_same_seed_same_bits_other_seed_other_bits():
    runs = []
    for seed in (5, 5, 6):
        task = Fit(dropout=0.5)
        train(task, replace(CONFIG, seed=seed))
        runs.append(weights(task))
        # whatever others draw in between
        torch.rand(3)
    assert torch.equal(runs[0], runs[1])
    assert not torch.equal(runs[0], runs[2])


def test_to_look_at_a_training_does_not_change_it():
    class Looked(Fit):
        def evaluate(self, loop):
            self.net.eval()
            return {"noise": float(torch.rand(()))}

    seldom, often = Looked(dropout=0.5), Looked(dropout=0.5)
    train(seldom, CONFIG)
    noise = train(often, replace(CONFIG, evaluate_every=2)).evaluations
    assert torch.equal(weights(seldom), weights(often))
    assert len({e["noise"] for e in noise}) == 6
    # the negative control: without dropout, as in eval mode, it is another training
    quiet = Fit()
    train(quiet, CONFIG)
    assert not torch.equal(weights(seldom), weights(quiet))


@pytest.mark.parametrize("fails", [False, True])
def test_leaves_the_process_as_it_was(fails):
    inside = []

    class Looking(Fit):
        def step(self, loop):
            inside.append((torch.get_num_threads(), torch.are_deterministic_algorithms_enabled(), torch.initial_seed()))
            if fails:
                raise KeyError("a step that fails")
            super().step(loop)

    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        torch.use_deterministic_algorithms(True, warn_only=True)
        state = torch.get_rng_state()
        try:
            train(Looking(dropout=0.5), replace(CONFIG, threads=1, deterministic=False))
        except KeyError:
            assert fails
        assert inside[0] == (1, False, 5)
        assert torch.get_num_threads() == 2
        assert torch.are_deterministic_algorithms_enabled()
        assert torch.is_deterministic_algorithms_warn_only_enabled()
        assert torch.equal(torch.get_rng_state(), state)
        train(Fit(), replace(CONFIG, threads=None))
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(threads)
        torch.use_deterministic_algorithms(False)


class NaNAt(Fit):
    """A loss that is not a number in one step."""

    def __init__(self, step, value=float("nan")):
        super().__init__()
        self.at, self.value = step, value

    def loss(self, index, x, y):
        return super().loss(index, x, y) * (self.value if index == self.at else 1.0)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_loss_that_is_not_finite_stops_the_training(tmp_path, value):
    config = replace(CONFIG, checkpoint_every=3)
    with pytest.raises(NotFiniteError, match=rf"loss of 'net' is {value} at step 7\. .*that of step 6 in {tmp_path}\."):
        train(NaNAt(7, value), config, folder=tmp_path)
    step, state = load_checkpoint(tmp_path)
    assert step == 6
    assert all(torch.isfinite(weight).all() for weight in state["modules"]["net"].values())
    # it is good: the training goes on from there, if its loss is mended
    task = Fit()
    train(task, config, folder=tmp_path, resume=True)
    assert torch.equal(weights(task), by_loop(config))
    with pytest.raises(NotFiniteError, match=r"at step 0\. No checkpoint was kept\. Lower the learning rate"):
        train(NaNAt(0), config)


def by_loop(config):
    task = Fit()
    train(task, config)
    return weights(task)


class NaNGradient(Fit):
    """A weight that becomes NaN although the loss is finite: the gradient of sqrt at 0."""

    def __init__(self, at):
        super().__init__()
        self.at = at

    def loss(self, index, x, y):
        loss = super().loss(index, x, y)
        return loss + (self.net[0].weight * 0).sum().sqrt() if index == self.at else loss


def test_weights_that_are_not_finite_are_never_saved(tmp_path):
    config = replace(CONFIG, checkpoint_every=4)
    with pytest.raises(
        NotFiniteError, match=r"weights of 'net' are no longer finite after step 7\. .*that of step 4 in"
    ):
        train(NaNGradient(7), config, folder=tmp_path)
    step, state = load_checkpoint(tmp_path)
    assert step == 4
    assert all(torch.isfinite(weight).all() for weight in state["modules"]["net"].values())
    # in the last step there is no later loss to notice, and without a folder nothing to save
    with pytest.raises(NotFiniteError, match=r"no longer finite after step 11\. No checkpoint was kept\."):
        train(NaNGradient(11), CONFIG)


def test_bfloat16_is_close_to_float32():
    config = replace(CONFIG, steps=60)
    tasks = {precision: Fit(optimizer=torch.optim.Adam, rate=0.01) for precision in ("32-true", "bf16-mixed")}
    kinds = {}
    for precision, task in tasks.items():
        task.net[0].register_forward_hook(lambda m, i, out, key=precision: kinds.update({key: out.dtype}))
        outcome = train(task, replace(config, precision=precision))
        assert outcome.history[-1]["net"] < 0.7 * outcome.history[0]["net"]
    assert kinds == {"32-true": torch.float32, "bf16-mixed": torch.bfloat16}
    full, mixed = (weights(task) for task in tasks.values())
    assert mixed.dtype == torch.float32
    moved = (full - weights(Fit())).norm()
    assert 0 < (full - mixed).norm() < 0.1 * moved


def test_tasks_must_say_their_step():
    with pytest.raises(NotImplementedError):
        Task().step(None)
