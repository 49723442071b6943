import { useEffect } from 'react';

/** Focused element of each dialog and of the page, with what contains it. The latest is the last. */
const focused = new Map<Element, Element[]>();

document.addEventListener('focusin', ({ target }) => {
  const path: Element[] = [];
  for (let element = target as Element | null; element !== null; element = element.parentElement) path.push(element);
  const place = path.find((element) => element.role === 'dialog') ?? document.body;
  focused.delete(place);
  focused.set(place, path);
});

/**
 * Part of a dialog. Mantine focuses the element that opened a dialog. If that is gone with a deleted row or an earlier
 * dialog, this focuses what contained it (WCAG 2.4.3).
 */
export function ReturnFocus(): null {
  useEffect(() => returnFocus, []);
  return null;
}

function returnFocus(): void {
  for (const place of focused.keys()) if (!place.isConnected) focused.delete(place);
  const candidates = [...focused.values()].toReversed().flat();
  // Elements that are gone or cannot have the focus ignore the call.
  for (const element of candidates) {
    if (document.activeElement !== document.body) return;
    if (element instanceof HTMLElement) element.focus({ preventScroll: true });
  }
}
