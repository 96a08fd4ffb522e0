"""Private house prices: a regression on real data, and the weights of its features.

Run it: python examples/house_prices.py  (California housing, 20,640 districts; downloaded the first time)
"""

import numpy as np

from taciturn.datasets import california_housing
from taciturn.estimators.sklearn import PrivateLinearRegression

# The loader scales columns by public ranges and states the resulting bounds; none is computed from the data.
# Prices lie between 0 and label_bound, so centred prices have half the bound.
data = california_housing()
middle = data.label_bound / 2.0
prices = data.y - middle
order = np.random.default_rng(0).permutation(len(data))
train, test = order[:18_000], order[18_000:]

print("Prices of 2,640 other districts, R² (not private: a measure of this example)")
for epsilon in (0.3, 1.0, 3.0):
    model = PrivateLinearRegression(
        epsilon=epsilon,
        delta=1e-6,
        feature_bound=data.feature_bound / 2.0,  # most rows are shorter; the others are scaled down
        label_bound=middle,
    )
    model.fit(data.X[train], prices[train])
    print(f"  epsilon = {epsilon:3}: {model.score(data.X[test], prices[test]):.2f}")

print("\nWhat a step from one end of a feature's range to the other is worth, in 100,000 dollars:")
step = 2.0 / len(data.names) ** 0.5  # columns lie in [-1, 1], all divided by sqrt(8)
for name, weight in sorted(zip(data.names, model.coef_ * step, strict=True), key=lambda item: -abs(item[1])):
    print(f"  {name:20} {weight:+.1f}")
print(f"\n{model.guarantee_}")
