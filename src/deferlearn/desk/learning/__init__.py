"""The next model, learned from cases of the desk, and candidates that decide along.

- `population`: which cases stand for all, although who was asked depended on the model.
- `comparing`: two models on later cases, although answers are there for one of them only.
- `refitting`: the next model, fitted, compared and stored as a candidate.
- `shadowing`: a candidate decides along without effect.
"""
