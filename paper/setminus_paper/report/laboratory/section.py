"""The former place of `setminus_paper.figures`, which an older installation still names."""

from setminus_paper.figures import laboratory_section

__all__ = ["laboratory_section"]
