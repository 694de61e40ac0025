// Held, not frozen: while somebody drags, has picked up, selects, has a menu open or is typing in a list, its order stays; what is
// inside its rows goes on.

import { dirty } from './fields.js';
import { badge } from './badge.js';
import { word } from './words.js';
import { say } from './say.js';

const hands = new Set(); // lists with a row in somebody's hand
let all = false; // live updates are held by hand
let waiting = 0;
let letGo = () => {};

export const onRelease = listener => { letGo = listener; };

/** Whether the order of this list is held now. */
export function frozen(list) {
  if (!list.hasAttribute('data-sortable') && !list.hasAttribute('data-held')) return false;
  return all || hands.has(list) || list.querySelector('.pick:checked, details.menu[open]') !== null || typing(list);
}

const typing = list => [...list.querySelectorAll('input, textarea, select')].some(field => !field.matches('.pick') && dirty(field));
const lists = () => [...document.querySelectorAll('[data-sortable], [data-held]')];

/** Whether a new page would take something out of somebody's hands. */
export const busy = () => lists().some(frozen) || document.querySelector('dialog[open]') !== null
  || [...document.querySelectorAll('main input, main textarea, main select')].some(dirty);

export function take(list) { hands.add(list); }
export function give(list) { hands.delete(list); settle(); }

/** How many changes of order the last page has that are held back. */
export function counted(changes) {
  waiting = changes;
  const gone = [...document.querySelectorAll('[data-gone] .pick:checked')];
  for (const pick of gone) pick.checked = false;
  if (gone.length) {
    say(word('dropped', { n: gone.length, title: gone[0].closest('[data-gone]').querySelector('.title')?.textContent.trim() ?? '' }));
    document.dispatchEvent(new CustomEvent('picked'));
    queueMicrotask(settle);
  }
  badge.held(all || waiting > 0, waiting);
}

/** Put the order right if nothing holds it any more. */
export function settle() {
  if (waiting > 0 && !lists().some(frozen)) {
    waiting = 0;
    letGo();
  }
  badge.held(all || waiting > 0, waiting);
}

export function toggle() {
  all = !all;
  say(word(all ? 'holding' : 'resumed'));
  settle();
}

export function start() {
  // After the event has had its effect: a reset clears its boxes, a toggle its menu, later than they tell.
  const later = () => setTimeout(settle);
  for (const event of ['change', 'input', 'reset', 'picked']) document.addEventListener(event, later);
  document.addEventListener('toggle', later, true);
  document.addEventListener('click', event => {
    if (!event.target.closest?.('[data-show]')) return;
    waiting = 0;
    letGo();
    badge.held(all, 0);
  });
}
