"""What a supervisor must know of the running desk: numbers with intervals, and alarms.

- `figures`, `shares`: a number with its interval and a sentence; intervals of shares in layers.
- `errors`, `losses`, `dependence`, `calibration`: errors of the machine, the experts and the team.
- `workload`, `columns`: budget, load and waiting times; columns that have shifted.
- `evidence`, `watches`: tests that may be looked at every day, and what they are about.
- `records`: what the others need, read from the database. `alarms`: tests that go on, and alarms raised.
- `overview`: all numbers of a period.
"""
