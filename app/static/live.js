// Live: listens to what happens and looks at the page again when it is concerned. Never silently old: what is missing is shown.

import { badge } from './badge.js';
import { onFailure, soon } from './page.js';
import { listen } from './stream.js';
import { page } from './words.js';

const SILENT = 20000; // ms without a byte after which a stream is dead; a comment comes every 15 s
const OLD = 15000; // ms without a stream after which the page is not live
const HIDDEN = 30000; // ms in the background after which nothing is listened to
const LONGEST = 8000; // ms between two tries

let control = null; // of the stream that is open or being opened
let open = false;
let last = null; // the place to go on from
let heard = Date.now(); // when the last byte came
let from = Date.now(); // since when a stream has been wanted in vain
let tries = 0;
let away = false; // the server is there, but its database is not
let again = 0;
let hiding = 0;
let changed = false; // while nobody looked

const tabs = 'BroadcastChannel' in window ? new BroadcastChannel('relevo') : null;
const wanted = () => page().live;

function concerns(plans) {
  const mine = (page().plans ?? '').split(' ');
  return mine.includes('*') || plans.some(plan => mine.includes(plan));
}

function look() {
  if (document.hidden) changed = true;
  else soon();
}

function happened({ id, event, data }) {
  if (id) last = id;
  if (!data) return;
  const told = JSON.parse(data);
  if (event === 'away') return behind(true);
  if (event === 'back') behind(false);
  if (event === 'reset' || event === 'back') look();
  else if (event === 'signals') { if (document.getElementById('signals')) look(); }
  else if (concerns(event === 'changed' ? told.plans : [told.plan].filter(Boolean))) look();
}

/** The server listens to nothing itself: it has lost its database. */
function behind(is) {
  away = is;
  badge.link(is ? 'off' : 'live', new Date());
}

async function connect() {
  clearTimeout(again);
  if (control || !wanted()) return;
  const mine = new AbortController();
  control = mine;
  let status = 0;
  try {
    // What the page has is what had happened when it was made; where the server cannot say, it tells everything once.
    await listen(wanted(), last ?? page().place, mine.signal, {
      onOpen() {
        open = true;
        tries = 0;
        heard = Date.now();
        away = false;
        badge.link('live', new Date(heard)); // and the server tells what was missed
      },
      onLine() { heard = Date.now(); },
      onEvent: happened,
    });
  } catch (error) {
    status = error.status ?? 0;
  }
  if (control !== mine) return; // somebody else has closed it
  control = null;
  lost(status);
}

function lost(status) {
  if (open) from = Date.now();
  open = away = false;
  if (status === 401 || status === 403) return badge.link('out', new Date(heard));
  state();
  tries += 1;
  // Many pages lose a server at once: they come back one after the other.
  again = setTimeout(connect, Math.min(LONGEST, 500 * 2 ** tries) * (0.5 + Math.random() / 2));
}

function close() {
  clearTimeout(again);
  open = false;
  control?.abort();
  control = null;
}

function state() {
  if (open || away || !wanted()) return;
  const now = Date.now();
  if (now - Math.max(from, heard) > OLD) badge.link('off', new Date(heard));
  else if (now - from > 1000 || tries) badge.link('retrying', new Date(heard));
}

function beat() {
  if (document.hidden) return;
  if (open && Date.now() - heard > SILENT) {
    close();
    from = heard;
    connect();
  }
  state();
}

function visibility() {
  clearTimeout(hiding);
  if (document.hidden) {
    hiding = setTimeout(close, HIDDEN);
    return;
  }
  tabs?.postMessage('looked at'); // a browser has six connections to a server: the pages behind give theirs up
  from = Date.now();
  if (!control) connect();
  if (changed) soon();
  changed = false;
}

export function start() {
  if (!wanted()) return;
  document.addEventListener('visibilitychange', visibility);
  tabs?.addEventListener('message', () => { if (document.hidden) close(); });
  window.addEventListener('pagehide', close);
  window.addEventListener('pageshow', event => { if (event.persisted) visibility(); });
  window.addEventListener('online', () => { if (!open) { close(); connect(); } });
  onFailure(() => setTimeout(soon, 3000));
  setInterval(beat, 1000);
  if (!document.hidden) connect();
}
