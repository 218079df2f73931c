"""The image sets that the library knows: size, classes, and where a user finds the official files."""

from __future__ import annotations

from dataclasses import dataclass

DIGITS = tuple("0123456789")
CIFAR10 = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
STL10 = ("airplane", "bird", "car", "cat", "deer", "dog", "horse", "monkey", "ship", "truck")
# the class ids of the German benchmark, which the synthetic signs share
TRAFFIC_SIGNS = (
    "speed limit 20",
    "speed limit 30",
    "speed limit 50",
    "speed limit 60",
    "speed limit 70",
    "speed limit 80",
    "end of speed limit 80",
    "speed limit 100",
    "speed limit 120",
    "no passing",
    "no passing for trucks",
    "right of way at the next intersection",
    "priority road",
    "yield",
    "stop",
    "no vehicles",
    "no trucks",
    "no entry",
    "danger",
    "curve to the left",
    "curve to the right",
    "double curve",
    "bumpy road",
    "slippery road",
    "road narrows on the right",
    "road work",
    "traffic lights",
    "pedestrians",
    "children",
    "bicycles",
    "ice or snow",
    "wild animals",
    "end of all limits",
    "turn right ahead",
    "turn left ahead",
    "ahead only",
    "ahead or right",
    "ahead or left",
    "keep right",
    "keep left",
    "roundabout",
    "end of no passing",
    "end of no passing for trucks",
)


@dataclass(frozen=True)
class ImageSet:
    """What is known of a set beside its files.

    Parameters
    ----------
    name : str
        What `load_images` is asked for.
    shape : tuple of int
        Height, width and channels of an image.
    class_names : tuple of str
        What the labels 0, 1, 2, ... stand for.
    advice : str
        What to do where no source has the set.
    drawn : bool, default=False
        Whether it is made when it is asked for, so that it needs no source.

    Examples
    --------
    >>> IMAGE_SETS["stl10"].class_names[2]
    'car'
    """

    name: str
    shape: tuple[int, int, int]
    class_names: tuple[str, ...]
    advice: str
    drawn: bool = False


def _npz_only(owner: str) -> str:
    return f"or make an .npz of your own from the official files ({owner}) and read it with load_npz."


IMAGE_SETS: dict[str, ImageSet] = {
    known.name: known
    for known in (
        ImageSet(
            "mnist",
            (28, 28, 1),
            DIGITS,
            "or put the four official files (train-images-idx3-ubyte.gz and so on) into images/mnist/ there.",
        ),
        ImageSet("usps", (16, 16, 1), DIGITS, _npz_only("zip.train.gz and zip.test.gz of hastie.su.domains")),
        ImageSet("mnist_m", (32, 32, 3), DIGITS, _npz_only("the authors' page of domain-adversarial training")),
        ImageSet(
            "svhn",
            (32, 32, 3),
            DIGITS,
            "or put train_32x32.mat and test_32x32.mat (ufldl.stanford.edu/housenumbers) into images/svhn/ there.",
        ),
        ImageSet("drawn_digits", (32, 32, 3), DIGITS, "", drawn=True),
        ImageSet("gtsrb", (32, 32, 3), TRAFFIC_SIGNS, _npz_only("benchmark.ini.rub.de")),
        ImageSet("syn_signs", (32, 32, 3), TRAFFIC_SIGNS, _npz_only("the authors of the Synthetic Signs dataset")),
        ImageSet(
            "cifar10",
            (32, 32, 3),
            CIFAR10,
            "or put cifar-10-binary.tar.gz (www.cs.toronto.edu/~kriz/cifar.html) into images/ there, "
            "as it is or unpacked.",
        ),
        ImageSet(
            "stl10",
            (32, 32, 3),
            STL10,
            "or unpack stl10_binary.tar.gz (cs.stanford.edu/~acoates/stl10) into images/ there.",
        ),
    )
}
