// Menus and dialogs: one open at a time, upwards near the lower edge, closed by Escape and by a press elsewhere.

export function openDialog(id) {
  const dialog = document.getElementById(id);
  if (dialog instanceof HTMLDialogElement && !dialog.open) dialog.showModal();
  return dialog;
}

function closeMenus(but) {
  for (const menu of document.querySelectorAll('details.menu[open]')) if (!menu.contains(but)) menu.open = false;
}

export function start() {
  document.addEventListener('click', event => {
    closeMenus(event.target);
    const opener = event.target.closest?.('[data-dialog]');
    if (opener) {
      event.preventDefault();
      openDialog(opener.dataset.dialog);
      const menu = opener.closest('details.menu');
      if (menu) menu.open = false;
    }
    const closer = event.target.closest?.('[data-close]');
    if (closer) closer.closest('dialog')?.close();
    if (event.target.closest?.('[data-dismiss]')) event.target.closest('.note-bar').hidden = true;
    const strip = event.target.closest?.('.strip');
    if (strip) strip.setAttribute('aria-expanded', String(strip.closest('.aside').classList.toggle('open')));
  });
  document.addEventListener('keydown', event => {
    const menu = event.key === 'Escape' && event.target.closest?.('details.menu[open]');
    if (!menu) return;
    event.stopPropagation();
    menu.open = false;
    menu.querySelector('summary').focus();
  });
  document.addEventListener('toggle', event => {
    const menu = event.target;
    if (!menu.matches?.('details.menu')) return;
    const pop = menu.querySelector('.menu-pop');
    pop?.classList.remove('up');
    if (!menu.open || !pop) return;
    const room = document.querySelector('.bulk')?.getBoundingClientRect();
    const floor = room?.height && room.top > innerHeight / 2 ? room.top : innerHeight;
    if (pop.getBoundingClientRect().bottom > floor - 8) pop.classList.add('up');
  }, true);
}
