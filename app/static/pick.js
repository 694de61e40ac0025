// Moving by the keyboard: Space or Enter on a grip picks its row up, arrows, Home and End carry it, Space or Enter drops it, Escape or
// Tab puts it back.

import * as hold from './hold.js';
import { listOf, put, rows, snapshot, titleOf } from './line.js';
import { dropped } from './move.js';
import { say } from './say.js';
import { word } from './words.js';

let hand = null; // { row, list, grip, before }
let carrying = false; // focus leaves and comes back while a row is carried

export const inHand = () => hand !== null;

function pick(grip) {
  const row = grip.closest('.item');
  const list = listOf(row);
  if (!list || list.getAttribute('aria-busy')) return;
  hand = { row, list, grip, before: snapshot(list) };
  hold.take(list);
  row.classList.add('is-picked');
  grip.setAttribute('aria-pressed', 'true');
  const all = rows(list);
  say(word('picked', { title: titleOf(row), place: all.indexOf(row) + 1, count: all.length }));
}

function letGo() {
  const { row, grip } = hand;
  row.classList.remove('is-picked');
  grip.setAttribute('aria-pressed', 'false');
  const held = hand;
  hand = null;
  return held;
}

function putBack(refocus) {
  const { list, before, grip, row } = letGo();
  before.restore();
  hold.give(list);
  if (refocus) grip.focus();
  say(word('putback', { title: titleOf(row) }));
}

async function drop() {
  const { row, list, before, grip } = letGo();
  if (await dropped(list, [row], before) === 'same') say(word('putback', { title: titleOf(row) }));
  if (grip.isConnected && document.activeElement === document.body) grip.focus();
}

function carry(to) {
  const { row, list } = hand;
  const all = rows(list);
  const place = Math.max(0, Math.min(all.length - 1, to(all.indexOf(row), all.length)));
  const rest = all.filter(each => each !== row);
  carrying = true;
  put(list, row, rest[place] ?? null);
  hand.grip.focus({ preventScroll: true });
  carrying = false;
  row.scrollIntoView({ block: 'nearest' });
  say(word('place', { place: place + 1, count: all.length }));
}

const CARRIES = { ArrowUp: at => at - 1, ArrowDown: at => at + 1, Home: () => 0, End: (_, count) => count - 1 };

function pressed(event) {
  if (event.altKey || event.ctrlKey || event.metaKey || event.isComposing) return;
  const space = event.key === ' ' || event.key === 'Enter';
  if (!hand) {
    const grip = space && !event.repeat && event.target.closest?.('.grip');
    if (!grip || !listOf(grip)) return;
    event.preventDefault();
    pick(grip);
    return;
  }
  const to = CARRIES[event.key];
  if (!to && !space && event.key !== 'Escape' && event.key !== 'Tab') return;
  if (event.key !== 'Tab') event.preventDefault();
  event.stopPropagation();
  if (to) carry(to);
  else if (!space) putBack(event.key === 'Escape');
  else if (!event.repeat) drop();
}

export function start() {
  document.addEventListener('keydown', pressed, true);
  document.addEventListener('focusout', event => {
    if (hand && !carrying && event.target === hand.grip && event.relatedTarget) putBack(false);
  });
  document.addEventListener('pointerdown', () => { if (hand) putBack(false); }, true);
}
