// Moving by mouse, pen or finger, from the grip only, so that the page still scrolls under a thumb.

import * as hold from './hold.js';
import { lift, scroller } from './lift.js';
import { forecast, handful, listOf, put, rows, snapshot, titleOf } from './line.js';
import { dropped } from './move.js';
import { say } from './say.js';
import { word } from './words.js';

const FAR = 4; // px that are a drag and no press

let drag = null;

/** The first of the resting rows whose middle is below y: the place is in front of it. null at the end. */
function under(rest, y) {
  let [low, high] = [0, rest.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    const box = rest[middle].getBoundingClientRect();
    if (y < box.top + box.height / 2) high = middle;
    else low = middle + 1;
  }
  return rest[low] ?? null;
}

function begin() {
  const { row, list, y0 } = drag;
  const moving = handful(row);
  hold.take(list);
  const shown = lift(list, row, moving, y0);
  Object.assign(drag, { moving, shown, place: undefined, scroll: scroller(() => aim(drag.y)) });
}

function aim(y) {
  const rest = rows(drag.list).filter(row => !drag.moving.includes(row));
  const before = under(rest, y);
  drag.shown.follow(y);
  if (before === drag.before && drag.aimed) return;
  drag.aimed = true;
  drag.before = before;
  drag.shown.mark(before, forecast(drag.list, drag.moving, before));
}

function moved(event) {
  if (event.pointerId !== drag.pointer) return;
  drag.y = event.clientY;
  if (!drag.shown) {
    if (Math.hypot(event.clientX - drag.x0, event.clientY - drag.y0) < FAR) return;
    begin();
  }
  drag.scroll.at(event.clientY);
  aim(event.clientY);
}

function end() {
  const over = drag;
  drag = null;
  for (const [name, listener] of LISTENERS) removeEventListener(name, listener, true);
  over.scroll?.end();
  over.shown?.end();
  return over;
}

function putBack() {
  const { shown, list, row } = end();
  if (!shown) return;
  hold.give(list);
  say(word('putback', { title: titleOf(row) }));
}

async function released(event) {
  if (event.pointerId !== drag.pointer) return;
  const { shown, list, moving, before, row } = end();
  if (!shown) return;
  // The click that follows the release is no press of what lies under it.
  addEventListener('click', swallow, { capture: true, once: true });
  setTimeout(() => removeEventListener('click', swallow, true));
  const order = snapshot(list);
  for (const each of moving) put(list, each, before);
  if (await dropped(list, moving, order) === 'same') say(word('putback', { title: titleOf(row) }));
}

function swallow(event) {
  event.preventDefault();
  event.stopPropagation();
}

function escaped(event) {
  if (event.key !== 'Escape') return;
  swallow(event);
  putBack();
}

const LISTENERS = [
  ['pointermove', moved],
  ['pointerup', released],
  ['pointercancel', event => { if (event.pointerId === drag.pointer) putBack(); }],
  ['blur', event => { if (event.target === window) putBack(); }],
  ['keydown', escaped],
  ['contextmenu', swallow], // a long press of a finger opens none
];

function pressed(event) {
  const grip = event.target.closest?.('.grip');
  const row = grip?.closest('.item');
  const list = row && listOf(row);
  if (!list || event.button || drag || list.getAttribute('aria-busy')) return;
  drag = { row, list, pointer: event.pointerId, x0: event.clientX, y0: event.clientY, y: event.clientY };
  for (const [name, listener] of LISTENERS) addEventListener(name, listener, true);
}

export function start() {
  document.addEventListener('pointerdown', pressed);
  document.addEventListener('dragstart', event => { if (drag) event.preventDefault(); });
}
