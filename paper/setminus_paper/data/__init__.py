"""Readers of the paper's image sets."""
