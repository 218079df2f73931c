"""The generator of a picture translator as an ONNX file, from bytes to bytes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from setminus.errors import MissingExtraError, UserError
from setminus.files import atomic_write
from setminus.transfer.translator import OrthogonalTranslator

__all__ = ["export_translator"]

MAX_LEVELS = 1
"""Largest difference of a byte, of 255, between graph and translator: float32 may round its last digit differently."""

N_CHECKED = 4


def export_translator(
    translator: OrthogonalTranslator, path: str | os.PathLike[str], images: Any = None, to: Any = "b"
) -> dict[str, Any]:
    """Write the generator of one direction, and compare it with the translator.

    Parameters
    ----------
    translator : OrthogonalTranslator
    path : path
        The file to write. Its input ``images`` and its output ``translated`` are uint8 of shape (n, size, size, 3).
    images : uint8 array of shape (n, size, size, 3), optional
        Two pictures or more to compare on, of which the first four are used; random ones by default.
    to : "a", "b" or a label of `domains_`, default="b"

    Returns
    -------
    dict
        The ``"size"`` of the pictures, the number of ``"rows"`` compared, and the largest ``"difference"`` of a byte.
    """
    try:
        import onnxruntime
        import onnxscript  # noqa: F401 - torch needs it
        import torch
    except ImportError as error:
        raise MissingExtraError("the export to ONNX", error.name or "onnx", extra="onnx") from error

    class OnBytes(torch.nn.Module):  # type: ignore[misc]
        """The generator between bytes, channels last."""

        def __init__(self, generator: torch.nn.Module):
            super().__init__()
            self.generator = generator

        def forward(self, images: Any) -> Any:
            signed = images.permute(0, 3, 1, 2).float() / 127.5 - 1
            levels = (self.generator(signed) + 1) * 127.5
            return levels.clamp(0, 255).round().to(torch.uint8).permute(0, 2, 3, 1)

    # first: it refuses a domain that does not exist
    direction, size = translator.direction(to), translator.size_
    shape = (N_CHECKED, size, size, 3)
    given = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8) if images is None else np.asarray(images)
    pictures = given[:N_CHECKED]
    if pictures.dtype != np.uint8 or pictures.shape[1:] != shape[1:] or len(pictures) < 2:
        raise UserError(
            f"the sample is {pictures.dtype} of shape {given.shape}",
            expected=f"two or more, uint8, (n, {size}, {size}, 3)",
        )
    expected = translator.transform(pictures, to)
    generator = OnBytes(getattr(translator.translator_, direction).cpu()).eval()
    with atomic_write(Path(path)) as partial:
        torch.onnx.export(
            generator,
            (torch.from_numpy(np.ascontiguousarray(pictures)),),
            partial,
            input_names=["images"],
            output_names=["translated"],
            dynamo=True,
            dynamic_shapes={"images": {0: torch.export.Dim.DYNAMIC}},
            external_data=False,
            verbose=False,
        )
        session = onnxruntime.InferenceSession(partial.read_bytes(), providers=["CPUExecutionProvider"])
        # another number of pictures than that of the export
        (found,) = session.run(None, {"images": pictures[:-1]})
        difference = int(np.abs(found.astype(int) - expected[:-1].astype(int)).max())
        if difference > MAX_LEVELS:
            raise UserError(
                f"the exported generator differs from the translator by {difference} of 255 levels",
                do="report it, and use the translator in Python.",
            )
    return {"size": size, "rows": len(pictures) - 1, "difference": difference}
