"""The charts of the laboratory's records: one file for each figure or claim."""
