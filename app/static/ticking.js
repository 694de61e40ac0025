// Ages and running times go on by themselves, as app/wording.py writes them, and moments are shown in the reader's own time zone. The
// page says what the database's clock was: a wrong clock of the reader's machine changes nothing.

import { language, page, word } from './words.js';

const SIZES = [86400, 3600, 60, 1]; // seconds of a day, an hour, a minute, a second
let ahead = 0; // ms that this machine's clock is ahead of the database's

const number = value => new Intl.NumberFormat(language()).format(value);

function rough(seconds, units) {
  const at = SIZES.findIndex((size, i) => seconds >= (i < 2 ? 2 * size : size)); // 47 h say more than 1 d
  return at < 0 ? `${seconds} ${units[3]}` : `${number(Math.floor(seconds / SIZES[at]))} ${units[at]}`;
}

function exact(seconds, units) {
  const at = SIZES.findIndex(size => seconds >= size);
  if (at < 0 || at === 3) return `${seconds} ${units[3]}`;
  const rest = Math.floor((seconds % SIZES[at]) / SIZES[at + 1]);
  return `${number(Math.floor(seconds / SIZES[at]))} ${units[at]}${rest ? ` ${rest} ${units[at + 1]}` : ''}`;
}

/** A length of time as text; how: exact, or else rough. */
export const written = (seconds, how) => (how === 'exact' ? exact : rough)(seconds, word('units').split(' '));

function moment(there, now) {
  const day = how => new Intl.DateTimeFormat('en-CA', { dateStyle: 'short' }).format(how);
  const near = Math.abs(there - now) < 300 * SIZES[0] * 1000;
  const date = day(there) === day(now) ? {} : near ? { day: 'numeric', month: 'short' } : { year: 'numeric', month: 'short', day: 'numeric' };
  return new Intl.DateTimeFormat(language(), { ...date, hour: '2-digit', minute: '2-digit', hourCycle: 'h23' }).format(there);
}

function each(selector, text) {
  for (const element of document.querySelectorAll(selector)) {
    const there = Date.parse(element.getAttribute('datetime'));
    if (Number.isNaN(there)) continue;
    const wanted = text(there, element);
    if (element.textContent !== wanted) element.textContent = wanted;
  }
}

function tick() {
  const now = Date.now() - ahead;
  const seconds = span => Math.max(0, Math.floor(span / 1000));
  each('time[data-age]', (there, element) => written(seconds(now - there), element.dataset.age));
  each('time[data-until]', there => written(seconds(there - now), 'exact'));
}

export function start() {
  setInterval(() => { if (!document.hidden) tick(); }, 1000);
}

/** After each page of the server's. */
export function synchronize() {
  const now = Date.parse(page().now ?? '');
  if (!Number.isNaN(now)) ahead = Date.now() - now;
  tick();
  each('time[data-at]', (there, element) => {
    element.title = element.getAttribute('datetime');
    return moment(there, Date.now() - ahead);
  });
}
