"""A refinement on the target alone, after adaptation (DIRT-T, Shu et al. 2018)."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from setminus.adaptation.adaptation_task import AdaptationConfig, AdaptationTask, DomainData
from setminus.adaptation.vada import VadaNetworks
from setminus.errors import UserError
from setminus.nn.losses import conditional_entropy, virtual_adversarial_loss
from setminus.nn.passes import in_float32, running_statistics_kept
from setminus.nn.training import Loop

__all__ = ["DirtT"]


class DirtT(AdaptationTask):
    """Push the boundary out of where target rows are dense, in small steps away from the classifier it was.

    ``loss = target_vat * VAT(target) + target_entropy * H(target) + anchor * mean KL(teacher || classifier)``

    The teacher is the classifier of some steps ago.

    Parameters
    ----------
    networks : VadaNetworks
        After the training of another method.
    data, seed, watch
        See `AdaptationTask`.
    config : AdaptationConfig
        Its weights of the target's losses; there is no warm-up.
    anchor : float, default=1e-2
    teacher_every : int, default=500
        Steps until the classifier becomes the next teacher.
    """

    def __init__(
        self,
        networks: VadaNetworks,
        data: DomainData,
        config: AdaptationConfig,
        seed: int,
        *,
        anchor: float = 1e-2,
        teacher_every: int = 500,
        watch: Callable[[AdaptationTask], dict[str, Any]] | None = None,
    ) -> None:
        super().__init__(networks, data, config, seed, watch=watch)
        if not (anchor >= 0 and teacher_every >= 1):
            raise UserError(
                f"anchor is {anchor}, teacher_every is {teacher_every}",
                expected="a weight of 0 or more, and at least one step",
            )
        self.anchor = anchor
        self.teacher_every = teacher_every
        self.teacher = nn.Sequential(copy.deepcopy(networks.encoder), copy.deepcopy(networks.head)).eval()
        self.modules["teacher"] = self.teacher

    def step(self, loop: Loop) -> None:
        """Both losses of the target, and the distance to the teacher."""
        if loop.index % self.teacher_every == 0:
            for taught, learned in zip(self.teacher, self.predictor, strict=True):
                taught.load_state_dict(learned.state_dict())
        losses = self.config.losses
        encoder, head = self.predictor
        (target,) = loop.batch(self.target_batches)

        def classify_unremembered(x: torch.Tensor) -> torch.Tensor:
            with running_statistics_kept(encoder, head):
                return in_float32(head(encoder(x)))

        logits = in_float32(head(encoder(target)))
        with torch.no_grad():
            log_teacher = in_float32(self.teacher(target)).log_softmax(1)
        distance = (log_teacher.exp() * (log_teacher - logits.log_softmax(1))).sum(1).mean()
        loss = losses.target_entropy * conditional_entropy(logits) + self.anchor * distance
        if losses.target_vat:
            loss = loss + losses.target_vat * virtual_adversarial_loss(
                classify_unremembered,
                target,
                radius=losses.vat_radius,
                xi=losses.vat_xi,
                power_steps=losses.vat_power_steps,
                clean_logits=logits,
            )
        loop.update("classifier", loss)
