"""The torch side: the head that orthogonalizes two networks, and the losses that train with it."""

from setminus.errors import MissingExtraError

try:
    import torch as _torch  # noqa: F401
except ImportError as _error:
    raise MissingExtraError("setminus.nn", "torch", extra="nn") from _error
