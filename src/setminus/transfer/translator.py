"""Change one factor of pictures and keep another, as an estimator on arrays and on folders."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from setminus.datasets.images import Bytes, to_rgb
from setminus.datasets.split import UNLABELLED
from setminus.datasets.two_factor_folder import LabelledImages, TwoFactorFolder, code_labels
from setminus.errors import MissingExtraError, UserError
from setminus.estimators.sklearn_bases import BaseEstimator
from setminus.progress import tracked

if TYPE_CHECKING:
    import torch

    from setminus.transfer.factor_classifiers import FactorClassifiers
    from setminus.transfer.fitting import FittedTranslation, TranslationConfig
    from setminus.transfer.model_files import ImageTranslator

__all__ = ["OrthogonalTranslator", "Ready"]

MIN_SIDE, MAX_SIDE = 12, 256
"""Pixels per side of arrays; below, channels and rows could be confused."""
FOLDER_SIZE = 64
DIRECTIONS = {"b": "a_to_b", "a": "b_to_a"}
Ready = Callable[[dict[str, Any]], object]
"""Called before the long part of a training with "notes", warnings in words, and "seconds", its estimated time."""


class OrthogonalTranslator(BaseEstimator):
    r"""Translate pictures of one domain to the other, with one factor changed and the other differences kept.

    CycleGAN changes everything in which the domains differ. Here its generators play against a discriminator from which
    the factors that must stay are removed: ``log D + log r``, with `r` the density ratio of those factors between the
    domains, estimated by ``full \ principal`` or from labels.

    Parameters
    ----------
    change : str, optional
        Name of the factor to change; all other differences between the domains are kept. At least one of `change` and
        `keep` is needed.
    keep : str, optional
        Name of the factor to keep; all other differences are changed. With both names, the labels of `keep` give the
        ratio, and those of `change` measure what changes.
    principal : torch.nn.Module, optional
        A fitted classifier of the domain by the factor to change, from images in [-1, 1] of shape (n, 3, size, size) to
        logits of shape (n, 2). It takes the place of the one that is learned from the labels of `change`.
    principal_prior : (float, float) or "uniform", default="uniform"
        Frequencies of the domains in the data that `principal` was fitted on.
    steps : int, default=2400
        Number of training steps; each direction keeps its generator of the best evaluation (see `every`).
    batch_size : int, default=8
        Pictures of each domain in a step.
    learning_rate : float, default=5e-4
        Of generators and discriminators; it falls to zero over the second half of the steps.
    width : int, default=16
        Channels of the first layers.
    every : int, optional
        Steps between two evaluations, the best of which is kept; by default a quarter of all.
    baseline : bool, default=False
        Train plain CycleGAN as well, to compare: twice the time.
    device : {"auto", "cpu", "cuda", "mps"}, default="auto"
    devices : int, default=1
        Processes, one on each device, which share each batch.
    threads : int, optional
        Threads of each process; by default as torch is set.
    random_state : int, RandomState instance or None, default=0
        Of the split into training and held-out pictures, the initial weights and the batches.

    Attributes
    ----------
    domains_ : tuple of two labels
        Domain A and domain B: the labels of `domain` in sorted order, or the names of the folders.
    size_ : int
        Pixels per side.
    report_ : dict
        Measured on held-out pictures: the "verdict" ("good", "train longer" or "do not use"), and for each direction
        ("a_to_b", "b_to_a") "changed", "kept", "structure", its own "verdict" and the "step" of its generator;
        "baseline" has the same of plain CycleGAN; "accuracy" of the classifiers that measured it, "notes", "curves",
        "losses".
    samples_ : dict of str to uint8 array of shape (n, size, size, 3)
        Held-out pictures of A and B and their translations: "a", "a_to_b", "b", "b_to_a". A loaded model has none.

    Examples
    --------
    Squares on grounds; both colors differ between the domains, and the color of the square is changed:

    >>> rng = np.random.default_rng(0)
    >>> domain = np.repeat(["a", "b"], 40)
    >>> square, ground = (np.where(rng.random(80) < 0.8, domain == "b", domain == "a") for _ in range(2))
    >>> images = np.zeros((80, 16, 16, 3), dtype=np.uint8)
    >>> images[..., 1] = 180 * ground[:, None, None]
    >>> images[:, 4:12, 4:12, 0] = 100 + 155 * square[:, None, None]
    >>> translator = OrthogonalTranslator(change="square", steps=2, batch_size=4, width=4)
    >>> translator.fit(images, domain, {"square": square}).transform(images[:5], to="b").shape
    (5, 16, 16, 3)
    >>> translator.report_["verdict"] in ("good", "train longer", "do not use")
    True
    """

    domains_: tuple[str, str]
    translator_: ImageTranslator
    size_: int
    samples_: dict[str, Bytes]
    classifiers_: dict[str, torch.nn.Module]
    baseline_samples_: dict[str, Bytes]
    about_: dict[str, Any]
    report_: dict[str, Any]

    def __init__(
        self,
        change: str | None = None,
        keep: str | None = None,
        *,
        principal: Any = None,
        principal_prior: Any = "uniform",
        steps: int = 2_400,
        batch_size: int = 8,
        learning_rate: float = 5e-4,
        width: int = 16,
        every: int | None = None,
        baseline: bool = False,
        device: Literal["auto", "cpu", "cuda", "mps"] = "auto",
        devices: int = 1,
        threads: int | None = None,
        random_state: Any = 0,
    ):
        self.change = change
        self.keep = keep
        self.principal = principal
        self.principal_prior = principal_prior
        self.steps = steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.width = width
        self.every = every
        self.baseline = baseline
        self.device = device
        self.devices = devices
        self.threads = threads
        self.random_state = random_state

    def fit(
        self,
        images: ArrayLike,
        domain: ArrayLike,
        factors: Any,
        *,
        checkpoints: str | os.PathLike[str] | None = None,
        resume: bool = False,
        ready: Ready | None = None,
        look: Callable[[int, Bytes], None] | None = None,
    ) -> OrthogonalTranslator:
        """Learn from pictures of two domains and labels of a factor.

        Parameters
        ----------
        images : array of shape (n, size, size, channels) or (n, channels, size, size)
            The axis of length 3, or 1 for grey pictures, is that of the channels; sides have 12 to 256 pixels. Bytes
            (0 to 255), or floats from 0 to 1.
        domain : array of shape (n,)
            Two labels; the first in sorted order is domain A. Pictures with None, nan, "" or -1 belong to neither:
            their labels of factors are used.
        factors : mapping of str to array of shape (n,), data frame, or array of shape (n,)
            Labels of the factors that `change` and `keep` name, of two or a few values; None, nan or "" where a picture
            has none. A plain array where there is one factor. Label pictures at random: the frequency of a value among
            them is used as its frequency in the domain.
        checkpoints : path, optional
            Folder that keeps the state of the training, from which `resume` goes on.
        resume : bool, default=False
            Go on, also after the end: a larger `steps` trains on.
        ready : callable, optional
            Called before the long part with a dictionary: "notes" and "seconds".
        look : callable, optional
            Called with the number of steps and a grid of samples as one picture, at each evaluation.
        """
        config = self._config()
        pixels, _ = _as_bytes(images)
        y, self.domains_ = _code_domains(_labels(domain, len(pixels), "domain"))
        names = self._names()
        coded = [code_labels(_factor(factors, name, len(pixels), len(names)), y, name) for name in names]
        labelled = LabelledImages(pixels, y, *coded[0])
        if len(coded) == 2:
            labelled = replace(labelled, kept=coded[1][0], kept_values=coded[1][1])
        return self._fit(labelled, config, checkpoints, resume, ready, look)

    def fit_folders(
        self,
        a: str | os.PathLike[str],
        b: str | os.PathLike[str],
        labels: str | os.PathLike[str],
        *,
        size: int = FOLDER_SIZE,
        allow_grey: bool = False,
        checkpoints: str | os.PathLike[str] | None = None,
        resume: bool = False,
        ready: Ready | None = None,
        look: Callable[[int, Bytes], None] | None = None,
    ) -> OrthogonalTranslator:
        """Learn from two folders of pictures and a CSV of labels.

        Parameters
        ----------
        a, b : path
            Folders with pictures of each domain.
        labels : path
            A CSV: the first column has names of files, as in either folder or as a path from the folder of the CSV;
            others have factors. It may list a random part of the pictures, and pictures elsewhere.
        size : int, default=64
            Pictures are cut to the square in their middle and resized to this height and width.
        allow_grey : bool, default=False
            Accept grey pictures.
        checkpoints, resume, ready, look
            See `fit`.
        """
        # before the pictures are read, which takes a while
        config, names = self._config(), self._names()
        keep = names[1] if len(names) == 2 else None
        with tracked("read the pictures"):
            images = TwoFactorFolder(a, b, labels, names[0], size, allow_grey, keep).load()
        # resolved: a folder may have been given as a dot
        first, second = (Path(folder).resolve().name for folder in (a, b))
        self.domains_ = (first, second)
        return self._fit(images, config, checkpoints, resume, ready, look)

    def transform(self, images: ArrayLike, to: Any = "b") -> NDArray[Any]:
        """Translate pictures to a domain.

        Parameters
        ----------
        images : array
            In a form that `fit` takes, of the same size.
        to : "a", "b" or a label of `domains_`, default="b"
            The domain to translate to.

        Returns
        -------
        array
            Of the shape and the kind of `images`: bytes, or floats from 0 to 1.
        """
        check_is_fitted(self, "size_")
        from setminus.transfer.networks import image_tensor, signed, translate

        pixels, form = _as_bytes(images)
        if pixels.shape[1] != self.size_:
            raise UserError(
                f"pictures are {pixels.shape[1]} x {pixels.shape[2]}",
                expected=f"{self.size_} x {self.size_}; resize them",
            )
        generator = getattr(self.translator_, self.direction(to)).eval()
        inputs = signed(image_tensor(pixels)) if form.scaled is None else _tensor(form.scaled * 2 - 1)
        return form.restore(translate(generator, inputs).numpy())

    def direction(self, to: Any) -> Literal["a_to_b", "b_to_a"]:
        """The direction that leads to a domain, which is "a", "b" or a label of `domains_`."""
        check_is_fitted(self, "size_")
        names = {**dict(zip(self.domains_, "ab", strict=True)), **{letter: letter for letter in "ab"}}
        if to not in names:
            raise UserError(f"to is {to!r}", expected=f"'a', 'b', or one of {self.domains_}")
        return "a_to_b" if names[to] == "b" else "b_to_a"

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write the model to a folder: networks as safetensors, everything else as JSON.

        Parameters
        ----------
        folder : path
            Made where it does not exist; a model in there is replaced.

        Returns
        -------
        Path
            The folder.
        """
        check_is_fitted(self, "size_")
        from setminus.transfer.model_files import save_translator

        # a user's own network stays the user's
        params = {
            name: value for name, value in self.get_params().items() if name not in ("principal", "principal_prior")
        }
        if not isinstance(params["random_state"], int | None):
            params["random_state"] = None
        about = {**self.about_, "params": params, "domains": list(self.domains_), "report": self.report_}
        modules = getattr(self, "classifiers_", {})
        return save_translator(replace(self.translator_, about=about), folder, modules)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> OrthogonalTranslator:
        """Read what `save` or ``setminus transfer fit`` wrote; nothing in the files is run.

        Parameters
        ----------
        folder : path

        Returns
        -------
        OrthogonalTranslator
            Fitted; its `principal` is None.
        """
        _need_torch()
        from setminus.transfer.model_files import load_translator

        made = load_translator(folder)
        about = dict(made.about)
        params, report, domains = (about.pop(name, None) for name in ("params", "report", "domains"))
        # models of version 0.1.0 have neither
        params = {about.get("role", "change"): about.get("column")} if params is None else params
        domains = ["a", "b"] if domains is None else domains
        try:
            translator = cls(**params)
            translator.domains_ = (domains[0], domains[1])
            translator.report_ = dict(report or {})
        except (TypeError, ValueError, LookupError) as error:
            raise UserError(
                f"the model in {str(folder)!r} is damaged (its settings cannot be read)", do="fit it again, or copy it."
            ) from error
        translator.about_, translator.translator_, translator.size_ = about, made, made.size
        return translator

    def _names(self) -> list[str]:
        names = [name for name in (self.change, self.keep) if name is not None]
        if not names:
            raise UserError(
                "neither change nor keep is given",
                do="name one factor: change for what is to change, keep for what stays.",
            )
        if len(set(names)) < len(names):
            raise UserError(
                f"change and keep are both {self.change!r}", expected="two factors, or one of the two names"
            )
        return names

    def _config(self) -> TranslationConfig:
        _need_torch()
        from setminus.transfer.fitting import TranslationConfig

        self._names()
        state = self.random_state
        seed = state if isinstance(state, int) else int(check_random_state(state).randint(2**31))
        return TranslationConfig(
            "keep" if self.change is None else "change",
            **{name: getattr(self, name) for name in ("steps", "batch_size", "width", "every", "baseline")},
            **{name: getattr(self, name) for name in ("device", "devices", "threads")},
            rate=self.learning_rate,
            seed=seed,
        )

    def _fit(
        self,
        images: LabelledImages,
        config: TranslationConfig,
        checkpoints: str | os.PathLike[str] | None,
        resume: bool,
        ready: Ready | None,
        look: Callable[[int, Bytes], None] | None,
    ) -> OrthogonalTranslator:
        from setminus.nn.training import NotFiniteError
        from setminus.transfer.fitting import fit_translation, fitting_notes

        column = self._names()[0]
        notes: list[str] = []

        def checked(classifiers: FactorClassifiers, seconds: float | None) -> None:
            notes.extend(fitting_notes(images, classifiers, config.role, column))
            if ready is not None:
                ready({"notes": notes, "seconds": seconds})

        try:
            made = fit_translation(
                images,
                config,
                principal=self.principal,
                principal_prior=self.principal_prior,
                folder=None if checkpoints is None else Path(checkpoints),
                resume=resume,
                checked=checked,
                look=look,
            )
        except NotFiniteError as error:
            raise UserError(
                f"the training broke down ({error})", do="begin anew with a smaller learning rate."
            ) from error
        self.translator_, self.size_, self.samples_ = made.translator, made.translator.size, made.strips
        self.classifiers_ = made.classifiers.modules
        self.baseline_samples_ = made.baseline.pop("strips", {})
        self.about_ = {
            "column": column,
            "values": list(images.values),
            "role": config.role,
            "data": " and ".join(map(str, self.domains_)),
        }
        self.report_ = _report(images, made, notes)
        return self


