// Where we are, by path and query, and links that go elsewhere without a reload.

import type { ComponentChildren } from 'preact';
import { createStore, useStore } from './store.ts';

export interface Place {
  readonly path: string;
  readonly query: URLSearchParams;
}

const readPlace = (): Place => ({
  path: location.pathname,
  query: new URLSearchParams(location.search),
});
const place = createStore<Place>(readPlace());
addEventListener('popstate', () => place.set(readPlace()));

export const usePlace = (): Place => useStore(place);

export function go(to: string, how: 'push' | 'replace' = 'push'): void {
  if (how === 'push') history.pushState(null, '', to);
  else history.replaceState(null, '', to);
  place.set(readPlace());
}

export interface LinkProps {
  to: string;
  class?: string;
  children: ComponentChildren;
  isCurrent?: boolean;
  label?: string;
}

export function Link({ to, class: name, children, isCurrent = false, label }: LinkProps) {
  const onClick = (event: MouseEvent): void => {
    const isPlain = event.button === 0 && !(event.metaKey || event.ctrlKey || event.shiftKey || event.altKey);
    if (!isPlain) return;
    event.preventDefault();
    go(to);
  };
  return (
    <a
      href={to}
      class={name}
      onClick={onClick}
      aria-current={isCurrent ? 'page' : undefined}
      aria-label={label}
    >
      {children}
    </a>
  );
}

/** The parameter where the path matches, '' where the pattern has none, undefined where it does not match. */
export function match(pattern: string, path: string): string | undefined {
  const wanted = pattern.split('/');
  const given = path.split('/');
  if (wanted.length !== given.length) return undefined;
  let parameter = '';
  for (const [index, part] of wanted.entries()) {
    const value = given[index] ?? '';
    if (part.startsWith(':') && value !== '') parameter = decodeURIComponent(value);
    else if (part !== value) return undefined;
  }
  return parameter;
}
