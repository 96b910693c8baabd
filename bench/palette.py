"""The colours of the eight seats, in the terminal and in pictures."""

PALETTE = (
    "#3b82f6", "#ef4444", "#22c55e", "#f59e0b", "#a855f7", "#06b6d4", "#ec4899", "#84cc16"
)  # fmt: skip
