// Fields for JSON: while somebody types, whether it is JSON, and which of the original's members differ.

import { word } from './words.js';

function verdict(text) {
  try {
    return { value: JSON.parse(text) };
  } catch (error) {
    const line = /line (\d+)/.exec(error.message)?.[1] ?? text.slice(0, Number(/position (\d+)/.exec(error.message)?.[1] ?? 0)).split('\n').length;
    return { sentence: word('json', { line }) };
  }
}

function changed(value, original) {
  const before = verdict(original).value;
  const members = each => (each && typeof each === 'object' ? each : {});
  const names = new Set([...Object.keys(members(before)), ...Object.keys(members(value))]);
  return [...names].filter(name => JSON.stringify(members(before)[name]) !== JSON.stringify(members(value)[name]));
}

function line(field) {
  let told = field.parentElement.querySelector('.json-told');
  if (!told) {
    told = document.createElement('span');
    told.className = 'json-told hint';
    told.setAttribute('data-own', '');
    told.setAttribute('role', 'status');
    field.after(told);
  }
  return told;
}

function typed(event) {
  const field = event.target;
  if (!field.matches?.('textarea[data-json]')) return;
  const { value, sentence } = verdict(field.value);
  field.setCustomValidity(sentence ?? '');
  const names = sentence || field.dataset.original === undefined ? [] : changed(value, field.dataset.original);
  const told = line(field);
  told.textContent = sentence ?? (names.length ? word('changed', { names: names.join(', ') }) : '');
  told.classList.toggle('error-text', Boolean(sentence));
}

export function start() {
  document.addEventListener('input', typed);
}
