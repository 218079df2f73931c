"""No adaptation: the source's cross entropy."""

from __future__ import annotations

from torch.nn.functional import cross_entropy

from setminus.adaptation.adaptation_task import AdaptationTask
from setminus.nn.passes import in_float32
from setminus.nn.training import Loop

__all__ = ["SourceOnly"]


class SourceOnly(AdaptationTask):
    """What the others have to beat: trained on the source, it never sees the target."""

    @property
    def met(self) -> int:
        """0: the domains never meet, and each of its networks counts."""
        return 0

    def step(self, loop: Loop) -> None:
        """Cross entropy on a batch of the source."""
        x, labels = loop.batch(self.source_batches)
        weights = self.class_weights(loop.index)
        logits = in_float32(self.networks.head(self.networks.encoder(x)))
        loop.update("classifier", cross_entropy(logits, labels, None if weights is None else weights.to(loop.device)))
