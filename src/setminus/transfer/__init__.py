"""Section 4 of the paper: change one factor of an image, keep the others."""
