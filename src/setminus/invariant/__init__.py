"""Principal classifiers learned from what is stable across environments."""
