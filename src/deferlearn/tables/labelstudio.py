"""Write cases for humans as tasks of Label Studio, and read the answers from its export."""

import json
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO
from xml.sax.saxutils import quoteattr

import numpy as np

from deferlearn.tables.cells import raw_text
from deferlearn.tables.errors import TableError

# Names that must be the same in the labelling setup and in the tasks.
QUESTION, CASE = "answer", "case"


class TaskWriter:
    """Writes cases to a file for Label Studio.

    By default tasks hold nothing of the machine's: people tend to agree with what they are shown, and the
    humans of the training data did not see it either. With predictions, Label Studio shows the machine's
    answer. The score of a prediction says how sure the machine is: with two classes it is the distance from
    the boundary in margins, at most 1, and with more the probability of the answer. Label Studio can sort
    the tasks by it. With several experts, the entry "expert" of each task's data names the one who takes
    it, and Label Studio can filter the tasks by it.

    Parameters
    ----------
    file : binary file
        The file to write to.
    identifier : str or None, default=None
        Column with the names of the cases; None names them by the number of their row, from 1.
    hidden : sequence of str, default=()
        Columns that the readers must not see: the truth, and the answers of others.
    predictions : bool, default=False
        Whether tasks hold the machine's answer, and why the case is deferred.

    Attributes
    ----------
    count : int
        Number of tasks written so far.

    Examples
    --------
    >>> import io, json
    >>> import pyarrow as pa
    >>> from deferlearn.tables.labelstudio import TaskWriter
    >>> routed = {
    ...     "machine_answer": ["ill"],
    ...     "decision_value": [0.25],
    ...     "deferral_score": [1.5],
    ...     "audit": [False],
    ...     "taken_by": ["human"],
    ...     "reason": ["human: ..."],
    ...     "model_version": ["m1"],
    ... }
    >>> file = io.BytesIO()
    >>> writer = TaskWriter(file, identifier="id", hidden=["truth"])
    >>> writer.write(pa.table({"id": ["c7"], "age": ["61"], "truth": ["well"]}), pa.table(routed))
    >>> writer.close()
    >>> (task,) = json.loads(file.getvalue())
    >>> task["data"]["case"], "predictions" in task
    ({'id': 'c7', 'age': '61'}, False)
    """

    def __init__(
        self,
        file: BinaryIO,
        identifier: str | None = None,
        hidden: Sequence[str] = (),
        predictions: bool = False,
    ) -> None:
        self._file, self._identifier, self._hidden = file, identifier, set(hidden)
        self._predictions = predictions
        self._rows = 0
        self.count = 0
        file.write(b"[")

    def write(self, chunk: Any, routed: Any) -> None:
        """Add the cases of a chunk that humans take.

        Parameters
        ----------
        chunk : pyarrow.Table
            The cases.
        routed : pyarrow.Table
            What `Router` decided about them.
        """
        import pyarrow as pa

        taken = np.flatnonzero([who == "human" for who in routed["taken_by"].to_pylist()])
        cases = chunk.take(taken)
        texts = pa.table({name: raw_text(cases.column(name)) for name in cases.column_names})
        if self._identifier is None:
            names = [str(self._rows + row + 1) for row in taken]
        else:
            names = texts.column(self._identifier).to_pylist()
        shown = texts.drop_columns([name for name in texts.column_names if name in self._hidden])
        for name, data, decision in zip(
            names, shown.to_pylist(), routed.take(taken).to_pylist(), strict=True
        ):
            text = json.dumps(
                _task(name, data, decision, self._predictions), ensure_ascii=False, allow_nan=False
            )
            self._file.write(b"," * (self.count > 0) + b"\n" + text.encode())
            self.count += 1
        self._rows += chunk.num_rows

    def close(self) -> None:
        """Write the end of the list; the file itself stays open."""
        self._file.write(b"\n]\n")


def _task(
    name: str | None, data: dict[str, Any], decision: dict[str, Any], predictions: bool
) -> dict[str, Any]:
    shown = {"id": name, CASE: data}
    if "expert" in decision:  # in the data, where the Data Manager can filter by it
        shown["expert"] = decision["expert"]
    if not predictions:  # the score, the audit and the reason would give the machine's opinion away
        return {"data": shown}
    two = "decision_value" in decision
    result = {
        "from_name": QUESTION,
        "to_name": CASE,
        "type": "choices",
        "value": {"choices": [decision["machine_answer"]]},
    }
    prediction: dict[str, Any] = {"model_version": decision["model_version"], "result": [result]}
    sure = decision["decision_value" if two else "probability"]
    if not math.isnan(sure):  # a probability may not be known
        prediction["score"] = min(1.0, abs(sure))
    return {
        "data": {
            **shown,
            "deferral_score": decision["deferral_score"],
            "audit": decision["audit"],
            "reason": decision["reason"],
        },
        "predictions": [prediction],
    }


