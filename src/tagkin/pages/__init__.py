"""Contact sheets, maps and reports for people to read."""

from tagkin.pages.map import draw_map, lay_out
from tagkin.pages.report import Comparison, Report, comparisons_of, write_report
from tagkin.pages.sheet import contact_sheet

__all__ = [
    "Comparison",
    "Report",
    "comparisons_of",
    "contact_sheet",
    "draw_map",
    "lay_out",
    "write_report",
]
