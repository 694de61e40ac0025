// A line of items: its rows, who stands where, and the positions that rows in the hand will get.

import { between, compare } from './position.js';

export const rows = list => [...list.children].filter(row => row.matches('.item') && !row.hasAttribute('data-gone'));
export const listOf = row => row.closest('[data-sortable]');
export const idOf = row => row.dataset.item ?? row.id.replace(/^\D+/, '');
export const titleOf = row => row.dataset.title ?? row.querySelector('.title')?.textContent.trim() ?? '';
export const picked = list => rows(list).filter(row => row.querySelector('.pick')?.checked);

/** The rows that a hand takes with this one: the selection it is part of, else itself. */
export function handful(row) {
  const selection = picked(listOf(row));
  return selection.includes(row) ? selection : [row];
}

/** The positions that the rows would get in front of `before` (null: at the end), in their order; [] where it cannot be told. */
export function forecast(list, moving, before) {
  if (list.hasAttribute('data-stream')) return [];
  const rest = rows(list).filter(row => !moving.includes(row));
  const anchor = before ?? rest.at(-1);
  if (!anchor?.dataset.pos) return [];
  const scope = list.closest('[data-plan]') ?? document;
  const at = anchor.dataset.pos;
  // Items that are out of the line keep their positions, so the gap may be narrower than it looks.
  const others = [...scope.querySelectorAll('.item[data-pos]')].filter(row => !moving.includes(row) && !row.hasAttribute('data-gone'));
  const beside = others.map(row => row.dataset.pos).filter(pos => (before ? compare(pos, at) < 0 : compare(pos, at) > 0)).sort(compare);
  if (before) return between(beside.at(-1) ?? null, at, moving.length);
  if (list.dataset.next && !beside.length) return [];
  return between(at, beside[0] ?? null, moving.length);
}

export function paint(row, position) {
  const [whole, part] = position.split('.');
  const [b, i] = row.querySelectorAll('.pos b, .pos i');
  if (b) b.textContent = whole;
  if (i) i.textContent = part ? `.${part}` : '';
}

/** The fields that say where the rows have been put, and what was seen on the far side of the gap. */
export function place(list, moving, before) {
  const rest = rows(list).filter(row => !moving.includes(row));
  const seen = !list.hasAttribute('data-filtered'); // a filter hides who stands between
  if (before) {
    const previous = rest[rest.indexOf(before) - 1];
    return { before: idOf(before), ...(seen && { seen: previous ? idOf(previous) : 'end' }) };
  }
  return { after: idOf(rest.at(-1)), ...(seen && { seen: list.dataset.next || 'end' }) };
}

/** The row that stands behind the last of `moving`, which stand together; null at the end. */
export function follower(list, moving) {
  const all = rows(list);
  return all[all.indexOf(moving.at(-1)) + 1] ?? null;
}

export function snapshot(list) {
  const order = rows(list);
  return {
    same: () => { const now = rows(list); return now.length === order.length && now.every((row, i) => row === order[i]); },
    restore: () => { for (const row of order) if (row.isConnected) put(list, row, null); },
  };
}

/** Put a row into the list without losing its focus where the browser can. */
export function put(list, row, before) {
  const focus = document.activeElement;
  if (list.moveBefore) list.moveBefore(row, before);
  else list.insertBefore(row, before);
  if (row.contains(focus) && document.activeElement !== focus) focus.focus({ preventScroll: true });
}
