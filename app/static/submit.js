// Forms without leaving the page: sent by fetch, the answered page morphed in, the address right. Without this every form works too.

import { openAt } from './asks.js';
import { answered, refused, told, unanswered } from './notice.js';
import { ask, fetched, isPage, show, signedOut, soon, ticket } from './page.js';

const sending = new WeakSet(); // forms that wait for their answer
let posting = 0; // acts that wait for theirs; a page is left only after they are done

/** Whether an act is under way. */
export const underWay = () => posting > 0;

/**
 * Post fields and show the page that answers. Answers 'done', 'refused' (the page says why) or 'lost' (no answer came, or
 * somebody must sign in first). settle: called before the answered page is shown, with whether the act was done.
 */
export async function post(action, fields, { dialog = null, settle = () => {} } = {}) {
  posting += 1;
  try {
    const answer = await ask(action, { method: 'POST', body: new URLSearchParams(fields) });
    if (signedOut(answer)) {
      settle(false);
      return 'lost';
    }
    if (!isPage(answer)) throw new TypeError('no page');
    const html = await answer.text();
    const done = answer.ok;
    settle(done);
    answered();
    const there = new URL(answer.url);
    if (done && answer.redirected && there.pathname !== location.pathname) {
      location.assign(there);
      return 'done';
    }
    if (done && answer.redirected) history.replaceState(null, '', there); // else it is this page, with a question answered
    if (!done && refused(html, dialog)) return 'refused'; // a page with nothing but the sentence
    show(html, ticket(), { mine: true });
    told(done);
    return done ? 'done' : 'refused';
  } catch {
    settle(false);
    unanswered(dialog);
    soon();
    return 'lost';
  } finally {
    posting -= 1;
  }
}

/** Show another address of this page: a filter, more rows. */
export async function visit(url, { push = true } = {}) {
  const number = ticket();
  const page = await fetched(url, 'page');
  if (!page) return;
  if (push) history.pushState(null, '', page.url);
  show(page.html, number, { mine: true });
}

function busy(button, form) {
  form.setAttribute('aria-busy', 'true');
  if (!button) return () => form.removeAttribute('aria-busy');
  const before = button.innerHTML;
  const said = button.dataset.busy ?? '';
  button.setAttribute('aria-busy', 'true');
  button.style.inlineSize = `${button.getBoundingClientRect().width}px`; // it keeps its width, whatever it says
  if (said) button.textContent = said;
  return done => {
    form.removeAttribute('aria-busy');
    button.removeAttribute('aria-busy');
    button.style.inlineSize = '';
    if (said && !done) button.innerHTML = before;
    if (said && done && button.textContent === said) button.innerHTML = before;
  };
}

async function submitted(event) {
  const { target: form, submitter } = event;
  const method = (submitter?.getAttribute('formmethod') ?? form.method).toLowerCase();
  if (event.defaultPrevented || method === 'dialog' || form.hasAttribute('data-plain')) return;
  const action = submitter?.hasAttribute('formaction') ? submitter.formAction : form.action;
  if (new URL(action).origin !== location.origin) return;
  event.preventDefault();
  if (sending.has(form)) return;
  sending.add(form);
  const fields = [...new FormData(form, submitter)].filter(([, value]) => typeof value === 'string');
  const dialog = form.closest('dialog');
  const rest = busy(submitter, form);
  if (method === 'get') {
    const url = new URL(action);
    url.search = String(new URLSearchParams(fields.filter(([, value]) => value !== '')));
    await (url.searchParams.has('ask') ? openAt(url) : url.pathname === location.pathname ? visit(url) : location.assign(url));
    rest(true);
  } else {
    const settle = done => {
      rest(done);
      if (!done) return;
      form.reset(); // what was typed is sent
      if (dialog?.open) dialog.close();
      const menu = form.closest('details.menu[open]'); // a sheet, too
      if (menu) menu.open = false;
    };
    await post(action, fields, { dialog, settle });
  }
  sending.delete(form);
}

export function start() {
  document.addEventListener('submit', submitted);
  document.addEventListener('click', event => {
    const link = event.target.closest?.('a[data-visit]');
    if (!link || event.button || event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    visit(link.href);
  });
  window.addEventListener('popstate', () => visit(location.href, { push: false }));
  window.addEventListener('beforeunload', event => { if (underWay()) event.preventDefault(); });
}
