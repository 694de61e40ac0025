// Form fields under a morph: what somebody is typing or has ticked is kept, the rest follows the server.

const untyped = new Set(['hidden', 'submit', 'button', 'reset', 'image', 'checkbox', 'radio', 'file']);

const touched = new WeakSet(); // fields that somebody has written in since they were sent

document.addEventListener('input', event => touched.add(event.target));
document.addEventListener('reset', event => { for (const field of event.target.elements) touched.delete(field); });

export function dirty(field) {
  if (field instanceof HTMLTextAreaElement) return field.value !== field.defaultValue;
  if (field instanceof HTMLSelectElement) return chosenAnew(field);
  if (!(field instanceof HTMLInputElement)) return false;
  if (field.type === 'checkbox' || field.type === 'radio') return field.checked !== field.defaultChecked;
  return !untyped.has(field.type) && field.value !== field.defaultValue;
}

function chosenAnew(select) {
  const options = [...select.options];
  const chosen = options.findIndex(option => option.defaultSelected);
  // Without a default the first option is shown and selected.
  return select.multiple ? options.some(option => option.selected !== option.defaultSelected) : select.selectedIndex !== Math.max(0, chosen);
}

/** Remember what a field holds; the answer puts it back, to be called once the field's markup is the server's. */
export function remembered(field) {
  if (!(field instanceof HTMLInputElement || field instanceof HTMLTextAreaElement || field instanceof HTMLSelectElement)) return () => {};
  // A refused form comes back with what was written as its default, and the next look at the page without.
  const keep = dirty(field) || touched.has(field) || (field === document.activeElement && !untyped.has(field.type));
  const { value, checked } = field;
  if (field instanceof HTMLSelectElement) {
    return () => { if (keep && [...field.options].some(option => option.value === value)) field.value = value; };
  }
  if (field.type === 'checkbox' || field.type === 'radio') return () => { field.checked = keep ? checked : field.defaultChecked; };
  if (field.type === 'file') return () => {};
  return () => {
    const wanted = keep ? value : field.defaultValue;
    if (field.value !== wanted) field.value = wanted; // writing it would move the caret
  };
}
