"""The methods of adaptation by name."""

from __future__ import annotations

from setminus.adaptation.adaptation_task import AdaptationTask
from setminus.adaptation.dann import Dann
from setminus.adaptation.source_only import SourceOnly
from setminus.adaptation.vada_iw import VadaIw
from setminus.adaptation.vada_orthogonal import VadaOrthogonal
from setminus.adaptation.vada_task import Vada

__all__ = ["METHODS"]

METHODS: dict[str, type[AdaptationTask]] = {
    "source_only": SourceOnly,
    "dann": Dann,
    "vada": Vada,
    "vada_iw": VadaIw,
    "vada_orthogonal": VadaOrthogonal,
}
"""Each is made by ``METHODS[name](networks, data, config, seed)`` and trained by `setminus.nn.training.train`."""
