"""The remedy of RLSbench (Garg et al. 2023) for domain adversarial training under label shift.

Batches of the source have equal class frequencies; so have batches of the target, by pseudo-labels that are renewed in
each epoch. At the end the classifier's probabilities are multiplied by the target's class frequencies, which black-box
shift estimation on held-out source rows gives.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from setminus.adaptation.domain_rows import held_out_rows
from setminus.adaptation.domains import DomainData, LabelShift, class_logits, estimated_prior
from setminus.adaptation.methods import AdaptationConfig, Dann
from setminus.adaptation.small_networks import small_networks
from setminus.adaptation.vada import VadaConfig
from setminus.nn.networks import seeded
from setminus.nn.passes import Batches
from setminus.nn.training import Loop, TrainingConfig, train

Floats = NDArray[np.float64]
STEPS, WIDTH, DOMAIN_WEIGHT = 1_000, 64, 0.1
"""As the defaults of `OrthogonalAdapter`."""


class PseudoBalancedDann(Dann):
    """`Dann` with batches of both domains balanced, those of the target by pseudo-labels."""

    def source_weights(self, labels: torch.Tensor) -> None:
        """None: the domain losses see balanced batches of both domains."""
        return

    def step(self, loop: Loop) -> None:
        """As `Dann`, with new pseudo-labels at the beginning of each epoch of the target."""
        since = loop.index - self.config.warmup
        if since >= 0 and since % len(self.target_batches) == 0:
            pseudo = class_logits(*self.predictor, self.data.target).argmax(1)
            target, size = self.data.target, self.config.batch
            self.target_batches = Batches(target, size=size, seed=self.target_batches.seed, balance_by=pseudo)
        super().step(loop)


def rlsbench(X: Floats, y: NDArray[np.int64], sample_domain: NDArray[np.int64], scored: Floats, seed: int) -> Any:
    """Predicted classes of the rows to score."""
    source = sample_domain > 0
    scale = np.sqrt((X[source].var(axis=0) + X[~source].var(axis=0)) / 2)
    centred = [(rows - X[source].mean(axis=0)) / np.where(scale > 0, scale, 1) for rows in (X, scored)]
    rows, new = (torch.from_numpy(one).float() for one in centred)
    labels = torch.from_numpy(y[source])
    held = torch.from_numpy(held_out_rows(y[source], 0.2, np.random.RandomState(seed)))
    x, n_classes = rows[source], int(labels.max()) + 1
    data = DomainData(x[~held], labels[~held], rows[~source], n_classes, x[held], labels[held])
    networks = seeded(seed, partial(small_networks, X.shape[1], n_classes, WIDTH))
    config = AdaptationConfig(VadaConfig(domain=DOMAIN_WEIGHT), warmup=STEPS // 5, balanced="batches")
    train(PseudoBalancedDann(networks, data, config, seed), TrainingConfig(steps=STEPS, seed=seed, log_every=0))
    prior = estimated_prior(networks.encoder, networks.head, data, LabelShift("bbse"))
    logits = class_logits(networks.encoder, networks.head, new).double().numpy()
    return (logits + np.log(np.maximum(prior, 1e-12))).argmax(axis=1)
