"""Support vector machines that learn which cases to defer to a human.

The parts, in the order in which data flows through them:

- `deferlearn.datasets`: generators of the paper's synthetic data, fetchers of its real data.
- `deferlearn.humans`: what humans know, as one loss a sample.
- `deferlearn.objective`: the machine's objective and the exact gain of deferring a sample.
- `deferlearn.selection`: the algorithms that choose the samples to defer.
- `deferlearn.bounds`: what the theorems promise, and a certificate for each selection.
- `deferlearn.plot`: pictures; matplotlib is needed only once something is drawn.

Each is imported by its own name, so that ``import deferlearn`` stays fast.
"""

__version__ = "0.1.0"
