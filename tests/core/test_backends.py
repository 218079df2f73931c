"""The same kind of array comes out as went in, lazily where it is lazy, with gradients where it has them."""

import numpy as np
import pytest

from setminus import orthogonalize, orthogonalize_log

rng = np.random.default_rng(0)
FULL, PRINCIPAL = rng.dirichlet(np.ones(3), size=(2, 40))
PRIOR = np.array([0.2, 0.3, 0.5])
EXPECTED = orthogonalize(FULL, PRINCIPAL, PRIOR, strength=0.7)
BROKEN = np.array([[0.5, 0.5, 0.5]])


class TestTorch:
    torch = pytest.importorskip("torch")

    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    def test_kind_dtype_and_values(self, dtype):
        torch = self.torch
        full, principal = (torch.tensor(a, dtype=getattr(torch, dtype)) for a in (FULL, PRINCIPAL))
        answer = orthogonalize(full, principal, PRIOR, strength=0.7)
        assert isinstance(answer, torch.Tensor)
        assert answer.dtype == full.dtype
        np.testing.assert_allclose(answer.numpy(), EXPECTED, atol=1e-6 if dtype == "float32" else 1e-12)

    def test_a_prior_of_the_same_kind(self):
        """Kept as it came, in the dtype of the probabilities: it may have a gradient, which numpy cannot carry."""
        torch = self.torch
        full, principal = (torch.tensor(a, dtype=torch.float32) for a in (FULL, PRINCIPAL))
        prior = torch.tensor(PRIOR, dtype=torch.float64, requires_grad=True)
        answer = orthogonalize(full, principal, prior, strength=0.7)
        assert answer.dtype == torch.float32
        np.testing.assert_allclose(answer.detach().numpy(), EXPECTED, atol=1e-6)
        answer[:, 0].sum().backward()
        assert prior.grad.abs().sum() > 0
        in_logs = orthogonalize_log(full.log(), principal.log(), prior.log(), strength=0.7)
        np.testing.assert_allclose(in_logs.exp().detach().numpy(), EXPECTED, atol=1e-6)

    def test_gradients_match_finite_differences(self):
        torch = self.torch
        logits = [torch.randn(4, 3, dtype=torch.float64, requires_grad=True) for _ in range(2)]
        strength = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)

        def line(a, b, s):
            return orthogonalize_log(a.log_softmax(-1), b.log_softmax(-1), np.log(PRIOR), strength=s)

        assert torch.autograd.gradcheck(line, (*logits, strength))

    def test_gradient_is_finite_where_the_full_classifier_says_zero(self):
        torch = self.torch
        full = torch.tensor([[0.0, 0.4, 0.6]], requires_grad=True)
        principal = torch.tensor([[0.2, 0.4, 0.4]], requires_grad=True)
        orthogonalize(full, principal, "uniform")[0, 1].backward()
        assert torch.isfinite(full.grad).all()
        assert torch.isfinite(principal.grad).all()
        assert principal.grad.abs().sum() > 0

    def test_eager_tensors_are_checked_and_mixed_kinds_refused(self):
        with pytest.raises(ValueError, match="do not sum to 1"):
            orthogonalize(self.torch.tensor(BROKEN), self.torch.tensor(BROKEN), PRIOR)
        with pytest.raises(
            ValueError, match=r"^full is Tensor and principal is ndarray: pass both as arrays of the same"
        ):
            orthogonalize(self.torch.tensor(FULL), PRINCIPAL, PRIOR)
        with pytest.raises(ValueError, match="out is for numpy arrays only"):
            orthogonalize(self.torch.tensor(FULL), self.torch.tensor(PRINCIPAL), PRIOR, out=np.empty(1))

    def test_what_is_wrong_is_counted_as_for_numpy(self):
        full, principal = (self.torch.tensor(a).reshape(2, 20, 3) for a in (FULL, PRINCIPAL))
        blind = principal.clone()
        blind[1, 4] = self.torch.tensor([0.5, 0.0, 0.5])
        with pytest.raises(ValueError, match=r"no overlap in 1 of 40 rows.*class 1 is exactly 0"):
            orthogonalize(full, blind, PRIOR)
        # nothing is removed, so that nothing needs an overlap
        np.testing.assert_allclose(orthogonalize(full, blind, PRIOR, strength=0), full)
        priors = self.torch.tensor(PRIOR).repeat(2, 20, 1)
        priors[0, 7] = self.torch.tensor([0.5, 0.5, 0.0])
        with pytest.raises(ValueError, match="prior is 0 for class 2:"):
            orthogonalize(full, principal, priors)

    def test_export_and_vmap_trace_through(self):
        torch = self.torch

        class Line(torch.nn.Module):
            def forward(self, full, principal):
                return orthogonalize(full, principal, PRIOR, strength=0.7)

        arguments = torch.tensor(FULL), torch.tensor(PRINCIPAL)
        exported = torch.export.export(Line(), arguments).module()
        np.testing.assert_allclose(exported(*arguments).numpy(), EXPECTED, atol=1e-12)
        mapped = torch.vmap(Line())(*arguments)
        np.testing.assert_allclose(mapped.numpy(), EXPECTED, atol=1e-12)


