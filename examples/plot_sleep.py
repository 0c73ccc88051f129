"""
A night of sleep: how much should the expert be asked?
======================================================

Six published networks have staged 80 nights, and so have five experts. The experts err more often than a
machine that hears all six networks, but on other epochs. How many epochs should an expert look at, and
which expert?
"""

# %%
# An epoch is half a minute; its stage is Wake, N1, N2, N3 or REM. The machine is a logistic regression that
# sees what the six networks say of an epoch and of its neighbours. For each expert, the truth is the
# majority of the other four. 24 nights are for learning, 24 other nights for the test.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

from deferlearn import AdvantageTriage
from deferlearn.datasets import load_sleep

nights = np.random.RandomState(0).permutation(80)
shares = np.array([0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4])


def errors_of(expert):
    """Errors at each share: of the team, and if the expert takes whatever the machine is least sure of."""
    data = load_sleep(expert=expert, classes="stages", context=1)
    read = ~np.isnan(data.human_labels)
    train = np.flatnonzero(read & np.isin(data.groups, nights[:24]))[::20]
    test = np.flatnonzero(read & np.isin(data.groups, nights[24:48]))[::4]
    machine = LogisticRegression(C=0.1, max_iter=1000)
    team = AdvantageTriage(machine=machine, machine_error="probability", random_state=0)
    team.fit(data.data[train], data.target[train], human_labels=data.human_labels[train])

    X, truth, answers = data.data[test], data.target[test], data.human_labels[test]
    by_machine, by_expert = team.predict(X) != truth, answers != truth
    sureness = team.predict_proba(X).max(axis=1).argsort().argsort() / len(X)
    asked = [team.defer_top(X, float(share)) for share in shares]
    unsure = [sureness < share for share in shares]
    found = [
        [np.where(rows, by_expert, by_machine).mean() for rows in by] for by in (asked, unsure)
    ]
    return np.array(found), by_expert.mean()


# %%
# For two of the experts: the one who agrees most with the other four, and the one who agrees least.

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for expert, colour in ((5, "#009E73"), (4, "#D55E00")):
    (team, least_sure), alone = errors_of(expert)
    ax.plot(shares, team, "o-", color=colour, label=f"team with expert {expert}")
    ax.plot(shares, least_sure, "--", color=colour, label=f"expert {expert} takes the least sure")
    best = int(team.argmin())
    print(
        f"expert {expert} alone errs on {alone:.1%} of the epochs, the machine alone on {team[0]:.1%}; "
        f"the team on {team[best]:.1%}, if it may ask about {shares[best]:.0%}"
    )
ax.set(
    xlabel="share of the epochs that the expert may take",
    ylabel="share of wrong answers",
    title="five stages of sleep, 24 new nights",
)
ax.legend()

# %%
# A few epochs are where an expert knows what the networks do not. Whoever goes on handing over epochs
# because the machine is unsure (dashed) soon asks where the expert is unsure, too, and errs more with every
# hour of the expert's time. A team that has learned how often *this* expert errs, and on what, stops asking
# by itself: with expert 5 in time, with expert 4 too late, for there is next to nothing to be gained.
# `assistance_report` says so before anybody is asked, and
# :ref:`sphx_glr_auto_examples_plot_several_experts.py` shares the work among several experts.
