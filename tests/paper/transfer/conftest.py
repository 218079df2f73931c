"""The painted squares of the library's tests, and classifiers that are exact on them."""

from tests.transfer.conftest import exact, squares

__all__ = ["exact", "squares"]
