"""Data with known roles: the real sets of the paper and generators whose posteriors are known exactly.

Numpy only, and blind to `setminus.core`: ground truth is never computed by the code under test.
"""
