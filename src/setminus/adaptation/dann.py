"""Domain adversarial training alone (DANN, Ganin et al. 2016)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from setminus.adaptation.adaptation_task import AdaptationConfig, AdaptationTask, DomainData
from setminus.adaptation.vada import VadaNetworks
from setminus.adaptation.vada_task import Vada

__all__ = ["Dann"]


class Dann(Vada):
    """VADA without its smoothness and its entropy: ``cross_entropy + domain * domain_term``."""

    def __init__(
        self,
        networks: VadaNetworks,
        data: DomainData,
        config: AdaptationConfig,
        seed: int,
        *,
        watch: Callable[[AdaptationTask], dict[str, Any]] | None = None,
    ) -> None:
        losses = replace(config.losses, source_vat=0.0, target_vat=0.0, target_entropy=0.0)
        super().__init__(networks, data, replace(config, losses=losses), seed, watch=watch)
