"""Tables 4 and 5: predictors that are fair to groups. Each method is a function from `Trials` to `Predictions`."""
