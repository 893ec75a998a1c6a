/**
 * Makes an element. What is given as a child is text, never markup: messages come from anybody.
 * @param {string} tag
 * @param {Record<string, string | boolean | ((event: Event) => void) | undefined>} attributes functions listen to the event of that name
 * @param {...(Node | string | number)} children
 */
export function element(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** The same, for SVG. */
export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes, children);
}

/** @param {string} id of an element that the page has */
export function byId(id) {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`the page has no #${id}`);
  return found;
}

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') node.addEventListener(name, value);
    else if (value === true) node.setAttribute(name, '');
    else if (value !== undefined && value !== false) node.setAttribute(name, value);
  }
  node.append(...children.map((child) => (typeof child === 'number' ? String(child) : child)));
  return node;
}
