// Turns what is on the page into what the server sent, keyed by ids, so that focus, selection, open folds, half-typed fields and
// scrolling stay as they are. [data-keep] is the script's own and left alone, with what is in it; [data-own] was put in by the script.

import { remembered } from './fields.js';

const STATE = new Set(['open', 'aria-expanded', 'aria-busy', 'style']); // a person or the script has set them
const MARKS = ['is-lifted', 'is-picked', 'was-moved', 'up'];

/**
 * Make `from` what `to`, of another document, is. frozen(element): the order and the number of its children are held; those
 * that stay are updated. What `to` holds is used up. Answers how many changes of order are held back.
 */
export function morph(from, to, frozen = () => false) {
  const focus = document.activeElement;
  const range = selection(focus);
  const at = { left: window.scrollX, top: window.scrollY };
  const held = element(from, to, frozen);
  if (focus?.isConnected && document.activeElement !== focus) {
    focus.focus({ preventScroll: true });
    if (range) focus.setSelectionRange(...range);
  }
  if (window.scrollX !== at.left || window.scrollY !== at.top) window.scrollTo(at);
  return held;
}

function selection(field) {
  try {
    return field?.selectionStart == null ? null : [field.selectionStart, field.selectionEnd, field.selectionDirection];
  } catch {
    return null; // a kind of field that has none
  }
}

function element(from, to, frozen) {
  if (from.hasAttribute('data-keep') || from.isEqualNode(to)) return 0;
  const restore = remembered(from);
  attributes(from, to);
  const held = frozen(from) ? inPlace(from, to, frozen) : children(from, to, frozen);
  restore();
  return held;
}

const kept = (element, name) => STATE.has(name) || (name === 'aria-pressed' && element.closest('.is-picked'));

function attributes(from, to) {
  for (const { name } of [...from.attributes]) {
    if (!to.hasAttribute(name) && !kept(from, name)) from.removeAttribute(name);
  }
  for (const { name, value } of to.attributes) {
    if (name === 'class') {
      const marks = MARKS.filter(mark => from.classList.contains(mark));
      const wanted = [value, ...marks].join(' ');
      if (from.getAttribute('class') !== wanted) from.setAttribute('class', wanted);
    } else if (!(kept(from, name) && (from.hasAttribute(name) || name === 'open')) && from.getAttribute(name) !== value) {
      from.setAttribute(name, value);
    }
  }
}

const key = node => (node.nodeType === Node.ELEMENT_NODE && node.id) || null;
const own = node => node.nodeType === Node.ELEMENT_NODE && node.hasAttribute('data-own');

function put(parent, node, before) {
  // A move that keeps focus, an open dialog and scrolling, where the browser has it.
  if (parent.moveBefore && node.isConnected && node.ownerDocument === document) parent.moveBefore(node, before);
  else parent.insertBefore(node, before);
}

function children(from, to, frozen) {
  let held = 0;
  const mine = new Map([...from.children].filter(key).map(child => [child.id, child]));
  const wanted = new Set([...to.children].map(key).filter(Boolean));
  const free = node => !own(node) && !(key(node) && wanted.has(node.id)); // may be used for what has no id of its own
  let at = from.firstChild;
  for (const next of [...to.childNodes]) {
    let found = key(next) ? mine.get(next.id) : null;
    if (found && found.nodeName !== next.nodeName) found = null;
    if (!found && !key(next)) {
      for (found = at; found && !(free(found) && !key(found) && found.nodeName === next.nodeName); ) found = found.nextSibling;
    }
    while (at && at !== found && own(at)) at = at.nextSibling;
    if (!found) {
      from.insertBefore(document.importNode(next, true), at);
      continue;
    }
    if (found === at) at = at.nextSibling;
    else put(from, found, at);
    if (found.nodeType === Node.ELEMENT_NODE) held += element(found, next, frozen);
    else if (found.nodeValue !== next.nodeValue) found.nodeValue = next.nodeValue;
  }
  while (at) {
    const gone = at;
    at = at.nextSibling;
    if (!own(gone)) gone.remove();
  }
  return held;
}

function inPlace(from, to, frozen) {
  const mine = new Map([...from.children].filter(child => key(child) && !own(child)).map(child => [child.id, child]));
  const theirs = [...to.children].filter(key);
  const common = theirs.filter(child => mine.has(child.id));
  const order = [...mine.keys()];
  const places = common.map(child => order.indexOf(child.id));
  let held = theirs.length + mine.size - 2 * common.length + common.length - longestRise(places);
  const staying = new Set(common.map(child => child.id));
  for (const [id, row] of mine) row.toggleAttribute('data-gone', !staying.has(id));
  for (const child of common) held += element(mine.get(child.id), child, frozen);
  return held;
}

function longestRise(numbers) { // how many stand in order already
  const ends = [];
  for (const number of numbers) {
    const at = ends.findIndex(end => end >= number);
    ends[at < 0 ? ends.length : at] = number;
  }
  return ends.length;
}
