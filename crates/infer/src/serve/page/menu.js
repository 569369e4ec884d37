// A popup menu: one on the page, at the word that it belongs to.

const menu = document.getElementById('menu');
let anchor = null;
let onClose = null;

/**
 * Opens the menu at an element, or gives it other items. An item has `label`, and maybe `detail`, `share` (drawn as a
 * bar), `checked` and `run`; without `run` it is a message. The focus goes to the first item that can be chosen.
 */
export function openMenu(element, label, items, { lang = '', closed = null } = {}) {
  anchor = element;
  onClose = closed;
  anchor.setAttribute('aria-expanded', 'true');
  menu.setAttribute('aria-label', label);
  menu.replaceChildren(...items.map((item) => build(item, lang)));
  menu.hidden = false;
  place();
  (entries()[0] ?? menu).focus({ preventScroll: true });
}

export function closeMenu({ refocus = true } = {}) {
  if (menu.hidden) return;
  menu.hidden = true;
  const was = anchor;
  anchor = null;
  was.setAttribute('aria-expanded', 'false');
  if (refocus && was.isConnected) was.focus({ preventScroll: true });
  onClose?.();
}

function build({ label, detail, share, checked, run, plain }, lang) {
  const item = document.createElement('div');
  item.className = 'item';
  if (plain) item.classList.add('plain');
  item.setAttribute('role', checked === undefined ? 'menuitem' : 'menuitemradio');
  if (checked !== undefined) item.setAttribute('aria-checked', String(checked));
  const text = document.createElement('span');
  text.className = 'label';
  text.dir = 'auto';
  if (!plain && run) text.lang = lang;
  text.textContent = label;
  item.append(text);
  if (detail) {
    const side = document.createElement('span');
    side.className = 'detail';
    side.textContent = detail;
    item.append(side);
  }
  if (share !== undefined) {
    item.classList.add('share');
    item.style.setProperty('--share', share.toFixed(3));
  }
  if (!run) {
    item.setAttribute('aria-disabled', 'true');
    return item;
  }
  item.tabIndex = -1;
  item.addEventListener('click', run);
  return item;
}

function entries() {
  return [...menu.querySelectorAll('.item:not([aria-disabled])')];
}

/** Below the word if there is space, otherwise above. On a phone it lies at the bottom: see page.css. */
function place() {
  menu.style.left = menu.style.top = '0px';
  const word = anchor.getBoundingClientRect();
  const { width, height } = menu.getBoundingClientRect();
  const below = word.bottom + 6;
  const top = below + height < innerHeight ? below : Math.max(8, word.top - height - 6);
  menu.style.left = `${Math.max(8, Math.min(word.left, innerWidth - width - 8))}px`;
  menu.style.top = `${top}px`;
}

menu.tabIndex = -1;
menu.addEventListener('keydown', (event) => {
  const all = entries();
  const now = all.indexOf(document.activeElement);
  const steps = {
    ArrowDown: (now + 1) % all.length,
    ArrowUp: (now - 1 + all.length) % all.length,
    Home: 0,
    End: all.length - 1,
  };
  if (event.key in steps) {
    all[steps[event.key]]?.focus();
  } else if (event.key === 'Enter' || event.key === ' ') {
    all[now]?.click();
  } else if (event.key === 'Escape') {
    closeMenu();
  } else if (event.key === 'Tab') {
    closeMenu(); // and on to what follows the word
    return;
  } else {
    return;
  }
  event.preventDefault();
});
document.addEventListener('pointerdown', (event) => {
  if (!menu.contains(event.target) && event.target !== anchor) closeMenu({ refocus: false });
});
for (const event of ['resize', 'scroll']) {
  addEventListener(event, () => closeMenu({ refocus: false }), { passive: true });
}
