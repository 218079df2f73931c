"""A device that is only pretended: it computes on the processor, and is as strict about places as a GPU.

Its name is torch's "meta", which every machine has. A tensor on it keeps its numbers in an ordinary tensor, so a
training gives the bits that it gives on the CPU. A forgotten ``.to(device)`` fails: an operation refuses tensors of two
places, and ``numpy()`` refuses those of the device. float64 is refused, as by Apple's GPUs.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager, nullcontext
from unittest import mock

import torch
from lightning_fabric.accelerators import ACCELERATOR_REGISTRY, CPUAccelerator
from lightning_fabric.connector import _Connector
from lightning_fabric.strategies import SingleDeviceStrategy
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from torch.utils._pytree import tree_flatten, tree_map_only

NAME = "meta"
aten = torch.ops.aten
COPIES = {aten._to_copy.default, aten.copy_.default}
"""Operations that carry numbers from one place to another."""
PLACED = {aten.index.Tensor, aten.index_put_.default, aten.index_put.default}
"""Operations that take row numbers from the CPU as well."""


class Placed(torch.Tensor):
    """A tensor on the pretended device; `numbers` is an ordinary one."""

    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, numbers: torch.Tensor) -> Placed:
        if numbers.dtype == torch.float64:
            raise TypeError("the pretended device has no float64: call .cpu() before .double()")
        placed = torch.Tensor._make_wrapper_subclass(
            cls,
            numbers.shape,
            strides=numbers.stride(),
            storage_offset=numbers.storage_offset(),
            dtype=numbers.dtype,
            device=NAME,
        )
        placed.numbers = numbers
        return placed

    # with these two, `module.to` exchanges tensors in place, as it does for a real device
    def __tensor_flatten__(self):
        return ["numbers"], None

    @staticmethod
    def __tensor_unflatten__(inner, context, size, stride):
        return Placed(inner["numbers"])

    # `load_state_dict` warns that tensors of "meta" hold nothing; these do
    is_meta = False

    def __repr__(self):
        return f"Placed({self.numbers!r})"

    @property
    def data(self):
        return self.detach()

    @data.setter
    def data(self, value):
        if not isinstance(value, Placed):
            raise TypeError("a weight of the pretended device is to hold a tensor of the CPU")
        self.numbers = value.numbers

    def tolist(self):
        return self.numbers.tolist()

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return computed(func, args, kwargs or {})


def computed(func, args, kwargs):
    """The result of an operation that has tensors of the device, or is to have."""
    tensors = [one for one in tree_flatten((args, kwargs))[0] if isinstance(one, torch.Tensor)]
    placed = [one for one in tensors if isinstance(one, Placed)]
    device = kwargs.get("device")
    if func not in COPIES:
        # a number of the CPU may stand beside tensors of the device
        elsewhere = [one for one in tensors if not isinstance(one, Placed) and one.ndim > 0]
        if func in PLACED and isinstance(args[0], Placed):
            elsewhere = [one for one in elsewhere if one.dtype.is_floating_point]
        if placed and elsewhere:
            raise RuntimeError(
                f"Expected all tensors to be on the same device, but {func} got shapes "
                f"{[tuple(one.shape) for one in placed]} on the pretended one and "
                f"{[tuple(one.shape) for one in elsewhere]} on the CPU"
            )
    here = bool(placed) if device is None else torch.device(device).type == NAME
    if func is aten.copy_.default:
        here = isinstance(args[0], Placed)
    inner_args, inner = tree_map_only(Placed, lambda one: one.numbers, (args, kwargs))
    if device is not None:
        inner = {**inner, "device": torch.device("cpu")}
    out = func(*inner_args, **inner)
    if func is aten._to_copy.default and not here:
        return out
    if here:
        out = tree_map_only(torch.Tensor, Placed, out)
    return return_and_correct_aliasing(func, args, kwargs, out) if placed else out


class _Mode(TorchDispatchMode):
    """Sends operations to the device that are to have their result there."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        device = kwargs.get("device")
        if device is not None and torch.device(device).type == NAME:
            return computed(func, args, kwargs)
        return func(*args, **kwargs)


class _Accelerator(CPUAccelerator):
    @staticmethod
    def get_parallel_devices(devices):
        return [torch.device(NAME)] * (devices if isinstance(devices, int) else len(devices))

    @staticmethod
    def is_available():
        return True

    def setup_device(self, device):
        pass


_choose = _Connector._choose_strategy


def _strategy(connector):
    if isinstance(connector._accelerator_flag, _Accelerator) or connector._accelerator_flag == NAME:
        return SingleDeviceStrategy(device=torch.device(NAME))
    return _choose(connector)


_real_autocast = torch.autocast


def _autocast(device, *, enabled=True, **options):
    if device == NAME and not enabled:
        return nullcontext()
    return _real_autocast(device, enabled=enabled, **options)


_real_tensor = torch.tensor


def _tensor(data, *, device=None, **options):
    made = _real_tensor(data, **options)
    return made if device is None else made.to(device)


@contextmanager
def pretended_device():
    """Within it, "meta" is a device that computes; Lightning Fabric knows it as an accelerator."""
    with ExitStack() as stack:
        stack.enter_context(mock.patch.dict(ACCELERATOR_REGISTRY))
        ACCELERATOR_REGISTRY.register(NAME, _Accelerator, description="pretended", override=True)
        fused = ["cpu", NAME]
        # Fabric puts accelerators that it does not know on the CPU
        stack.enter_context(mock.patch.object(_Connector, "_choose_strategy", _strategy))
        stack.enter_context(mock.patch("torch.optim.optimizer._get_fused_kernels_supported_devices", lambda: fused))
        # subclasses of tensors cannot be made within it
        stack.enter_context(mock.patch("torch.inference_mode", torch.no_grad))
        stack.enter_context(mock.patch("torch.autocast", _autocast))
        # torch makes these without asking a mode
        stack.enter_context(mock.patch("torch.tensor", _tensor))
        stack.enter_context(_Mode())
        yield NAME
