// What a page says about what happened: the notice of one's own act, and a [data-say] of another's.

import { say } from './say.js';
import { word } from './words.js';

const read = element => element?.textContent.trim().replace(/\s+/g, ' ') ?? '';

/** Say what the page says of an act that was done or refused. */
export function told(done) {
  const refusal = document.querySelector('dialog[open] [role=alert]') ?? document.querySelector('#notices [role=alert]:not([data-keep])');
  say(read(done ? document.querySelector('#notices .undo p, #notices .note-bar:not([data-keep]) p') : refusal));
}

function inside(dialog, sentence) {
  dialog.querySelector('[data-own].refusal')?.remove();
  const line = document.createElement('p');
  line.className = 'refusal note-bar bad';
  line.setAttribute('role', 'alert');
  line.setAttribute('data-own', '');
  line.textContent = sentence;
  dialog.querySelector('.dlg-b, form')?.prepend(line);
}

/** Show the sentence of a page that is a refusal and nothing else; false if the page is more than that. */
export function refused(html, dialog) {
  const sentence = new DOMParser().parseFromString(html, 'text/html').querySelector('[data-refused]')?.textContent.trim();
  if (!sentence) return false;
  trouble(sentence, dialog);
  return true;
}

/** Say that an act got no answer. */
export const unanswered = dialog => trouble(word('offline'), dialog);

function trouble(sentence, dialog) {
  if (dialog?.open) return inside(dialog, sentence);
  const box = document.getElementById('trouble');
  if (!box) return;
  box.querySelector('p').textContent = sentence;
  box.hidden = false;
  say(sentence);
}

export function answered() {
  const box = document.getElementById('trouble');
  if (box) box.hidden = true;
}

const saying = () => new Map([...document.querySelectorAll('[data-say]')].map(each => [each.id, each.dataset.say]));

export const announce = {
  before: saying,
  after(before) {
    for (const [id, sentence] of saying()) if (before.has(id) && before.get(id) !== sentence) say(sentence);
  },
};
