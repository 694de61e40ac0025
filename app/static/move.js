// Sends a move, however it was made: one request, one answer, one sentence.

import * as hold from './hold.js';
import { follower, idOf, listOf, place, put, rows, snapshot, titleOf } from './line.js';
import { say } from './say.js';
import { post } from './submit.js';
import { word } from './words.js';

let queue = Promise.resolve(); // moves are made one after the other: each says what was seen after the one before

/** The rows stand where they were dropped already; `before` puts them back if it does not come to be. */
export async function dropped(list, moving, before) {
  if (before.same()) {
    hold.give(list);
    return 'same';
  }
  const outcome = await send(list, moving, place(list, moving, follower(list, moving), before.order), () => before.restore());
  hold.give(list);
  return outcome;
}

async function send(list, moving, where, putBack) {
  const many = moving.length > 1;
  const form = moving[0].querySelector('form[action$="/move"]'); // the menu's: every way of moving is one request
  const action = many ? list.dataset.moveMany : form.action;
  const fields = [...Object.entries(where), ['back', form.elements.back.value]];
  if (many) for (const row of moving) fields.push(['item', idOf(row)]);
  const ids = moving.map(row => row.id);
  list.setAttribute('aria-busy', 'true');
  const outcome = await post(action, fields, {
    settle(done) {
      list.removeAttribute('aria-busy');
      if (!done) putBack();
      else if (many) for (const pick of list.querySelectorAll('.pick:checked')) pick.checked = false;
    },
  });
  if (outcome === 'done') for (const id of ids) flash(document.getElementById(id));
  if (many) document.dispatchEvent(new CustomEvent('picked'));
  return outcome;
}

function flash(row) {
  if (!row) return;
  row.classList.remove('was-moved');
  void row.offsetWidth; // begin again where it runs already
  row.classList.add('was-moved');
  row.addEventListener('animationend', () => row.classList.remove('was-moved'), { once: true });
}

/** Move a row by one place up (-1) or down (1), after what is under way. */
export function step(id, by) {
  queue = queue.then(() => stepped(id, by)).catch(() => {});
  return queue;
}

async function stepped(id, by) {
  const row = document.getElementById(id);
  const list = row && listOf(row);
  if (!list) return;
  const all = rows(list);
  const to = all.indexOf(row) + by;
  if (to < 0 || to >= all.length) {
    say(word(to < 0 ? 'first' : 'last', { title: titleOf(row) }));
    return;
  }
  const before = snapshot(list);
  hold.take(list);
  put(list, row, by < 0 ? all[to] : all[to].nextSibling);
  row.scrollIntoView({ block: 'nearest' });
  await dropped(list, [row], before);
}

export function start() {
  document.addEventListener('keydown', event => {
    const row = event.altKey && !event.ctrlKey && !event.metaKey && event.target.closest?.('[data-sortable] > .item');
    if (!row || (event.key !== 'ArrowUp' && event.key !== 'ArrowDown') || !row.querySelector('.grip')) return;
    event.preventDefault();
    step(row.id, event.key === 'ArrowUp' ? -1 : 1);
  });
}
