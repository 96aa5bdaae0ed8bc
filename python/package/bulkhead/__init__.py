"""Bulkhead: schedulability analyses and studies of mixed-criticality systems.

The computation is Bulkhead's Rust library; times are integers, verdicts are exact, and the same inputs give the same
digits on every machine and with any number of threads or workers.
"""

from . import analysis, files, mc2, planning, traffic
from ._native import (
    BulkheadError,
    DescriptionError,
    FileError,
    InternalError,
    StudyError,
    TableError,
    TaskError,
    __version__,
)
from .planning import Plan, check, plan
from .results import StudyResult
from .studies import study
from .tasks import (
    LIMIT,
    CacheTask,
    Flow,
    LevelTask,
    Mc2Guarantees,
    Mc2Processor,
    Mc2System,
    PhasedTask,
    PlacedTask,
    Slot,
    Table,
    Task,
    utilisation,
)

__all__ = [
    "LIMIT",
    "BulkheadError",
    "CacheTask",
    "DescriptionError",
    "FileError",
    "Flow",
    "InternalError",
    "LevelTask",
    "Mc2Guarantees",
    "Mc2Processor",
    "Mc2System",
    "PhasedTask",
    "PlacedTask",
    "Plan",
    "Slot",
    "StudyError",
    "StudyResult",
    "Table",
    "TableError",
    "Task",
    "TaskError",
    "__version__",
    "analysis",
    "check",
    "files",
    "mc2",
    "plan",
    "planning",
    "study",
    "traffic",
    "utilisation",
]
