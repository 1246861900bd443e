"""When a process was born, to tell it from a later one with the same number."""

from pathlib import Path

import psutil


def birth(pid: int) -> str:
    """A mark that no other process with this pid has, and that setting the clock does not change.

    psutil counts from the moment at which the machine started, in the time of the clock: after a step of the clock,
    or a suspended machine, the same process would be born at another time.

    Raises:
        psutil.NoSuchProcess: it does not run.
    """
    if not Path("/proc/self/stat").exists():
        return str(int(psutil.Process(pid).create_time() * 1000))  # elsewhere the kernel keeps the time itself
    try:
        text = Path(f"/proc/{pid}/stat").read_text("utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        raise psutil.NoSuchProcess(pid) from None
    # The name, in parentheses, may hold anything. https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html
    return text.rpartition(")")[2].split()[19]
