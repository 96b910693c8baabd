"""Rules, observations and search: the C++ extension in the build that suits this CPU.

`SNAKEKIT_ISA=base` forces the build that runs on any machine.
"""

import os
from typing import TYPE_CHECKING


def _has_v3() -> bool:
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as lines:
            flags = next((line for line in lines if line.startswith("flags")), "")
    except OSError:
        return False
    return {"avx2", "bmi1", "bmi2", "fma", "movbe", "f16c", "abm"} <= set(flags.split())


if TYPE_CHECKING:
    from snakekit._core import *
else:
    _wanted = os.environ.get("SNAKEKIT_ISA", "")
    if _wanted not in ("", "base", "v3"):
        raise ImportError(f"SNAKEKIT_ISA={_wanted!r}: expected base or v3")
    if _wanted == "v3" or (_wanted == "" and _has_v3()):
        try:
            from snakekit._core_v3 import *
        except ModuleNotFoundError:
            if _wanted:
                raise
            from snakekit._core_base import *
    else:
        from snakekit._core_base import *