class _Form:
    """How pictures came in, and how translations go out: the axis of the channels, their number, bytes or floats."""

    def __init__(self, first: bool, grey: bool, scaled: NDArray[np.float32] | None):
        self.first, self.grey, self.scaled = first, grey, scaled

    def restore(self, signed: NDArray[np.float32]) -> NDArray[Any]:
        pictures = signed.mean(axis=1, keepdims=True) if self.grey else signed
        if self.scaled is None:
            out: NDArray[Any] = np.rint((pictures + 1) * 127.5).clip(0, 255).astype(np.uint8)
        else:
            out = ((pictures + 1) / 2).clip(0, 1)
        return out if self.first else np.ascontiguousarray(out.transpose(0, 2, 3, 1))


def _as_bytes(images: ArrayLike) -> tuple[Bytes, _Form]:
    """Pictures as bytes of shape (n, size, size, 3)."""
    array = np.asarray(images)
    shape = array.shape
    places = [axis for axis in (1, 3) if array.ndim == 4 and shape[axis] in (1, 3)]
    if len(places) != 1 or len(array) == 0:
        raise UserError(
            f"images have the shape {shape}",
            expected="(n, size, size, channels) or (n, channels, size, size), with 3 channels, or 1 of grey pictures",
        )
    last = np.moveaxis(array, places[0], 3)
    side = last.shape[1]
    if side != last.shape[2] or not MIN_SIDE <= side <= MAX_SIDE:
        raise UserError(
            f"pictures are {side} x {last.shape[2]}",
            expected=f"squares of {MIN_SIDE} to {MAX_SIDE} pixels per side",
            do="cut or resize them; fit_folders does it for files.",
        )
    form = _Form(places[0] == 1, last.shape[3] == 1, None)
    if array.dtype != np.uint8:
        if not np.issubdtype(array.dtype, np.floating):
            raise UserError(f"images are {array.dtype}", expected="uint8 from 0 to 255, or floats from 0 to 1")
        low, high = float(array.min()), float(array.max())
        # also where one of them is nan
        if not (low >= 0 and high <= 1):
            raise UserError(f"images are floats from {low:g} to {high:g}", expected="floats from 0 to 1; rescale them")
        floats = np.moveaxis(last, 3, 1).astype(np.float32)
        form.scaled = np.repeat(floats, 3, axis=1) if form.grey else floats
        last = np.rint(last * 255).astype(np.uint8)
    return to_rgb(np.ascontiguousarray(last)), form


