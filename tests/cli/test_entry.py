"""The entry point, while it loads what the commands need."""

import builtins

import pytest

from deferlearn import cli


def test_ctrl_c_while_loading_is_one_line(monkeypatch, capsys):
    load = builtins.__import__

    def stopped(name, *arguments, **options):
        if name == "deferlearn.cli.app":
            raise KeyboardInterrupt
        return load(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", stopped)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 130
    assert capsys.readouterr().err == "deferlearn: stopped; nothing was changed\n"
