// The one polite live region.

let timer = 0;

export function say(sentence) {
  const box = document.getElementById('say');
  if (!box || !sentence) return;
  clearTimeout(timer);
  box.textContent = '';
  // A reader announces a change only, so the same sentence twice needs something between.
  timer = setTimeout(() => { box.textContent = sentence; }, 40);
}
