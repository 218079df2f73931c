"""The method on arrays: no estimators, no frames, no files."""
