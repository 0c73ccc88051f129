"""A good guess for large problems, so that the exact path starts close to its end."""
COLD_START_LIMIT = 10**9
def guess_start(state): pass
