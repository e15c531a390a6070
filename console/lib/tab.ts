// What the browser's tab is called.

import { useLayoutEffect } from 'preact/hooks';

export function nameTab(name: string): void {
  document.title = `${name} · Sluice`;
}

/** On a page that loads a better name than its address has; undefined until then. */
export function useTabName(name: string | undefined): void {
  useLayoutEffect(() => {
    if (name !== undefined) nameTab(name);
  }, [name]);
}
