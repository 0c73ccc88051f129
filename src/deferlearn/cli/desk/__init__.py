"""`deferlearn desk`: the live service, and those who look after it."""

import typer

from deferlearn.cli._help import unwrapped
from deferlearn.cli.desk import (
    audit,
    backup,
    config,
    demo,
    exporting,
    importing,
    init,
    key,
    migrate,
    monitor,
    purge,
    refit,
    serve,
    user,
)

desk = typer.Typer(
    help="The live service: cases arrive, the model decides, experts answer.",
    no_args_is_help=True,
)
for name, command, examples in (
    ("demo", demo.demo, None),
    ("init", init.init, init.EXAMPLES),
    ("serve", serve.serve, None),
    ("migrate", migrate.migrate, None),
    ("config", config.config, None),
    ("import", importing.import_cases, importing.EXAMPLES),
    ("export", exporting.export, exporting.EXAMPLES),
    ("backup", backup.back_up, None),
    ("restore", backup.restore, None),
    ("purge", purge.purge, None),
    ("monitor", monitor.monitor, None),
    ("refit", refit.refit, None),
):
    desk.command(name, help=unwrapped(command.__doc__), epilog=unwrapped(examples))(command)
desk.add_typer(user.user, name="user")
desk.add_typer(key.key, name="key")
desk.add_typer(audit.audit, name="audit")
