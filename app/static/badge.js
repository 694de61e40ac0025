// The live word in the header, and the bar that says when what is on the page may be old.

import { clock, word } from './words.js';
import { say } from './say.js';

let link = 'off'; // live, retrying, off, out (signed out)
let since = new Date();
let holding = false;
let waiting = 0;
let spoken = '';

function shown() {
  if (link === 'live') return holding ? ['held', waiting ? word('held', { n: waiting }) : word('holding')] : ['live', word('liveWord')];
  if (link === 'retrying') return ['retrying', word('retrying')];
  return ['off', link === 'out' ? word('out') : word('off', { time: clock(since) })];
}

function draw() {
  const box = document.getElementById('live');
  if (!box) return;
  const [state, sentence] = shown();
  box.hidden = false;
  box.dataset.s = state;
  const text = box.querySelector('[data-text]');
  if (text && text.textContent !== sentence) text.textContent = sentence;
  const show = box.querySelector('[data-show]');
  if (show) show.hidden = !(state === 'held' && waiting > 0);
  bar('stale', link === 'off', word('stale', { time: clock(since, true) }));
  bar('out', link === 'out', word('signedout'));
  if ((link === 'off' || link === 'live') && spoken !== link) {
    if (spoken) say(sentence); // the first word of a page is no news
    spoken = link;
  }
}

function bar(id, wanted, sentence) {
  const box = document.getElementById(id);
  if (!box) return;
  box.hidden = !wanted;
  if (wanted && box.querySelector('p').textContent !== sentence) box.querySelector('p').textContent = sentence;
}

export const badge = {
  /** state: live, retrying, off, out; since: when the last line came. */
  link(state, when = since) { link = state; since = when; draw(); },
  held(now, changes) { holding = now; waiting = changes; draw(); },
  draw,
};
