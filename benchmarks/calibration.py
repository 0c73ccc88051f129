"""How far probabilities are from what happens: ours against scikit-learn's, for the same machine.

Each machine is fitted on the training part and judged on the test part of random splits. Ours is calibrated
by `deferlearn.teams.FullAutomation`, theirs by `CalibratedClassifierCV` (sigmoid and isotonic, five folds,
one machine). Printed are the expected calibration error (ECE) of the likeliest class in ten bins, of all
test parts together and in the mean, the log loss, and the paired difference of the calibration errors with
its 95% interval. A small test part has an error even if its probabilities are right: of 30 cases in a bin,
about 0.06 there. So the first number is the one to look at. Run it with::

    python benchmarks/calibration.py
"""

import argparse
import warnings

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import RandomForestClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import SVC

from deferlearn.evaluation.intervals import t_interval
from deferlearn.experiments.comparison_classes import class_split
from deferlearn.experiments.comparison_data import comparison_split
from deferlearn.metrics import expected_calibration_error, log_loss
from deferlearn.teams import FullAutomation

DATA = {"sleep": "stages-1", "digits": "ten-digits", "LIDC": "lidc-decided"}
ALPHA = 0.003


def rivals(name: str, n: int, seed: int) -> dict[str, tuple]:
    """Machines: ours with our calibration, and the same classifier for scikit-learn's."""
    svc = SVC(kernel="linear", C=1 / (2 * ALPHA * n))
    forest = RandomForestClassifier(200, min_samples_leaf=2, random_state=seed)
    several = name != "LIDC"
    return {
        "linear SVM": (
            FullAutomation(alpha=ALPHA, random_state=seed),
            OneVsRestClassifier(svc) if several else svc,
        ),
        "forest": (FullAutomation(machine=forest, random_state=seed), forest),
    }


def measures_on(name: str, seed: int) -> dict[tuple[str, str], tuple]:
    """Calibration error and log loss of every machine and calibration on one test part, and their data."""
    make = comparison_split if name == "LIDC" else class_split
    split = make(DATA[name], seed)
    found = {}
    for machine, (ours, theirs) in rivals(name, len(split.y_train), seed).items():
        models = {
            "ours": ours,
            **{
                method: CalibratedClassifierCV(theirs, method=method, cv=5, ensemble=False)
                for method in ("sigmoid", "isotonic")
            },
        }
        for who, model in models.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                model.fit(split.X_train, split.y_train)
            p, known = model.predict_proba(split.X_test), model.classes_
            error = expected_calibration_error(split.y_test, p, classes=known)
            floored = np.clip(p, 1e-6, 1)
            loss = log_loss(
                split.y_test, floored / floored.sum(axis=1, keepdims=True), classes=known
            )
            found[machine, who] = error, loss, split.y_test, p, known
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=20, help="number of splits (default: 20)")
    parser.add_argument(
        "--seed", type=int, default=1000, help="seed of the first split (default: 1000)"
    )
    parser.add_argument("--data", choices=DATA, nargs="+", default=list(DATA), help="default: all")
    options = parser.parse_args()
    print(
        "| data | machine | calibration | ECE | mean ECE | log loss | ours minus this, mean ECE |"
    )
    print("|---|---|---|---|---|---|---|")
    for name in options.data:
        rows = [measures_on(name, options.seed + k) for k in range(options.splits)]
        for machine, who in rows[0]:
            errors, losses, truth, p, known = zip(*(row[machine, who] for row in rows), strict=True)
            together = expected_calibration_error(
                np.concatenate(truth), np.concatenate(p), classes=known[0]
            )
            ours = np.array([row[machine, "ours"][0] for row in rows])
            mean, low, high = t_interval(ours - np.array(errors))
            apart = "" if who == "ours" else f"{mean:+.4f} [{low:+.4f}, {high:+.4f}]"
            print(
                f"| {name} | {machine} | {who} | {together:.4f} | {np.mean(errors):.4f} | "
                f"{np.mean(losses):.3f} | {apart} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
