"""The oldest supported versions are the lower bounds that the project names."""

import pytest

from oldest_versions import oldest_versions


def made(tmp_path, requirements, extra):
    path = tmp_path / "pyproject.toml"
    path.write_text(
        f"[project]\nname = 'deferlearn'\ndependencies = {requirements}\n"
        f"[project.optional-dependencies]\nplot = {extra}\ndev = ['anything']\n"
    )
    return path


def test_every_dependency_of_the_project_has_a_lower_bound():
    found = oldest_versions()
    assert {line.split("==")[0] for line in found} >= {"numpy", "numba", "matplotlib", "pytest"}


def test_bounds_become_pins(tmp_path):
    path = made(tmp_path, ["numpy>=1.26"], ["matplotlib>=3.8", "deferlearn[cli]"])
    assert oldest_versions(path) == ["matplotlib==3.8", "numpy==1.26"]


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (["matplotlib"], "'matplotlib' has no lower bound"),
        (["matplotlib<4"], "'matplotlib<4' has no lower bound"),
        (["numpy>=2"], "numpy has two lower bounds, 1.26 and 2"),
    ],
)
def test_missing_and_different_bounds_are_errors(tmp_path, extra, message):
    with pytest.raises(ValueError, match=message):
        oldest_versions(made(tmp_path, ["numpy>=1.26"], extra))
