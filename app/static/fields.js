// Form fields under a morph: what somebody is typing or has ticked is kept, the rest follows the server.

const untyped = new Set(['hidden', 'submit', 'button', 'reset', 'image', 'checkbox', 'radio', 'file']);

export function dirty(field) {
  if (field instanceof HTMLTextAreaElement) return field.value !== field.defaultValue;
  if (field instanceof HTMLSelectElement) return touched(field);
  if (!(field instanceof HTMLInputElement)) return false;
  if (field.type === 'checkbox' || field.type === 'radio') return field.checked !== field.defaultChecked;
  return !untyped.has(field.type) && field.value !== field.defaultValue;
}

function touched(select) {
  const options = [...select.options];
  const chosen = options.findIndex(option => option.defaultSelected);
  // Without a default the first option is shown and selected.
  return select.multiple ? options.some(option => option.selected !== option.defaultSelected) : select.selectedIndex !== Math.max(0, chosen);
}

/** Remember what a field holds; the answer puts it back, to be called once the field's markup is the server's. */
export function remembered(field) {
  if (!(field instanceof HTMLInputElement || field instanceof HTMLTextAreaElement || field instanceof HTMLSelectElement)) return () => {};
  const keep = dirty(field) || (field === document.activeElement && !untyped.has(field.type));
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
