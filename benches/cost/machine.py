"""Describes the machine of a measurement, without names of hosts or people."""

import os
import platform
import re
import subprocess
from pathlib import Path


def first_line(*command):
    try:
        said = subprocess.run(command, capture_output=True, text=True).stdout
    except OSError:
        return "unknown"
    return said.splitlines()[0].strip() if said.strip() else "unknown"


def field(file, name):
    try:
        text = Path(file).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "unknown"
    found = re.search(rf"^{re.escape(name)}\s*:\s*(.*)$", text, re.MULTILINE)
    return found.group(1).strip() if found else "unknown"


def facts(root):
    """{name: value}, in the order of the report."""
    flags = field("/proc/cpuinfo", "flags").split()
    clock = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
    changed = subprocess.run(["git", "-C", root, "status", "--porcelain", "--", "src", "crates", "c-tests"],
                             capture_output=True, text=True).stdout.strip()
    return {
        "processor": field("/proc/cpuinfo", "model name"),
        "cores": len(os.sched_getaffinity(0)),
        "virtual": "hypervisor" in flags,
        "memory": field("/proc/meminfo", "MemTotal"),
        "kernel": platform.release().split("-")[0],
        "clock source": clock.read_text().strip() if clock.exists() else "unknown",
        "rustc": first_line("rustc", "--version"),
        "C compiler": first_line("gcc", "--version"),
        "valgrind": first_line("valgrind", "--version"),
        "commit": first_line("git", "-C", root, "rev-parse", "--short=12", "HEAD")
        + (" with changes" if changed else ""),
    }


def load():
    """The load average of the last minute."""
    return round(os.getloadavg()[0], 2)
