"""
One case at a time, or the top of a batch
=========================================

A clinic sees one patient after the other; a back office gets a batch every day. `defer` decides about
each case alone, by a threshold. `defer_top` takes the cases of a batch with the highest scores, and
meets its number exactly.
"""

import matplotlib.pyplot as plt
import numpy as np

from deferlearn import AssistedSVC
from deferlearn.datasets import make_linear
from deferlearn.humans import UniformHuman

scores = UniformHuman(0.2)
X_new, _ = make_linear(3000, random_state=100)

# %%
# The threshold is set by cross-validation so that the rate on new cases is that of training. This holds
# on average, and no single fit meets it exactly. Here are six fits, each with its own training data.

rates, trained, shares = [], [], []
for seed in range(6):
    X, y = make_linear(200, random_state=seed)
    team = AssistedSVC(budget=0.2, policy="mlp", random_state=0, submodularity_ratio=0.1)
    team.fit(X, y, human_scores=scores.scores(y, random_state=seed))
    taken = team.defer(X_new)
    rates.append(taken.mean())
    trained.append(team.deferral_rate_)
    shares.append(np.cumsum(taken) / np.arange(1, len(taken) + 1))

print(f"share deferred in training: {np.mean(trained):.3f}")
print(f"mean rate of the six fits: {np.mean(rates):.3f}, from {min(rates):.3f} to {max(rates):.3f}")

# %%
# In batches of 50, `defer_top` meets the number each time. The drawback is that the decision about a case
# depends on the other cases in its batch.

batches = np.split(X_new[:1000], 20)
figure, (left, right) = plt.subplots(1, 2, figsize=(8.4, 3.4), layout="constrained")
for share in shares:
    left.plot(share, color="#0072B2", alpha=0.6)
left.axhline(0.2, color="0.2", linestyle="--", label="budget")
left.set(xlabel="cases seen", ylabel="share sent to the human", ylim=(0, 0.4), title="defer")
left.legend(fontsize=8)
right.plot([team.defer_top(b).sum() for b in batches], "o-", color="#D55E00", label="defer_top")
right.plot([team.defer(b).sum() for b in batches], "s--", color="#0072B2", label="defer")
right.set(xlabel="batch of 50", ylabel="cases for the human", ylim=(0, None), title="in batches")
right.legend(fontsize=8)
