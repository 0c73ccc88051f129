"""What was true: it arrives later, and may be corrected; corrections are kept."""

from __future__ import annotations

from sqlalchemy import Connection, insert, select, update

from deferlearn.desk import audit
from deferlearn.desk.cases import case_row
from deferlearn.desk.desk import Desk
from deferlearn.desk.errors import Invalid
from deferlearn.desk.readings import lock_case
from deferlearn.desk.schema import decision, truth


def set_truth(desk: Desk, case_id: str, value: str, *, actor: str) -> bool:
    """Store what was true about a case; the same truth again changes nothing.

    Parameters
    ----------
    desk : Desk
        The desk.
    case_id : str
        The case.
    value : str
        One of the classes.
    actor : str
        Who reports it.

    Returns
    -------
    changed : bool
        Whether it was not known before.
    """

    def job(connection: Connection) -> bool:
        moment = desk.look(connection)
        number = case_row(connection, case_id).number
        lock_case(connection, number)
        model_id = connection.execute(
            select(decision.c.model_id).where(decision.c.case_number == number)
        ).scalar_one()
        classes = desk.classes(connection, model_id)
        if value not in classes:
            raise Invalid(f"The truth must be one of {', '.join(map(repr, classes))}.")
        now_true = (truth.c.case_number == number) & truth.c.replaced_at.is_(None)
        known = connection.execute(select(truth.c.value).where(now_true)).scalar()
        if known == value:
            return False
        connection.execute(update(truth).where(now_true).values(replaced_at=moment.now))
        connection.execute(
            insert(truth).values(case_number=number, value=value, at=moment.now, source=actor)
        )
        audit.append(
            connection,
            actor=actor,
            action="truth.corrected" if known is not None else "truth.reported",
            subject=f"case:{number}",
            detail={"value": value},
        )
        return True

    return desk.database.write(job)
