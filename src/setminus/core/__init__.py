"""The method on arrays: nothing here knows of estimators, frames or files."""
