"""
Figure 1: hulls and reduced hulls
=================================

The paper's bound for machines with an offset depends on how far the classes are apart. If their convex
hulls overlap, the distance is zero. Reduced hulls, in which no sample may have a weight of more than
1/s, shrink towards the means of the classes until they are separate.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Polygon

from deferlearn.bounds import separating_hulls
from deferlearn.experiments.fig1 import hull, samples
from deferlearn.objective import SVMObjective

X, y = samples(seed=31)
first = separating_hulls(SVMObjective(X, y))
figure, axes = plt.subplots(1, 2, figsize=(8, 3.8), layout="constrained", sharex=True, sharey=True)
for ax, sizes in zip(axes, [[1], [2, int(first.s)]], strict=True):
    for label, colour in [(-1, "#0072B2"), (1, "#D55E00")]:
        part = X[y == label]
        ax.plot(*part.T, "o", color=colour, fillstyle="none", markersize=5)
        for s in sizes:
            ax.add_patch(Polygon(hull(part, s), facecolor=colour, alpha=0.2, edgecolor=colour))
    ax.set(xticks=[], yticks=[], aspect="equal")
axes[0].set_title("(a) convex hulls")
axes[1].set_title(f"(b) reduced: s = {', '.join(map(str, [2, int(first.s)]))}")
ends = np.array([first.weights[y == label] @ X[y == label] for label in (-1, 1)])
axes[1].plot(*ends.T, color="0.1", linewidth=2.5)
print(f"the first separate reduced hulls: s* = {int(first.s)}, distance {first.distance:.2f}")
