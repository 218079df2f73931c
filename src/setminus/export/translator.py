"""The generator of a picture translator as an ONNX file, from bytes to bytes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from setminus.errors import MissingExtraError, UserError
from setminus.files import atomic_write

if TYPE_CHECKING:
    from setminus.nn.losses import Direction

__all__ = ["export_translator"]

MAX_LEVELS = 1
"""Between a byte of the graph and one of the translator, of 255: the last digit of a float32 may round otherwise."""

N_CHECKED = 4


def export_translator(translator: Any, path: str | os.PathLike[str], direction: Direction = "a_to_b") -> dict[str, Any]:
    """Write one generator of an `ImageTranslator`, and compare it with the translator on random pictures.

    Parameters
    ----------
    translator : ImageTranslator
        As ``setminus.transfer.translator.load_translator`` reads it.
    path : path
        The file to write. Its input ``images`` and its output ``translated`` are uint8 of shape (n, size, size, 3).
    direction : {"a_to_b", "b_to_a"}

    Returns
    -------
    dict
        The ``"size"`` of the pictures, and the largest ``"difference"`` of a byte.
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

    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (N_CHECKED, translator.size, translator.size, 3), dtype=np.uint8)
    # first: it refuses a wrong direction
    expected = translator.translate(images, direction)
    generator = OnBytes(getattr(translator, direction).cpu()).eval()
    with atomic_write(Path(path)) as partial:
        torch.onnx.export(
            generator,
            (torch.from_numpy(images),),
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
        (found,) = session.run(None, {"images": images[:-1]})
        difference = int(np.abs(found.astype(int) - expected[:-1].astype(int)).max())
        if difference > MAX_LEVELS:
            raise UserError(
                f"the exported generator differs from the translator by {difference} of 255 levels",
                do="report it, and use the translator in Python.",
            )
    return {"size": translator.size, "difference": difference}
