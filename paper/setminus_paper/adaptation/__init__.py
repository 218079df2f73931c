"""Table 3: domain adaptation under label shift."""