class TestJax:
    jax = pytest.importorskip("jax")

    def test_eager_and_traced(self):
        jax = self.jax
        full, principal = jax.numpy.asarray(FULL), jax.numpy.asarray(PRINCIPAL)
        answer = orthogonalize(full, principal, PRIOR, strength=0.7)
        assert isinstance(answer, jax.Array)
        assert answer.dtype == full.dtype
        np.testing.assert_allclose(answer, EXPECTED, atol=1e-6)
        traced = jax.jit(lambda a, b: orthogonalize(a, b, PRIOR, strength=0.7))(full, principal)
        np.testing.assert_allclose(traced, EXPECTED, atol=1e-6)
        slope = jax.grad(lambda a: orthogonalize(a, principal, PRIOR)[:, 0].sum())(full)
        assert bool(jax.numpy.isfinite(slope).all())

    def test_a_prior_of_the_same_kind(self):
        jax = self.jax
        full, principal, prior = map(jax.numpy.asarray, (FULL, PRINCIPAL, PRIOR))
        answer = orthogonalize(full, principal, prior.astype("float16"), strength=0.7)
        assert answer.dtype == full.dtype
        np.testing.assert_allclose(answer, EXPECTED, atol=1e-3)
        # traced, it has no values that numpy could take
        traced = jax.jit(lambda p: orthogonalize(full, principal, p, strength=0.7))(prior)
        np.testing.assert_allclose(traced, EXPECTED, atol=1e-6)

    def test_eager_values_are_checked_and_traced_ones_clip(self):
        jax = self.jax
        with pytest.raises(ValueError, match="do not sum to 1"):
            orthogonalize(jax.numpy.asarray(BROKEN), jax.numpy.asarray(BROKEN), PRIOR)
        zero = jax.numpy.asarray([[0.0, 0.5, 0.5]])
        answer = jax.jit(lambda a, b: orthogonalize(a, b, PRIOR))(jax.numpy.asarray(FULL[:1]), zero)
        np.testing.assert_allclose(answer, [[1, 0, 0]], atol=1e-6)


class TestDask:
    da = pytest.importorskip("dask.array")

    def test_stays_lazy(self):
        full, principal = (self.da.from_array(a, chunks=(7, 3)) for a in (FULL, PRINCIPAL))
        answer = orthogonalize(full, principal, PRIOR, strength=0.7)
        assert isinstance(answer, self.da.Array)
        np.testing.assert_allclose(answer.compute(), EXPECTED, atol=1e-12)

    def test_a_prior_of_the_same_kind(self):
        full, principal = (self.da.from_array(a.astype(np.float32), chunks=(7, 3)) for a in (FULL, PRINCIPAL))
        computed = []

        def counted(block):
            computed.append(block)
            return block

        prior = self.da.from_array(PRIOR, chunks=3).map_blocks(counted, meta=PRIOR)
        answer = orthogonalize(full, principal, prior, strength=0.7)
        assert not computed  # stays lazy
        assert answer.dtype == np.float32
        np.testing.assert_allclose(answer.compute(), EXPECTED, atol=1e-6)

    def test_only_shapes_are_checked(self):
        broken = self.da.from_array(np.full((2, 3), np.nan))
        assert np.isnan(orthogonalize(broken, broken, PRIOR).compute()).all()
        with pytest.raises(ValueError, match="prior has shape"):
            orthogonalize(broken, broken, PRIOR[:2])
