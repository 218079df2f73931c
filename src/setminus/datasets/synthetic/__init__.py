"""Models whose posteriors are known exactly: the ground truth that the method is tested against.

In each, `y` causes `z1` and `z2`, and `x` shows both. With ``dependence=0`` they are independent given `y`,
which is what the method assumes; a larger value breaks exactly that and keeps p(y|z1) and p(y|z2).
"""