def _tensor(values: NDArray[np.float32]) -> Any:
    import torch

    return torch.from_numpy(np.ascontiguousarray(values))


def _labels(given: Any, n: int, name: str) -> NDArray[Any]:
    """Labels as objects; None where one is missing."""
    array = np.asarray(given, dtype=object)
    if array.shape != (n,):
        raise UserError(f"{name} has the shape {array.shape}", expected=f"one label for each of {n} pictures")
    # nan is the only value that differs from itself
    return np.array([None if one is None or one != one or one == "" else one for one in array], dtype=object)


def _code_domains(labels: NDArray[Any]) -> tuple[NDArray[np.int64], tuple[Any, Any]]:
    known = {
        label for label in labels if label is not None and not (label == UNLABELLED and not isinstance(label, str))
    }
    if len(known) != 2:
        shown = ", ".join(sorted(repr(label) for label in list(known)[:5]))
        raise UserError(f"domain has {len(known)} labels ({shown})", expected="two, such as 'a' and 'b'")
    try:
        first, second = sorted(known)
    except TypeError:
        first, second = sorted(known, key=str)
    y = np.select([labels == first, labels == second], [0, 1], UNLABELLED).astype(np.int64)
    plain = tuple(label.item() if isinstance(label, np.generic) else label for label in (first, second))
    return y, (plain[0], plain[1])


