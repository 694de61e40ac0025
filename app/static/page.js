// The page against the server: fetch its own address again and morph, at most once a second, never over something newer.

import * as asks from './asks.js';
import { badge } from './badge.js';
import * as hold from './hold.js';
import { morph } from './morph.js';
import { announce, unanswered } from './notice.js';

const PAUSE = 1000; // ms between two looks
const PATIENCE = 20000; // ms for an answer

const asked = { page: 0, dialog: 0 }; // how often so far
let tickets = 0; // one for each answer to come
let shown = 0; // that of what is on the page
let kept = ''; // the page that was sent last
let last = -Infinity;
let timer = 0;
let looking = false;
let again = false;
const listeners = new Set();

export const ticket = () => ++tickets;
/** Call back after each change of the page by the server. */
export const onShown = listener => listeners.add(listener);

export const ask = (url, how = {}) =>
  fetch(url, { credentials: 'same-origin', headers: { Accept: 'text/html' }, signal: AbortSignal.timeout(PATIENCE), ...how });

export const isPage = answer => (answer.headers.get('Content-Type') ?? '').startsWith('text/html');

/** Whether the server would rather have somebody sign in first; it is said. */
export function signedOut(answer) {
  const out = answer.status === 401 || (answer.redirected && new URL(answer.url).pathname === '/login');
  if (out) badge.link('out');
  return out;
}

/** The page at `url`, {url, html}; null where it is not to be had, which is said or shown, or another `what` was asked for since. */
export async function fetched(url, what) {
  const mine = ++asked[what];
  try {
    const answer = await ask(url);
    const html = isPage(answer) && answer.ok ? await answer.text() : null;
    if (mine !== asked[what] || signedOut(answer)) return null;
    if (html !== null) return { url: answer.url, html };
    location.assign(url);
  } catch {
    if (mine === asked[what]) unanswered();
  }
  return null;
}

/** Put a page of the server's in place of what is shown. mine: a person's own act, whose order nothing holds. */
export function show(html, number, { mine = false } = {}) {
  if (number < shown) return soon(); // it may have been rendered before what is shown
  shown = number;
  kept = html;
  const sent = new DOMParser().parseFromString(html, 'text/html');
  if (script(sent) !== script(document) && !mine && !hold.busy()) return location.reload(); // the server was renewed
  const before = mine ? new Map() : announce.before();
  if (!mine) keepRefusal(sent);
  const asked = asks.taken(sent);
  document.title = sent.title;
  document.documentElement.lang = sent.documentElement.lang;
  morph(document.getElementById('words'), sent.getElementById('words'));
  hold.counted(morph(document.body, sent.body, mine ? () => false : hold.frozen));
  if (asked && mine) asks.open(asked);
  announce.after(before);
  for (const listener of listeners) listener();
}

/** A refusal stays until the next act: no address would tell of it again. */
function keepRefusal(sent) {
  const mine = document.getElementById('notices');
  if (mine?.querySelector('[role=alert]:not([data-keep])')) sent.getElementById('notices')?.replaceWith(mine.cloneNode(true));
}

const script = of => of.querySelector('script[src]')?.getAttribute('src');

/** Put in order what was held back. */
export function release() {
  if (kept) show(kept, shown, { mine: true });
}

/** Leave parameters out of the address; nothing is loaded. */
export function dropParameters(...names) {
  const url = new URL(location.href);
  for (const name of names) url.searchParams.delete(name);
  history.replaceState(null, '', url);
}

/** Look at the page's own address, now or when a second has passed since the last time. */
export function soon() {
  if (looking) again = true;
  else if (!timer) timer = setTimeout(look, Math.max(0, last + PAUSE - performance.now()));
}

let failed = () => {};
/** Call back when the page could not be had. */
export const onFailure = listener => { failed = listener; };

const here = () => location.pathname + location.search;

async function look() {
  timer = 0;
  looking = true;
  last = performance.now();
  const number = ticket();
  const address = here();
  try {
    const answer = await ask(address);
    if (!signedOut(answer)) {
      const html = answer.ok && isPage(answer) ? await answer.text() : null;
      if (address !== here()) again = true; // meanwhile another address is shown: more rows, a filter
      else if (html !== null) show(html, number);
      else failed();
    }
  } catch {
    failed();
  }
  looking = false;
  if (again) {
    again = false;
    soon();
  }
}
