"""The desk: a live service in which cases arrive, a model decides at once, and experts answer.

It needs ``deferlearn[desk]``, and ``deferlearn[desk,postgres]`` for PostgreSQL. The modules follow the life
of a case: `fields` and `cases` (it arrives), `deciding` (machine or expert), `queue` (an expert gets it
under a lease), `answering` (readings, arbitration, the final answer), `deadlines`, `truths`, `webhooks`.
What they share is in `schema`, `database`, `rules` and `models`; `api` speaks HTTP.
"""
