import sys
from pathlib import Path

# the benchmarks are run from the project's root, not installed
sys.path.insert(0, str(Path(__file__).parents[2]))
