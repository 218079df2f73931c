"""The methods of table 3 by name."""

from __future__ import annotations

from setminus.applications.domain_adaptation.adaptation_task import AdaptationTask
from setminus.applications.domain_adaptation.adda import Adda
from setminus.applications.domain_adaptation.cycada import Cycada
from setminus.applications.domain_adaptation.dann import Dann
from setminus.applications.domain_adaptation.source_only import SourceOnly
from setminus.applications.domain_adaptation.vada_iw import VadaIw
from setminus.applications.domain_adaptation.vada_orthogonal import VadaOrthogonal
from setminus.applications.domain_adaptation.vada_task import Vada

__all__ = ["METHODS"]

METHODS: dict[str, type[AdaptationTask]] = {
    "source_only": SourceOnly,
    "dann": Dann,
    "adda": Adda,
    "cycada": Cycada,
    "vada": Vada,
    "vada_iw": VadaIw,
    "vada_orthogonal": VadaOrthogonal,
}
"""Each is made by ``METHODS[name](networks, data, config, seed)`` and trained by `setminus.nn.training.train`."""
