"""Ratios against the memory limit, and accuracy against fairness beside other libraries. Run: python -m benchmarks."""