def _factor(factors: Any, name: str, n: int, n_names: int) -> NDArray[np.str_]:
    if isinstance(factors, Mapping) or hasattr(factors, "columns"):
        try:
            column = factors[name]
        except KeyError:
            raise UserError(f"factors have no {name!r}", expected=f"its labels; they have {[*factors]}") from None
    elif n_names == 1:
        column = factors
    else:
        raise UserError("factors is one array, and two factors are named", expected="a mapping with both names")
    labels = _labels(column, n, f"factor {name!r}")
    return np.array(["" if label is None else str(label) for label in labels])


def _report(images: LabelledImages, made: FittedTranslation, notes: list[str]) -> dict[str, Any]:
    evaluations, history, found = made.outcome.evaluations, made.outcome.history, made.classifiers
    return {
        "verdict": made.verdict,
        "directions": made.scores,
        "baseline": made.baseline,
        "accuracy": {name: asdict(one) for name, one in found.accuracy.items()},
        "factors": {name: asdict(one) for name, one in found.factors.items()},
        "images": {**made.images, "elsewhere": int((images.y == UNLABELLED).sum())},
        "labelled": int((images.z != UNLABELLED).sum()),
        "notes": notes,
        "curves": {
            "step": [one["step"] for one in evaluations],
            **{direction: [one[direction] for one in evaluations] for direction in DIRECTIONS.values()},
        },
        "losses": {name: [round(entry[name], 4) for entry in history] for name in history[0]},
        "steps": made.outcome.steps,
        "seconds": made.outcome.seconds,
    }


def _need_torch() -> None:
    for name in ("torch", "lightning_fabric", "safetensors"):
        try:
            __import__(name)
        except ModuleNotFoundError as error:
            raise MissingExtraError("style transfer", name, extra="nn") from error
