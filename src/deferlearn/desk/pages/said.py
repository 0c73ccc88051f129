"""Sentences that a page shows after something was done; addresses carry only their keys."""

SAID = {
    "activated": "The model is active: it decides about all cases from now on.",
    "added": "The expert was added.",
    "changed": "The change is stored.",
    "closed": "The alarm is closed: its test begins again.",
    "logged-out": "You are logged out.",
    "revoked": "The key is revoked: it works no longer.",
    "sessions-ended": "All sessions of the user have ended.",
    "shadow": "From now on the candidate decides along, without effect.",
    "shadow-ended": "The candidate decides along no longer.",
    "stored": "The model is stored as a candidate.",
    "undone": "The answer was taken back. The case waits for you again.",
}
