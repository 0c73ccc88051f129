"""The client of the desk's tests."""

import warnings

with warnings.catch_warnings():
    # Newer versions of starlette prefer another client, which older ones do not know.
    warnings.simplefilter("ignore", DeprecationWarning)
    warnings.simplefilter("ignore", UserWarning)
    from starlette.testclient import TestClient

__all__ = ["TestClient"]
