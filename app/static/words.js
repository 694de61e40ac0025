// What the page tells the script: sentences in the reader's language, {name} for what varies, and whom the page concerns.

/** The data attributes of the page's own element for the script. */
export const page = () => document.getElementById('words')?.dataset ?? {};
export const language = () => document.documentElement.lang || 'en';

/** A sentence; where `n` is given, its form for one or for many. */
export function word(name, values = {}) {
  const said = page();
  const form = 'n' in values ? (new Intl.PluralRules(language()).select(values.n) === 'one' ? 'One' : 'Many') : '';
  const sentence = said[name + form] ?? said[name] ?? '';
  return sentence.replace(/\{(\w+)\}/g, (whole, key) => (key in values ? String(values[key]) : whole));
}

export function clock(date, seconds = false) {
  const how = { hour: '2-digit', minute: '2-digit', ...(seconds && { second: '2-digit' }), hourCycle: 'h23' };
  return new Intl.DateTimeFormat(language(), how).format(date);
}
