"""A checksum and the versions in the archive of a stored model, so that accidents are noticed."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile

# Members beside those of skops. The checksum covers all others, the versions included.
CHECKSUM = "SHA256"
VERSIONS = "versions.json"


def versions() -> dict[str, str]:
    """What writes or reads a model here."""
    import sklearn

    import deferlearn

    return {"deferlearn": deferlearn.__version__, "scikit-learn": sklearn.__version__}


def seal(content: bytes) -> bytes:
    """The archive with two members more: the versions, and the checksum of all others."""
    buffer = io.BytesIO(content)
    with zipfile.ZipFile(buffer, "a", compression=zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(VERSIONS, json.dumps(versions()))
        archive.writestr(CHECKSUM, _digest(archive))
    return buffer.getvalue()


def check_seal(content: bytes, path: str) -> dict[str, str]:
    """The versions that wrote the archive, if nothing in it has changed since."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            names = archive.namelist()
            sealed = CHECKSUM in names and VERSIONS in names
            intact = sealed and archive.read(CHECKSUM).decode("ascii") == _digest(archive)
            written = json.loads(archive.read(VERSIONS)).items() if intact else ()
    except Exception as error:  # a damaged archive can make zipfile and zlib trip in many ways
        raise ValueError(
            f"{path} is damaged, or no model that deferlearn.save has written: {error!r}"
        ) from error
    if not sealed:
        raise ValueError(
            f"{path} is no model that deferlearn.save has written: it has no checksum. What skops itself "
            "has written is read by skops.io.load."
        )
    if not intact:
        raise ValueError(
            f"{path} is damaged, or was changed after it was saved: its content does not match its "
            "checksum. Take another copy, or fit and save the model again."
        )
    return {str(package): str(version) for package, version in written}


def _digest(archive: zipfile.ZipFile) -> str:
    """The checksum of names and contents, whatever the order and the compression."""
    total = hashlib.sha256()
    for name in sorted(archive.namelist()):
        if name != CHECKSUM:
            data = archive.read(name)
            # Lengths keep names and contents apart.
            total.update(f"{len(name)} {name} {len(data)} ".encode())
            total.update(data)
    return total.hexdigest()
