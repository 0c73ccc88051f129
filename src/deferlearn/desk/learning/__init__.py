"""The next model, learned from cases of the desk, and candidates that decide along.

- `population`: which cases stand for all, although who was asked depended on the model.
- `filling`: what is not known of the others is filled in; how far back cases are like those of today.
- `comparing`: two models on later cases, although answers are there for one of them only.
- `refitting`: the next model, fitted, compared and stored as a candidate.
- `shadowing`: a candidate decides along without effect.
"""
