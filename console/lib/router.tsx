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

/** What is loaded has to be there before a page can be scrolled to where it was. */
const COME_BACK_MS = 3_000;
let isComingBack = false;

/** Whether the way here was "back" or "forward": such a page is shown where it was left. */
export const isBack = (): boolean => isComingBack;

function comeBack(y: number): void {
  isComingBack = true;
  const until = performance.now() + COME_BACK_MS;
  const step = (): void => {
    const isLongEnough = document.documentElement.scrollHeight - innerHeight >= y;
    if (isLongEnough || performance.now() > until) {
      scrollTo(0, y);
      isComingBack = false;
    } else if (isComingBack) requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
}

const yOf = (state: unknown): number => (state as { y?: number } | null)?.y ?? 0;
/** Where this page is left, for the way back to it. */
const leave = (): void => history.replaceState({ y: scrollY }, '');

history.scrollRestoration = 'manual';
addEventListener('pagehide', leave);
addEventListener('popstate', ({ state }) => {
  comeBack(yOf(state));
  place.set(readPlace());
});
if (yOf(history.state) > 0) comeBack(yOf(history.state));

export const usePlace = (): Place => useStore(place);

export function go(to: string, how: 'push' | 'replace' = 'push'): void {
  isComingBack = false;
  if (how === 'push') {
    leave();
    history.pushState(null, '', to);
  } else history.replaceState(null, '', to);
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
