// The output of a running attempt: looked at each second while it grows, its end in view unless somebody has scrolled up.

import { soon } from './page.js';

const PAUSE = 1000; // ms
let paused = false;
const atEnd = new WeakMap(); // box -> whether its end was in view

const boxes = () => [...document.querySelectorAll('[data-output]')];
const growing = () => boxes().some(box => box.dataset.output === 'running');
const low = box => box.scrollHeight - box.scrollTop - box.clientHeight < 24;

/** After each new page: the end in view where it was. */
export function follow() {
  for (const box of boxes()) {
    if (paused) continue;
    if (atEnd.get(box) ?? box.dataset.output !== 'ended') box.scrollTop = box.scrollHeight;
  }
  controls();
}

function controls() {
  for (const button of document.querySelectorAll('[data-output-pause]')) {
    button.hidden = !growing();
    button.setAttribute('aria-pressed', String(paused));
  }
}

export function start() {
  document.addEventListener('scroll', event => {
    if (event.target instanceof Element && event.target.matches('[data-output]')) atEnd.set(event.target, low(event.target));
  }, true);
  document.addEventListener('click', event => {
    if (!event.target.closest?.('[data-output-pause]')) return;
    paused = !paused;
    for (const box of boxes()) box.toggleAttribute('data-keep', paused); // a morph leaves it as it is
    controls();
    if (!paused) soon();
  });
  setInterval(() => { if (growing() && !paused && !document.hidden) soon(); }, PAUSE);
  follow();
}
