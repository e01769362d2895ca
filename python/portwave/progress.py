"""A progress bar for long calls."""

from __future__ import annotations

from typing import Callable, Optional, Tuple


def progress_bar(
    wanted: bool, start_s: float, end_s: Optional[float]
) -> Tuple[Optional[Callable[[float], None]], Callable[[], None]]:
    """Create a progress bar over simulated time, where tqdm is installed.

    Returns a function that tells the bar the simulated time [s], or None without a bar, and a
    function that closes it.
    """
    if not wanted:
        return None, lambda: None
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None, lambda: None
    total = None if end_s is None else max(end_s - start_s, 0.0)
    bar = tqdm(total=total, unit="s", desc="simulated")

    def tell(time_s: float) -> None:
        bar.update(time_s - start_s - bar.n)

    return tell, bar.close
