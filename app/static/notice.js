// What a page says about what happened: the notice of one's own act, and a [data-say] of another's.

import { say } from './say.js';
import { word } from './words.js';

/** Say the notice of the page that answered an act, and lead to it if it is a refusal that a dialog hides. */
export function told(dialog) {
  const notice = document.querySelector('#notice [role=alert], #notice');
  const sentence = notice?.textContent.trim().replace(/\s+/g, ' ') ?? '';
  if (dialog?.open && sentence) inside(dialog, sentence);
  else say(document.querySelector('#notice [data-said]')?.textContent.trim() || sentence);
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
