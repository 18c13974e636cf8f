// Helpers for all modules.

const numbers = new Intl.NumberFormat("en");

export const count = (n) => numbers.format(Math.round(n));

export function counted(n, one, many = `${one}s`) {
  return `${count(n)} ${n === 1 ? one : many}`;
}

export const mode = () => document.body.dataset.mode;

export const find = (selector, inside = document) => inside.querySelector(selector);

export const findAll = (selector, inside = document) => [...inside.querySelectorAll(selector)];

// Make an element; texts are never parsed as HTML.
export function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

// Focus an element of a list. The Tab key enters the list there, and leaves it with the next press.
export function rove(all, to, options) {
  for (const one of all) one.tabIndex = one === to ? 0 : -1;
  to?.focus(options);
}

// The element of a list so many steps after the one that has the focus; the first if none has it.
export function stepIn(all, by) {
  const at = all.findIndex((one) => one.contains(document.activeElement));
  return all[at < 0 ? 0 : Math.max(0, Math.min(all.length - 1, at + by))];
}

// Get or set a preference in this browser.
export function remembered(name, value) {
  try {
    if (value === undefined) return localStorage.getItem(`tagkin.${name}`);
    localStorage.setItem(`tagkin.${name}`, value);
  } catch {
    // a private window may not store it
  }
  return value ?? null;
}
