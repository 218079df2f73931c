"""Choices and ranges of the parameters of `OrthogonalAdapter`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf
from numbers import Integral, Real
from typing import Any, Literal, get_args

from setminus.errors import UserError

__all__ = [
    "CORRECTABLE",
    "WITH_PRIOR",
    "Device",
    "Discriminator",
    "Estimate",
    "Method",
    "PredictPrior",
    "check_parameters",
]

Method = Literal["auto", "vada_orthogonal", "vada", "vada_iw", "dann", "source_only"]
Estimate = Literal["em", "bbse", "pseudo"]
PredictPrior = Literal["auto", "equal", "target"]
Discriminator = Literal["orthogonal", "full"]
Device = Literal["cpu", "cuda", "mps", "auto"]

WITH_PRIOR = frozenset({"auto", "vada_iw", "vada_orthogonal"})
"""Methods that estimate the target's class frequencies: they use ``label_shift=`` and held-out source rows."""

CORRECTABLE = frozenset({"auto", "source_only", "vada_orthogonal"})
"""Methods with an estimate whose predictions are for equal class frequencies, and can be changed to the target's."""

_CHOICES: dict[str, tuple[str, ...]] = {
    "method": get_args(Method),
    "label_shift": get_args(Estimate),
    "predict_prior": get_args(PredictPrior),
    "discriminator": get_args(Discriminator),
}
_Rule = tuple[type, Callable[[Any], bool], str]
_COUNT: _Rule = (Integral, lambda value: value >= 1, "a whole number from 1 on")
_WEIGHT: _Rule = (Real, lambda value: 0 <= value < inf, "a weight of 0 or more")
_POSITIVE: _Rule = (Real, lambda value: 0 < value < inf, "a number above 0")
_NUMBERS: dict[str, _Rule] = {
    **dict.fromkeys(("hidden_size", "steps", "batch_size"), _COUNT),
    "refine_steps": (Integral, lambda value: value >= 0, "a whole number from 0 on"),
    **dict.fromkeys(("domain_weight", "source_smoothness", "target_smoothness", "target_entropy"), _WEIGHT),
    **dict.fromkeys(("learning_rate", "radius"), _POSITIVE),
    "shrinkage": (Real, lambda value: 0 <= value <= 1, "a share in [0, 1]"),
    "held_out": (Real, lambda value: 0 < value < 1, "a share between 0 and 1"),
}


def check_parameters(parameters: Mapping[str, Any]) -> None:
    """Check the choices and numbers of `OrthogonalAdapter.get_params`; raise an error for the first wrong one."""
    for name, choices in _CHOICES.items():
        value = parameters[name]
        if not isinstance(value, str) or value not in choices:
            raise UserError(f"{name} is {value!r}", expected=f"one of {', '.join(choices)}")
    for name, (kind, holds, expected) in _NUMBERS.items():
        value = parameters[name]
        # True is an integer to Python; NaN fails every comparison
        if isinstance(value, bool) or not isinstance(value, kind) or not holds(value):
            raise UserError(f"{name} is {value!r}", expected=f"{expected}")
    if not isinstance(parameters["early_stopping"], bool):
        raise UserError(f"early_stopping is {parameters['early_stopping']!r}", expected="True or False")
    known = parameters["target_prior"] is not None
    if known:
        # here, because commands read the choices of this module before scipy is needed
        from setminus.adaptation.label_shift import check_proportions

        check_proportions("target_prior", parameters["target_prior"])
    device = parameters["device"]
    if not isinstance(device, str) or device not in get_args(Device):
        raise UserError(f"device is {device!r}", expected=f"one of {', '.join(get_args(Device))}")
    if parameters["predict_prior"] != "target" or parameters["method"] in CORRECTABLE:
        return
    if parameters["method"] == "vada_iw" or not known:
        reason = "already predicts for the target" if parameters["method"] == "vada_iw" else "has no target estimate"
        raise UserError(
            f"predict_prior is 'target', method is {parameters['method']!r}",
            do=f"this method {reason}; use predict_prior='equal', or method='vada_orthogonal'.",
        )
