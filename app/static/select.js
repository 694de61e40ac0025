// Selecting rows: ranges with Shift, all that are shown, and the bar that says how many.

import { say } from './say.js';
import { word } from './words.js';

let last = null; // the box that was ticked last, where a range begins
const boxes = area => [...area.querySelectorAll('.pick')].filter(box => !box.closest('[data-gone]'));

/** Bring the bars in line with what is ticked. */
export function count() {
  for (const area of document.querySelectorAll('.has-pick')) {
    const all = boxes(area);
    const ticked = all.filter(box => box.checked).length;
    for (const told of area.querySelectorAll('[data-count]')) told.textContent = String(ticked);
    const whole = area.querySelector('[data-pick-all]');
    if (whole) {
      whole.checked = ticked > 0 && ticked === all.length;
      whole.indeterminate = ticked > 0 && ticked < all.length;
    }
  }
}

function tick(area, wanted) {
  for (const box of boxes(area)) box.checked = wanted;
  changed(area);
}

function changed(area) {
  count();
  const ticked = boxes(area).filter(box => box.checked).length;
  say(ticked ? word('selected', { n: ticked }) : word('unselected'));
  document.dispatchEvent(new CustomEvent('picked'));
}

function clicked(event) {
  const area = event.target.closest?.('.has-pick');
  if (!area) return;
  if (event.target.matches('.pick')) {
    const all = boxes(area);
    const [from, to] = [all.indexOf(last), all.indexOf(event.target)];
    if (event.shiftKey && from >= 0) {
      for (const box of all.slice(Math.min(from, to), Math.max(from, to) + 1)) box.checked = event.target.checked;
    }
    last = event.target;
    changed(area);
  } else if (event.target.matches('[data-pick-all]')) {
    tick(area, event.target.checked);
  } else if (event.target.closest('[data-pick-none]')) {
    event.preventDefault();
    tick(area, false);
  } else if (event.target.closest('[data-pick-every]')) {
    event.preventDefault();
    tick(area, true);
  }
}

export function start() {
  document.addEventListener('click', clicked);
  document.addEventListener('picked', count);
  count();
}
