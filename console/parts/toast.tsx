// A word about what was just done, also for those who do not see the page.

import { createStore, useStore } from '../lib/store.ts';
import { Icon } from './icons.tsx';

const SHOWN_MS = 6_000;
const toast = createStore('');
let timer: number | undefined;

export function say(text: string): void {
  toast.set(text);
  clearTimeout(timer);
  timer = window.setTimeout(() => toast.set(''), SHOWN_MS);
}

export function Toast() {
  const text = useStore(toast);
  return (
    <div class="toast-place" role="status" aria-live="polite">
      {text && (
        <p class="toast">
          <Icon name="check" /> {text}
        </p>
      )}
    </div>
  );
}
