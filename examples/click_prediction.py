"""Private click prediction: models are published as impressions arrive; all of them together are private.

Run it: python examples/click_prediction.py
"""

import numpy as np

from taciturn.datasets import ad_impressions
from taciturn.estimators.sklearn import PrivateLogisticRegression

DAYS, IMPRESSIONS = 10, 5_000

# Public settings are stated before the first impression: their number, a bound on the norm of a row, and the labels.
# None of them is computed from the data.
model = PrivateLogisticRegression(
    epsilon=1.0,
    delta=1e-6,
    feature_bound=1.0,
    classes=[-1, 1],
    horizon=DAYS * IMPRESSIONS,
    release=500,
)

stream = ad_impressions(DAYS * IMPRESSIONS, seed=1)
tomorrow = ad_impressions(20_000, seed=2)
# A private prefix sum is charged once, with its first release: later models cost nothing more.
print("day  models  epsilon spent  accuracy on another day (not private: a measure of this example)")
for day, rows in enumerate(np.split(np.arange(len(stream)), DAYS), start=1):
    model.partial_fit(stream.X[rows], stream.y[rows])
    accuracy = model.score(tomorrow.X, tomorrow.y)
    print(f"{day:3}  {model.n_releases_:6}  {model.privacy_spent_.epsilon:13.3f}  {accuracy:.1%}")

print("\nWhat an ad that matches its query is worth, by topic:")
for name, weight in zip(stream.names[:6], model.coef_[0], strict=False):
    print(f"  {name}  {weight:+.2f}")
print(f"\n{model.guarantee_}")
