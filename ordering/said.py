"""What is said of an item's policy: by the item, else by its task, else by its plan, else by nobody. Fragments of SQL on i, t and p."""

from ordering.decide import DEFAULT_MAX_ATTEMPTS

MAX_ATTEMPTS = f"coalesce(i.max_attempts, t.max_attempts, p.max_attempts, {DEFAULT_MAX_ATTEMPTS})"
ON_INTERRUPT = """
    coalesce(i.on_interrupt, t.on_interrupt, p.on_interrupt, case when p.concurrency = 1 then 'hold' else 'requeue' end)"""
