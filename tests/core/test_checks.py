"""Which arrays have values to look at, and what is said of those that are no probabilities."""

from functools import partial

import numpy as np
import pytest

from setminus.core.checks import is_eager


class TestEager:
    torch = pytest.importorskip("torch")

    def seen_in(self, transform, tensor):
        """What `is_eager` says of the tensor that a function gets inside of a transform."""
        seen = []

        def function(inner):
            seen.append(is_eager(inner))
            return inner + 1

        transform(function, tensor)
        return set(seen)

    def test_tensors_with_values(self):
        tensor = self.torch.ones(2, 2)
        assert is_eager(tensor)
        assert is_eager(tensor.requires_grad_() + 1)
        assert self.seen_in(lambda function, inner: function(inner), tensor) == {True}

    def test_traced_and_mapped_tensors_have_none(self):
        torch = self.torch
        tensor = torch.ones(2, 2)
        with pytest.warns(DeprecationWarning):
            assert self.seen_in(partial(torch.jit.trace, check_trace=False), tensor) == {False}
        assert self.seen_in(lambda function, inner: torch.vmap(function)(inner), tensor) == {False}
        assert self.seen_in(lambda function, inner: torch.func.functionalize(function)(inner), tensor) == {False}

    def test_tensors_of_shape_alone_have_none(self):
        torch = self.torch
        from torch._subclasses.fake_tensor import FakeTensorMode
        from torch._subclasses.functional_tensor import FunctionalTensor, FunctionalTensorMode

        assert not is_eager(torch.ones(2, device="meta"))
        with FakeTensorMode():
            assert not is_eager(torch.ones(2))
        with FunctionalTensorMode():
            assert not is_eager(FunctionalTensor.to_functional(torch.ones(2)))

    def test_dask_and_numpy(self):
        da = pytest.importorskip("dask.array")
        assert is_eager(np.ones(2)) and not is_eager(da.ones(2))
