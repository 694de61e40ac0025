// Dialogs that the server renders when they are asked for: a[data-ask], or a form with the field `ask`. Fetched and opened over the
// page, where no live update takes them away; without script the page itself comes with the dialog in it.

import { dropParameters, fetched } from './page.js';

/** The dialog of a page, taken out of it; null if it has none. */
export function taken(sent) {
  const around = sent.getElementById('scrim');
  around?.remove();
  if (around) sent.getElementById('shell')?.removeAttribute('inert'); // a modal dialog shuts the page out by itself
  for (const each of sent.querySelectorAll('[inert]')) each.removeAttribute('inert'); // what lies under it, without script
  return around?.querySelector('dialog') ?? null;
}

/** Open a dialog of the server's over the page, in place of one that is open. */
export function open(dialog) {
  const opener = document.activeElement;
  const before = document.getElementById(dialog.id);
  before?.remove();
  const mine = document.importNode(dialog, true);
  mine.removeAttribute('open');
  mine.removeAttribute('aria-modal'); // showModal says so itself
  mine.setAttribute('data-own', '');
  document.body.append(mine);
  mine.showModal();
  mine.querySelector('[aria-invalid=true]')?.focus();
  const back = before?.opener ?? opener;
  mine.opener = back;
  mine.addEventListener('close', () => {
    mine.remove();
    if (document.activeElement === document.body && back?.isConnected) back.focus();
  });
}

/** Fetch the page at `url` and open its dialog; go there if it has none. */
export async function openAt(url) {
  const page = await fetched(url, 'dialog');
  if (!page) return;
  const dialog = taken(new DOMParser().parseFromString(page.html, 'text/html'));
  if (dialog) open(dialog);
  else location.assign(url);
}

function clicked(event) {
  const link = event.target.closest?.('a[data-ask], dialog[data-own] a[data-visit]');
  if (!link || event.button || event.metaKey || event.ctrlKey || event.shiftKey) return;
  event.preventDefault();
  event.stopPropagation();
  if (!link.hasAttribute('data-ask')) return link.closest('dialog').close();
  const menu = link.closest('details.menu[open]');
  if (menu) {
    menu.open = false;
    menu.querySelector('summary').focus();
  }
  openAt(link.href);
}

export function start() {
  document.addEventListener('click', clicked, true);
  const dialog = taken(document); // the address asked for it
  if (!dialog) return;
  dropParameters('ask', 'item', 'schedule');
  open(dialog);
}
