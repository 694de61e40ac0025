// Single keys, where no field has focus; a person can switch them off. [data-key="m"] is pressed by its key, first the row's own,
// then the page's; "g p" is G, then P; [data-key="/"] is a field and gets focus.

import * as hold from './hold.js';
import { openDialog } from './menus.js';
import { inHand } from './pick.js';

const OFF = 'relevo.keys.off';
const SECOND = 1500; // ms for the second key
let first = -Infinity; // when G was pressed

const off = () => { try { return localStorage.getItem(OFF) === 'yes'; } catch { return false; } };
const writing = element => element.closest?.('input:not([type=checkbox]):not([type=radio]), textarea, select, [contenteditable]');
const titles = () => [...document.querySelectorAll('main .item .title')].filter(each => each.checkVisibility?.() ?? true);

function go(by) {
  const all = titles();
  const row = document.activeElement?.closest?.('.item');
  const at = all.findIndex(title => row?.contains(title));
  const next = all[at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.max(0, Math.min(all.length - 1, at + by))];
  next?.focus();
  next?.closest('.item').scrollIntoView({ block: 'nearest' });
}

function press(key, row) {
  const find = scope => [...(scope?.querySelectorAll(`[data-key="${CSS.escape(key)}"]`) ?? [])].find(each => !each.disabled);
  const target = find(row) ?? [...document.querySelectorAll(`[data-key="${CSS.escape(key)}"]`)].find(each => !each.closest('.item') && !each.disabled);
  if (!target) return false;
  if (target.matches('input, textarea')) {
    target.focus();
    target.select?.();
  } else target.click();
  return true;
}

function pressed(event) {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing || event.repeat) return;
  if (off() || inHand() || writing(event.target) || document.querySelector('dialog[open]')) return;
  const row = event.target.closest?.('.item');
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  const second = performance.now() - first < SECOND;
  first = -Infinity;
  let done = true;
  if (second && key.length === 1) done = press(`g ${key}`);
  else if (key === 'g') first = performance.now();
  else if (key === 'j' || key === 'k') go(key === 'j' ? 1 : -1);
  else if (key === 'x') tick(row, event.shiftKey);
  else if (key === '.') hold.toggle();
  else if (key === '?') openDialog('dlg-keys');
  else if (key === 'Enter') done = event.target === row && press('Enter', row); // on a title it is the link's own
  else done = key.length === 1 && press(key, row);
  if (done) event.preventDefault();
}

function tick(row, shiftKey) {
  row?.querySelector('.pick')?.dispatchEvent(new MouseEvent('click', { bubbles: true, cancelable: true, shiftKey }));
}

export function start() {
  document.addEventListener('keydown', pressed);
  document.addEventListener('change', event => {
    if (!event.target.matches?.('[data-keys-on]')) return;
    try { localStorage.setItem(OFF, event.target.checked ? 'no' : 'yes'); } catch { /* a browser that keeps nothing: on for this page */ }
  });
  synchronize();
}

export function synchronize() {
  for (const box of document.querySelectorAll('[data-keys-on]')) box.checked = !off();
  for (const each of document.querySelectorAll('[data-scripted]')) each.hidden = false; // of use with script only
}
