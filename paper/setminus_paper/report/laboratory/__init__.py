"""The former place of `setminus_paper.figures`, which an older installation still names."""
