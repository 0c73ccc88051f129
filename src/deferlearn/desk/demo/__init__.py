"""A demonstration of the desk: `deferlearn desk demo`.

It is a visitor from outside: it makes a desk by the commands that everyone uses, and then sends cases,
answers and truths over HTTP. The desk knows nothing of it, and runs by the real clock.

- `nights`: the sleep data as training cases and as cases to come, with what each expert answered.
- `making`: the desk in its folder, and its server.
- `client`: requests with an API key.
- `clock`: the time of the laboratory, which runs faster than ours.
- `laboratory`: who sends cases and truths, and the readers who answer.
- `story`: what happens when, told in plain words.
"""
