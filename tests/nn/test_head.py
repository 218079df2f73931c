"""The head is core's formula, differentiable, trainable or frozen, and the same numbers wherever it is exported to."""

import importlib
import sys

import numpy as np
import pytest

from setminus import orthogonalize_log

torch = pytest.importorskip("torch")

from setminus.nn.head import OrthogonalHead  # noqa: E402

PRIOR = [0.2, 0.3, 0.5]


def network(seed, n_classes=3, dtype=torch.float32):
    """A network with batch statistics and dropout, so that its mode matters."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        layers = torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.Tanh(), torch.nn.Dropout(0.5)
        return torch.nn.Sequential(*layers, torch.nn.Linear(8, n_classes)).to(dtype)


def make_head(prior=PRIOR, strength=0.7, dtype=torch.float32, **options):
    return OrthogonalHead(network(0, dtype=dtype), network(1, dtype=dtype), prior, strength, **options)


def inputs(n=6, dtype=torch.float32):
    return torch.randn(n, 4, dtype=dtype, generator=torch.Generator().manual_seed(2))


@pytest.mark.parametrize("prior", [PRIOR, "uniform"])
@pytest.mark.parametrize(("dtype", "atol"), [(torch.float32, 1e-6), (torch.float64, 1e-14)])
def test_equals_core_on_the_same_logits(prior, dtype, atol):
    head, x = make_head(prior, dtype=dtype), inputs(dtype=dtype)
    log_full, log_principal = (part(x).log_softmax(-1).numpy(force=True) for part in (head.full, head.principal))
    log_prior = prior if prior == "uniform" else np.log(prior)
    expected = orthogonalize_log(log_full, log_principal, log_prior, strength=0.7)
    np.testing.assert_allclose(head(x).numpy(force=True), expected, rtol=0, atol=atol)
    np.testing.assert_allclose(head.proba(x).numpy(force=True), np.exp(expected), rtol=0, atol=atol)
    assert head(x).dtype == dtype
    # the negative control: the prior is not decoration
    other = make_head("uniform" if prior == PRIOR else PRIOR, dtype=dtype)
    assert (head.proba(x) - other.proba(x)).abs().max() > 0.05


def test_degenerate_cases():
    x = inputs(dtype=torch.float64)
    full = network(0, dtype=torch.float64)
    itself = OrthogonalHead(full, full, PRIOR)
    torch.testing.assert_close(itself.proba(x), torch.tensor(PRIOR, dtype=torch.float64).expand(6, 3))
    kept = OrthogonalHead(full, network(1, dtype=torch.float64), PRIOR, strength=0)
    torch.testing.assert_close(kept(x), full(x).log_softmax(-1))


def test_any_kind_of_prior():
    expected = make_head(PRIOR).log_prior
    for prior in (tuple(PRIOR), np.array(PRIOR, dtype=np.float32), torch.tensor(PRIOR, requires_grad=True)):
        torch.testing.assert_close(make_head(prior).log_prior, expected)
        assert not make_head(prior).log_prior.requires_grad


def test_gradients_match_finite_differences():
    head, x = make_head(dtype=torch.float64), inputs(dtype=torch.float64).requires_grad_()
    assert torch.autograd.gradcheck(head, (x,))
    assert torch.autograd.gradcheck(head.proba, (x,))


def test_a_frozen_head_passes_gradients_to_its_input_alone():
    head, x = make_head(), inputs().requires_grad_()
    head(x)[:, 0].sum().backward()
    assert x.grad.abs().sum() > 0
    assert all(not p.requires_grad and p.grad is None for p in head.parameters())
    trained = make_head(freeze=False)
    trained(x)[:, 0].sum().backward()
    assert all(p.grad is not None for p in trained.parameters())
    assert len([*trained.parameters()]) == 12


def test_a_frozen_head_stays_in_evaluation_mode():
    head, x = make_head(), inputs()
    before, statistics = head(x), head.full[1].running_mean.clone()
    torch.nn.Sequential(head).train()
    assert head.training
    assert not head.full.training
    assert not head.principal[1].training
    torch.testing.assert_close(head(x), before, rtol=0, atol=0)
    torch.testing.assert_close(head.full[1].running_mean, statistics, rtol=0, atol=0)
    # the negative control: unfrozen parts follow, and their statistics move
    trained = make_head(freeze=False).train()
    trained(x)
    assert (trained.full[1].running_mean - statistics).abs().max() > 0
    assert not trained.eval().full.training


def test_strength_can_be_learned():
    head = make_head(strength=torch.nn.Parameter(torch.tensor(0.5)))
    assert [name for name, p in head.named_parameters() if p.requires_grad] == ["strength"]
    head(inputs())[:, 0].sum().backward()
    assert head.strength.grad.abs() > 0
    torch.testing.assert_close(head(inputs()), make_head(strength=0.5)(inputs()))


def test_half_precision_logits_are_subtracted_in_single():
    head, x = make_head(dtype=torch.bfloat16), inputs(dtype=torch.bfloat16)
    assert head.log_prior.dtype == head(x).dtype == torch.float32
    logs = [part(x).float().log_softmax(-1).numpy(force=True) for part in (head.full, head.principal)]
    expected = orthogonalize_log(*logs, np.log(PRIOR), strength=0.7)
    np.testing.assert_allclose(head(x).numpy(force=True), expected, rtol=0, atol=1e-6)


def test_state_round_trip(tmp_path):
    safetensors = pytest.importorskip("safetensors.torch")
    head = make_head()
    other = OrthogonalHead(network(5), network(6), [0.6, 0.3, 0.1], strength=0.1)
    assert (head(inputs()) - other(inputs())).abs().max() > 0.1
    safetensors.save_file(head.state_dict(), tmp_path / "head.safetensors")
    other.load_state_dict(safetensors.load_file(tmp_path / "head.safetensors"))
    torch.testing.assert_close(other(inputs()), head(inputs()), rtol=0, atol=0)
    assert {"log_prior", "strength"} <= {*head.state_dict()}


def test_traced_and_mapped():
    head, x = make_head().eval(), inputs()
    exported = torch.export.export(head, (x,), dynamic_shapes={"x": {0: torch.export.Dim.DYNAMIC}}).module()
    torch.testing.assert_close(exported(inputs(9)), head(inputs(9)))
    torch.testing.assert_close(torch.func.vmap(lambda row: head(row[None])[0])(x), head(x))


def test_onnxruntime_gives_the_same_numbers(tmp_path):
    pytest.importorskip("onnxscript")
    onnxruntime = pytest.importorskip("onnxruntime")
    head, path = make_head().eval(), tmp_path / "head.onnx"
    shapes = {"x": {0: torch.export.Dim.DYNAMIC}}
    torch.onnx.export(head, (inputs(),), dynamo=True, dynamic_shapes=shapes, verbose=False).save(path)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    x = inputs(9)
    (answer,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
    np.testing.assert_allclose(answer, head(x).numpy(force=True), rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"prior": "balanced"}, "prior is 'balanced'.*or 'uniform'"),
        ({"prior": None}, "prior is None: pass the class frequencies"),
        ({"prior": [1.0]}, r"prior has shape \(1,\): expected \(C,\)"),
        ({"prior": [[0.5, 0.5]]}, r"prior has shape \(1, 2\)"),
        ({"prior": [0.5, 0.5, 0.5]}, "prior has 1 rows that do not sum to 1"),
        ({"prior": [0.0, 0.5, 0.5]}, "prior is 0 for class 0"),
        ({"strength": -1.0}, "strength is -1.0: expected a finite number >= 0"),
    ],
)
def test_refused_when_it_is_built(options, message):
    with pytest.raises(ValueError, match=message):
        make_head(**options)


@pytest.mark.parametrize(
    ("full_classes", "principal_classes", "message"),
    [
        (1, 1, r"full gives logits of shape \(6, 1\).*torch.cat\(\[torch.zeros_like\(logit\), logit\], dim=1\)"),
        (3, 1, r"principal gives logits of shape \(6, 1\)"),
        (3, 2, r"principal gives logits of shape \(6, 2\), full of \(6, 3\)"),
        (2, 2, "prior has 3 classes, full and principal have 2"),
    ],
)
def test_refused_when_it_is_called(full_classes, principal_classes, message):
    head = OrthogonalHead(network(0, full_classes), network(1, principal_classes), PRIOR)
    with pytest.raises(ValueError, match=message):
        head(inputs())


def test_what_the_error_says_to_do_works():
    class TwoColumns(torch.nn.Module):
        def __init__(self, single):
            super().__init__()
            self.single = single

        def forward(self, x):
            logit = self.single(x)
            return torch.cat([torch.zeros_like(logit), logit], dim=1)

    full, principal = network(0, 1), network(1, 1)
    head, x = OrthogonalHead(TwoColumns(full), TwoColumns(principal), [0.4, 0.6]), inputs()
    log_odds = full(x) - principal(x) + np.log(0.6 / 0.4)
    torch.testing.assert_close(head.proba(x)[:, 1:], log_odds.sigmoid())


@pytest.mark.parametrize("module", ["orthogonalize", "adversarial", "regularizers"])
def test_without_torch_the_error_says_what_to_install(module, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    for name in ("setminus.nn", f"setminus.nn.{module}"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    with pytest.raises(ImportError, match=r'pip install "setminus\[nn\]"'):
        importlib.import_module(f"setminus.nn.{module}")
