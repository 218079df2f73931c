"""The method as scikit-learn estimators."""
