"""What is asked all the time is found by an index, however many cases there are."""

from sqlalchemy import event

from deferlearn.desk.answering import give_answer
from deferlearn.desk.queue import lease_next
from deferlearn.desk.subscriptions import add_webhook, remove_webhook
from deferlearn.desk.webhooks import deliver_due
from desk.page_clients import app_of, browser_of
from desk.stub_desk import add_model, send

# Tables of one row, and what is configured, may be read as a whole.
SMALL = ("configuration", "audit_head", "setting", "expert", "model", "webhook", "CONSTANT ROW")
SMALL += ("expert_day", "alarm", "user", "model_report")


def listen(engine):
    """Statements from now on, with their values."""
    seen = []
    event.listen(
        engine,
        "before_cursor_execute",
        lambda connection, cursor, statement, values, context, many: seen.append(
            (statement, values[0] if many else values)
        ),
    )
    return seen


def plans_of(desk, seen):
    """How SQLite would run these statements."""
    plans = []
    with desk.database.reading() as connection:
        for statement, values in list(seen):
            if statement.startswith(("SELECT", "UPDATE", "INSERT")):
                cursor = connection.connection.cursor()
                cursor.execute(f"EXPLAIN QUERY PLAN {statement}", values)
                plans += [row[3] for row in cursor.fetchall()]
                cursor.close()
    return plans


def whole_tables(plans):
    """Large tables that are read as a whole, or all of an index of them."""
    scans = [plan for plan in plans if plan.startswith("SCAN") and "USING" not in plan]
    return [plan for plan in scans if not plan.endswith(SMALL)]


def test_no_request_reads_a_whole_table(sqlite_desk):
    desk, seen = sqlite_desk, listen(sqlite_desk.database.writer)
    send(desk, "a", gain=1)
    lease = lease_next(desk, 1)
    give_answer(desk, lease.reading_id, lease.token, "ill", actor="user:ann")
    plans = plans_of(desk, seen)
    assert whole_tables(plans) == []
    assert any("ix_reading_waiting" in plan for plan in plans)
    assert any("ix_reading_leased" in plan for plan in plans)


def test_deliveries_of_a_webhook_are_found_by_an_index(sqlite_desk):
    desk = sqlite_desk
    number, _ = desk.database.write(
        lambda c: add_webhook(c, "http://127.0.0.1:9/", ["case.answered"], actor="test")
    )
    send(desk, "a", gain=-1)
    seen = listen(desk.database.writer)
    deliver_due(desk, lambda parcel: None)
    desk.database.write(lambda c: remove_webhook(c, number, actor="test"))
    by_index = "INDEX ix_delivery_webhook"
    plans = [plan for plan in plans_of(desk, seen) if by_index in plan]
    assert any("webhook_id=? AND state=? AND next_at<?" in plan for plan in plans)
    seen[:] = [one for one in seen if one[0].startswith("DELETE FROM delivery")]
    with desk.database.reading() as connection:
        cursor = connection.connection.cursor()
        cursor.execute(f"EXPLAIN QUERY PLAN {seen[0][0]}", seen[0][1])
        assert any("ix_delivery_webhook (webhook_id=?)" in row[3] for row in cursor.fetchall())
        cursor.close()


def test_no_page_reads_a_whole_table(sqlite_desk):
    desk = sqlite_desk
    add_model(desk.database, "next", active=False)
    for number in range(25):
        send(desk, f"case {number}", gain=0.1 if number % 2 else -0.1)
    app = app_of(desk)
    expert = browser_of(app, desk, "ann", "expert", 1)
    supervisor = browser_of(app, desk, "sue", "supervisor")
    seen = listen(desk.database.reader)
    for path in ("/work", "/work/history"):
        assert expert.get(path).status_code == 200
    expert.post("/work/next")
    for path in ("/today", "/cases", "/cases?only=waiting", "/cases?only=flagged", "/cases/1"):
        assert supervisor.get(path).status_code == 200
    for path in ("/experts", "/experts/1", "/models", "/models/2"):
        assert supervisor.get(path).status_code == 200
    plans = plans_of(desk, seen)
    assert whole_tables(plans) == []
    assert not [plan for plan in plans if plan.startswith("SCAN case_ USING COVERING")]
    for index in (
        "ix_reading_waiting",
        "ix_reading_leased",
        "ix_case_flagged",
        "ix_decision_model",
    ):
        assert any(index in plan for plan in plans), index
