"""Methods of other authors for learning to defer, with the methods of every team.

They are linear models, fitted by L-BFGS, for research and for comparisons: each is described by the
formula that is minimised, and by the paper that it comes from.

- `linear`: linear outputs on standardised features, and the regularised mean loss that they minimise.
- `targets`: what the losses are told of labels and human answers.
- `base`: the threshold behind `defer`, and what is done where scores are expected gains.
- `surrogate`: teams that minimise one loss over the outputs of all classes and one for deferral.
- One file per method.
"""
