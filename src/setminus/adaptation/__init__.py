"""Adapting a classifier to unlabelled data of another domain, also where the classes are shifted."""
