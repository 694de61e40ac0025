// The page against the server: fetch its own address again and morph, at most once a second, never over something newer.

import * as hold from './hold.js';
import { morph } from './morph.js';
import { announce } from './notice.js';

const PAUSE = 1000; // ms between two looks
const PATIENCE = 20000; // ms for an answer

let tickets = 0; // one for each answer to come
let shown = 0; // that of what is on the page
let kept = ''; // the page that was sent last, while an order is held
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

/** Whether the server would rather have somebody sign in first. */
export const signedOut = answer => answer.status === 401 || (answer.redirected && new URL(answer.url).pathname === '/login');

/** Put a page of the server's in place of what is shown. mine: a person's own act, whose order nothing holds. */
export function show(html, number, { mine = false } = {}) {
  if (number < shown) return soon(); // it may have been rendered before what is shown
  shown = number;
  kept = html;
  const sent = new DOMParser().parseFromString(html, 'text/html');
  if (script(sent) !== script(document) && !mine && !hold.busy()) return location.reload(); // the server was renewed
  const before = mine ? new Map() : announce.before();
  document.title = sent.title;
  document.documentElement.lang = sent.documentElement.lang;
  morph(document.getElementById('words'), sent.getElementById('words'));
  hold.counted(morph(document.body, sent.body, mine ? () => false : hold.frozen));
  announce.after(before);
  for (const listener of listeners) listener();
}

const script = of => of.querySelector('script[src]')?.getAttribute('src');

/** Put in order what was held back. */
export function release() {
  if (kept) show(kept, shown, { mine: true });
}

/** Look at the page's own address, now or when a second has passed since the last time. */
export function soon() {
  if (looking) again = true;
  else if (!timer) timer = setTimeout(look, Math.max(0, last + PAUSE - performance.now()));
}

let failed = () => {};
/** Call back with the answer, or nothing, when the page could not be had. */
export const onFailure = listener => { failed = listener; };

async function look() {
  timer = 0;
  looking = true;
  last = performance.now();
  const number = ticket();
  try {
    const answer = await ask(location.href);
    if (answer.ok && isPage(answer) && !signedOut(answer)) show(await answer.text(), number);
    else failed(answer);
  } catch {
    failed(null);
  }
  looking = false;
  if (again) {
    again = false;
    soon();
  }
}
