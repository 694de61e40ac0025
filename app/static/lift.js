// What a drag shows: the row in the hand with its coming position, how many come along, and the line that marks the place.

import { paint } from './line.js';

const own = (name, className) => {
  const element = document.createElement(name);
  element.className = className;
  element.setAttribute('aria-hidden', 'true');
  element.setAttribute('data-own', '');
  return element;
};

export function lift(list, row, moving, grabbed) {
  const box = row.getBoundingClientRect();
  const ghost = own('div', 'ghost');
  const copy = row.cloneNode(true);
  for (const each of [copy, ...copy.querySelectorAll('[id]')]) each.removeAttribute('id');
  for (const field of copy.querySelectorAll('[name]')) field.removeAttribute('name'); // no second field of the form around
  const wrap = own('ol', list.className);
  wrap.append(copy);
  ghost.append(wrap);
  if (moving.length > 1) {
    const count = own('span', 'count count-bad stack');
    count.textContent = String(moving.length);
    ghost.append(count);
  }
  ghost.style.inlineSize = `${box.width}px`;
  ghost.style.left = `${box.left}px`;
  const mark = own('li', 'drop');
  mark.append(document.createElement('span'));
  document.body.append(ghost);
  for (const each of moving) each.classList.add('is-lifted');
  document.documentElement.classList.add('is-dragging');
  const offset = box.top - grabbed;
  return {
    follow(y) { ghost.style.top = `${y + offset}px`; },
    /** Mark the place in front of `before`, null at the end, where the rows get these positions. */
    mark(before, positions) {
      if (mark.parentNode !== list || mark.nextElementSibling !== before) list.insertBefore(mark, before);
      const text = positions.length > 4 ? [positions[0], '…', positions.at(-1)].join(' ') : positions.join(', ');
      mark.firstChild.textContent = text ? `→ ${text}` : '';
      mark.firstChild.hidden = !text;
      if (positions.length) paint(copy, positions[0]);
    },
    end() {
      ghost.remove();
      mark.remove();
      for (const each of moving) each.classList.remove('is-lifted');
      document.documentElement.classList.remove('is-dragging');
    },
  };
}

const EDGE = 60; // px from an edge of the window within which it scrolls
const FASTEST = 1.6; // px in a millisecond, at the very edge

/** Scrolls the window while the pointer is near its upper or lower edge; `scrolled` is called after each bit. */
export function scroller(scrolled) {
  let y = innerHeight / 2;
  let frame = 0;
  let then = performance.now();
  const run = now => {
    const passed = Math.max(0, Math.min(250, now - then)); // a window that was busy does not leap
    then = now;
    const top = document.querySelector('.top')?.getBoundingClientRect().bottom ?? 0; // the bar stays in view
    const up = Math.max(0, top) + EDGE - y;
    const down = y - (innerHeight - EDGE);
    const depth = Math.min(1, Math.max(up, down) / EDGE);
    if (depth > 0) {
      const before = scrollY;
      scrollBy(0, (up > 0 ? -1 : 1) * Math.ceil(FASTEST * depth * passed));
      if (scrollY !== before) scrolled();
    }
    frame = requestAnimationFrame(run);
  };
  frame = requestAnimationFrame(run);
  return { at(now) { y = now; }, end() { cancelAnimationFrame(frame); } };
}
