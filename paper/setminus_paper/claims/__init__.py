"""The paper's claims, figures and counter-examples as runs: one file each, checked against closed forms."""
