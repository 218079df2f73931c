"""Section 6 of the paper: a predictor that is fair to groups, ours beside what it is compared with.

Each method is one function from `trials.Trials` to `predictions.Predictions`, all seeds at once.
"""
