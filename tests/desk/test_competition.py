"""Several processes compete for leases: no case is in two hands at a time, none is forgotten."""

from collections import Counter, defaultdict
from itertools import pairwise

import pytest

from deferlearn.desk import audit
from deferlearn.desk.cases import arrive_all
from deferlearn.desk.database import Database
from deferlearn.desk.schema import answer, case, reading
from desk.competitors import LEASE, work
from desk.stub_desk import SECRET, rows, stub_desk
from desk.stub_server import processes

# So long a process may take on a busy machine before the test fails.
LONGEST = 60


def compete(url, workers, total, longest=LONGEST):
    database = Database(url, options=audit.key_options(SECRET))
    names = {f"expert {n}": None for n in range(workers)}
    desk = stub_desk(database, names, lease_seconds=LEASE)
    arrive_all(desk, [(f"case {n}", {"gain": 1}) for n in range(total)], actor="test")
    results, together = processes.Queue(), processes.Barrier(workers, timeout=longest)
    others = [
        processes.Process(target=work, args=(url, n + 1, total, together, results))
        for n in range(workers)
    ]
    for other in others:
        other.start()
    intervals = defaultdict(list)
    for _ in others:
        for number, began, ended in results.get(timeout=longest):
            intervals[number].append((began, ended))
    for other in others:
        other.join()
        assert other.exitcode == 0
        other.close()
    assert {row.state for row in rows(desk, case)} == {"answered"}
    assert {row.state for row in rows(desk, reading)} == {"answered"}
    assert set(Counter(row.case_number for row in rows(desk, answer)).values()) == {1}
    assert len(intervals) == total
    for spans in intervals.values():
        spans.sort()
        assert all(ended <= later for (_, ended), (later, _) in pairwise(spans))
    assert any(len(spans) > 1 for spans in intervals.values()), "no lease has ended by itself"
    assert len({row.expert_id for row in rows(desk, answer)}) == workers
    database.close()


def test_processes_share_the_cases(database_url):
    compete(database_url, workers=3, total=150)


@pytest.mark.slow
def test_eight_processes_share_ten_thousand_cases(database_url):
    compete(database_url, workers=8, total=10_000, longest=1200)
