"""The torch side: the head that orthogonalizes two networks, and the losses that train with it."""

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise ImportError('setminus.nn needs torch: pip install "setminus[nn]"') from error
