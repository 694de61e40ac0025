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
  const anchor = before ?? rows(list).filter(row => !moving.includes(row)).at(-1);
  if (!anchor) return [];
  // Items that are out of the line keep their positions, so the gap may be narrower than it looks.
  const known = [...(list.closest('[data-plan]') ?? document).querySelectorAll('.item[data-pos]:not([data-gone])')];
  const places = new Map(known.map(row => [row, row.dataset.pos]));
  const beyond = before ? 'data-later' : 'data-next'; // the line goes on where the page does not
  const found = [];
  for (const row of moving) { // one after the other, as they are moved
    places.delete(row);
    const at = found.at(-1) ?? places.get(anchor);
    const lower = before && !found.length; // the first goes in front of the anchor, the next ones behind it
    const beside = [...places.values()].filter(each => (lower ? compare(each, at) < 0 : compare(each, at) > 0)).sort(compare);
    if (!beside.length && list.hasAttribute(beyond)) return [];
    const position = lower ? between(beside.at(-1) ?? null, at, 1)[0] : between(at, beside[0] ?? null, 1)[0];
    if (position === undefined) return [];
    places.set(row, position);
    found.push(position);
  }
  return found;
}

export function paint(row, position) {
  const [whole, part] = position.split('.');
  const [b, i] = row.querySelectorAll('.pos b, .pos i');
  if (b) b.textContent = whole;
  if (i) i.textContent = part ? `.${part}` : '';
}

/**
 * The fields that say where the rows have been put, and what was seen on the far side of the gap, where the page shows it.
 * order: the line before they were.
 */
export function place(list, moving, before, order) {
  const rest = rows(list).filter(row => !moving.includes(row));
  const neighbour = before ?? rest.at(-1);
  const line = order.filter(row => row !== moving[0]); // the first is moved first; the others stand where they stood
  const far = line[line.indexOf(neighbour) + (before ? -1 : 1)];
  const known = !list.hasAttribute('data-filtered') && (far || !before || !list.hasAttribute('data-later'));
  const seen = known ? { seen: far ? idOf(far) : (!before && list.dataset.next) || 'end' } : {};
  const word = before ? 'before' : 'after';
  return moving.length > 1 ? { place: word, neighbour: idOf(neighbour), ...seen } : { [word]: idOf(neighbour), ...seen };
}

/** The row that stands behind the last of `moving`, which stand together; null at the end. */
export function follower(list, moving) {
  const all = rows(list);
  return all[all.indexOf(moving.at(-1)) + 1] ?? null;
}

export function snapshot(list) {
  const order = rows(list);
  return {
    order,
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
