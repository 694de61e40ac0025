"""The pages beside the plans: one item, dead letters, facts, schedules, steps, the trail, what is found, and the API itself."""

from __future__ import annotations

from app import (
    board_api,
    board_dead,
    board_dead_acts,
    board_facts,
    board_find,
    board_item_page,
    board_schedules,
    board_steps,
    board_trail,
    board_workers,
)

PAGES = (
    board_item_page,
    board_dead,
    board_dead_acts,
    board_facts,
    board_schedules,
    board_steps,
    board_trail,
    board_workers,
    board_find,
    board_api,
)
ROUTERS = tuple(each.router for each in PAGES)
