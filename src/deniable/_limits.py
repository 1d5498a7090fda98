"""What the default policy allows: here, so that a command may name it without importing reports."""

MOST_ADVANTAGE = 0.1  # TPR − FPR of any attack: right in 55 % of cases at even prior
