"""A report about a stored team on cases with known truth: measured first, one HTML page after.

What the command `deferlearn report` does, for Python. It needs pyarrow, pandas and jinja2, which
``deferlearn[cli]`` installs.
"""

from deferlearn.report.cases import ReportCases, select_report_cases
from deferlearn.report.measure import CaseReport, case_report

__all__ = ["CaseReport", "ReportCases", "case_report", "select_report_cases"]
