"""What a process of the desk has in memory: the database, what was configured last, and loaded models."""

from __future__ import annotations

import threading

from sqlalchemy import Connection, select

from deferlearn.desk.database import Database, clock
from deferlearn.desk.display import Display, read_display
from deferlearn.desk.errors import Conflict
from deferlearn.desk.judging import Judge
from deferlearn.desk.models import load_model
from deferlearn.desk.rules import Configuration, Moment, read_configuration
from deferlearn.desk.schema import configuration, model

# Statements that every request needs are made once: to make one takes as long as to run it.
_LOOK = select(clock(), configuration.c.version)
# Models that stay loaded: the active one, and those that decided about cases that are still open.
MOST_MODELS = 4


class Desk:
    """The desk as one process sees it.

    Parameters
    ----------
    database : Database
        Its database.
    """

    def __init__(self, database: Database) -> None:
        self.database = database
        self._configuration: Configuration | None = None
        self._display: tuple[int | None, Display] = (None, Display())
        self._judges: dict[int, Judge] = {}
        self._classes: dict[int, list[str]] = {}
        self._loading = threading.Lock()

    def look(self, connection: Connection) -> Moment:
        """The time, and what is configured; it is read again only if it has changed.

        Parameters
        ----------
        connection : Connection
            A connection to the database.

        Returns
        -------
        Moment
        """
        now, version = connection.execute(_LOOK).one()
        known = self._configuration
        if known is None or known.version != version:
            known = self._configuration = read_configuration(connection)
        return Moment(int(now), known)

    def active_judge(self) -> Judge:
        """The active model, ready to judge.

        Returns
        -------
        Judge

        Raises
        ------
        Conflict
            If there is no active model.
        """
        known = self._configuration
        if known is None or known.model_id is None:
            with self.database.reading() as connection:
                known = self.look(connection).configuration
        if known.model_id is None:
            raise Conflict(
                "No model is active, so no case can be decided: store a model and activate it."
            )
        return self.judge(known.model_id)

    def judge(self, model_id: int) -> Judge:
        """A model, ready to judge.

        Parameters
        ----------
        model_id : int
            The model.

        Returns
        -------
        Judge
        """
        found = self._judges.get(model_id)
        if found is not None:
            return found
        with self._loading:
            if model_id not in self._judges:
                with self.database.reading() as connection:
                    content = connection.execute(
                        select(model.c.blob).where(model.c.id == model_id)
                    ).scalar_one()
                judge = Judge(load_model(content), model_id)
                for old in list(self._judges)[: 1 - MOST_MODELS]:
                    self._judges.pop(old)
                self._judges[model_id] = judge
            return self._judges[model_id]

    def display(self, connection: Connection, moment: Moment) -> Display:
        """How fields are shown; it is read again only if something that is configured has changed.

        Parameters
        ----------
        connection : Connection
            A connection to the database.
        moment : Moment
            Now, by this connection.

        Returns
        -------
        Display
        """
        version, display = self._display
        if version != moment.configuration.version:
            display = read_display(connection)[0]
            self._display = (moment.configuration.version, display)
        return display

    def classes(self, connection: Connection, model_id: int) -> list[str]:
        """The answers that a model knows.

        Parameters
        ----------
        connection : Connection
            A connection to the database.
        model_id : int
            The model.

        Returns
        -------
        classes : list of str
        """
        if model_id not in self._classes:
            card = connection.execute(
                select(model.c.card).where(model.c.id == model_id)
            ).scalar_one()
            self._classes[model_id] = list(card["classes"])
        return self._classes[model_id]
