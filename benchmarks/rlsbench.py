"""The remedy of RLSbench (Garg et al. 2023) for domain adversarial training under label shift, on rows of numbers.

`BalancedVada` without VAT and target entropy: DANN on batches of equal class frequencies in both domains, and
predictions for the class frequencies that black-box shift estimation gives.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from setminus_paper.adaptation.rivals import BalancedVada

from setminus.adaptation.domain_rows import held_out_rows
from setminus.adaptation.domains import DomainData
from setminus.adaptation.methods import AdaptationConfig
from setminus.adaptation.small_networks import small_networks
from setminus.adaptation.vada import VadaConfig
from setminus.nn.networks import seeded
from setminus.nn.training import TrainingConfig, train

Floats = NDArray[np.float64]
STEPS, WIDTH = 1_000, 64
LOSSES = VadaConfig(domain=0.1, source_vat=0.0, target_vat=0.0, target_entropy=0.0)
"""As the defaults of `OrthogonalAdapter` for DANN."""


def rlsbench(
    X: Floats, y: NDArray[np.int64], sample_domain: NDArray[np.int64], scored: Floats, seed: int
) -> NDArray[np.int64]:
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
    task = BalancedVada(networks, data, AdaptationConfig(LOSSES, warmup=STEPS // 5), seed)
    train(task, TrainingConfig(steps=STEPS, seed=seed, log_every=0))
    return task.predict_proba(new).argmax(axis=1)
