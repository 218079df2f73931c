"""VADA that estimates the target's class frequencies as it learns; what is done with them is left open."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setminus.adaptation.adaptation_task import AdaptationConfig, AdaptationTask, DomainData
from setminus.adaptation.target_prior import LabelShift, TargetPrior
from setminus.adaptation.vada import VadaNetworks
from setminus.adaptation.vada_task import Vada
from setminus.nn.training import Loop

__all__ = ["EstimatingVada"]


class EstimatingVada(Vada):
    """VADA with a `TargetPrior` that is brought up to date before each step.

    Parameters
    ----------
    networks, data, config, seed, watch
        See `AdaptationTask`.
    label_shift : LabelShift
    """

    def __init__(
        self,
        networks: VadaNetworks,
        data: DomainData,
        config: AdaptationConfig,
        seed: int,
        *,
        label_shift: LabelShift,
        watch: Callable[[AdaptationTask], dict[str, Any]] | None = None,
    ) -> None:
        super().__init__(networks, data, config, seed, watch=watch)
        epoch = config.estimate_every or len(self.target_batches)
        self.prior = TargetPrior(data, label_shift, start=config.warmup, epoch=epoch)
        self.modules["prior"] = self.prior

    @property
    def target_prior(self) -> NDArray[np.float64]:
        """The current estimate of the target's class frequencies."""
        prior: NDArray[np.float64] = self.prior.target.cpu().numpy().copy()
        return prior

    def step(self, loop: Loop) -> None:
        """As VADA, with the estimate of this step."""
        self.prior.update(loop.index, *self.predictor, self.data)
        super().step(loop)
