// Small things that all modules use.

const numbers = new Intl.NumberFormat("en");

export const count = (n) => numbers.format(Math.round(n));

export function counted(n, one, many = `${one}s`) {
  return `${count(n)} ${n === 1 ? one : many}`;
}

export const mode = () => document.body.dataset.mode;

export const find = (selector, inside = document) => inside.querySelector(selector);

export const findAll = (selector, inside = document) => [...inside.querySelectorAll(selector)];

// An element: texts are set as texts, whatever stands in them.
export function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

// What a person chose stays chosen in this browser, where it may be kept.
export function remembered(name, value) {
  try {
    if (value === undefined) return localStorage.getItem(`tagkin.${name}`);
    localStorage.setItem(`tagkin.${name}`, value);
  } catch {
    // a private window: it is asked again
  }
  return value ?? null;
}
