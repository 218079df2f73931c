"""The tests compute with the same kernels on every x86 processor; pytest reads this before numpy is loaded."""

import os
import platform

if platform.machine().lower() in {"x86_64", "amd64"}:
    # OpenBLAS rounds differently on each processor. The sixth digit of a logistic regression then differs, and a tuned
    # classifier may choose another of two nearly equal decisions, whose numbers the documents show.
    os.environ.setdefault("OPENBLAS_CORETYPE", "Haswell")