def labelling_setup(classes: Sequence[str]) -> str:
    """The labelling interface for the tasks, to be pasted into a Label Studio project.

    Parameters
    ----------
    classes : sequence of str
        The answers that a reader chooses from.

    Returns
    -------
    xml : str

    Examples
    --------
    >>> from deferlearn.tables.labelstudio import labelling_setup
    >>> print(labelling_setup(["ill", "well"]))
    <View>
      <Table name="case" value="$case"/>
      <Choices name="answer" toName="case" choice="single" required="true">
        <Choice value="ill"/>
        <Choice value="well"/>
      </Choices>
    </View>
    <BLANKLINE>
    """
    choices = "".join(f"    <Choice value={quoteattr(label)}/>\n" for label in classes)
    return (
        f'<View>\n  <Table name="{CASE}" value="${CASE}"/>\n'
        f'  <Choices name="{QUESTION}" toName="{CASE}" choice="single" required="true">\n'
        f"{choices}  </Choices>\n</View>\n"
    )


def read_label_studio(
    path: str | os.PathLike[str], *, case: str = "id", question: str = QUESTION
) -> dict[str, list[str]]:
    """Read the answers from Label Studio's export in the format JSON, one row per answer.

    Annotations that were skipped or have no choice are left out. If a reader has annotated a case several
    times, the latest annotation counts.

    Parameters
    ----------
    path : path-like
        The export.
    case : str, default="id"
        Entry of each task's data that holds the name of the case.
    question : str, default="answer"
        Name of the `Choices` element in the labelling setup.

    Returns
    -------
    answers : dict
        The columns case, reader and answer, as `select_cases` takes them.
    """
    path = Path(path)
    latest: dict[tuple[str, str], tuple[str, str]] = {}
    for number, task in enumerate(_tasks(path), start=1):
        data = task.get("data")
        name = data.get(case) if isinstance(data, dict) else None
        if name is None:
            raise TableError(
                f"{path}: task {number} has no data.{case}, the name of its case: pass the entry that "
                "holds it (--case), or make the tasks by deferlearn apply --label-studio"
            )
        for annotation in task["annotations"]:
            answer = _choice(annotation, question, f"{path}: task {number}")
            if answer is None:
                continue
            key = (str(name), _reader(annotation))
            if any("\ud800" <= character <= "\udfff" for character in "".join((*key, answer))):
                # JSON can write halves of characters, which no file can store as text.
                raise TableError(f"{path}: task {number} holds characters that are not text")
            when = str(annotation.get("updated_at") or annotation.get("created_at") or "")
            if key not in latest or when >= latest[key][0]:
                latest[key] = (when, answer)
    if not latest:
        raise TableError(f"{path} holds no answers to the question {question!r}")
    return {
        "case": [name for name, _ in latest],
        "reader": [reader for _, reader in latest],
        "answer": [answer for _, answer in latest.values()],
    }


def _tasks(path: Path) -> list[dict[str, Any]]:
    try:
        content = json.loads(path.read_bytes())
    except OSError as error:
        raise TableError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise TableError(f"{path} is not a JSON file: {error}") from error
    if not isinstance(content, list) or not all(
        isinstance(task, dict) and isinstance(task.get("annotations"), list) for task in content
    ):
        raise TableError(
            f"{path} is not an export of annotated tasks: export in the format JSON (not JSON-MIN, CSV "
            "or another) from Label Studio"
        )
    return content


def _choice(annotation: Any, question: str, where: str) -> str | None:
    if not isinstance(annotation, dict) or annotation.get("was_cancelled"):
        return None
    results = annotation.get("result")
    values = [
        result.get("value")
        for result in (results if isinstance(results, list) else ())
        if isinstance(result, dict) and result.get("from_name") == question
    ]
    lists = [value.get("choices") for value in values if isinstance(value, dict)]
    chosen = [str(choice) for choices in lists if isinstance(choices, list) for choice in choices]
    if len(chosen) > 1:
        raise TableError(
            f"{where} has an answer with {len(chosen)} choices, {chosen!r}; only one is allowed"
        )
    return chosen[0] if chosen else None


def _reader(annotation: dict[str, Any]) -> str:
    who = annotation.get("completed_by")
    if isinstance(who, dict):
        who = who.get("email") or who.get("username") or who.get("id")
    return "unknown" if who is None else str(who)
