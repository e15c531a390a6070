// A word about what was just done, also for those who do not see the page.

import { createStore, useStore } from '../lib/store.ts';
import { Icon } from './icons.tsx';

const SHOWN_MS = 6_000;
type Tone = 'good' | 'bad';

const toast = createStore<{ text: string; tone: Tone } | undefined>(undefined);
let timer: number | undefined;

export function say(text: string, tone: Tone = 'good'): void {
  toast.set({ text, tone });
  clearTimeout(timer);
  timer = window.setTimeout(() => toast.set(undefined), SHOWN_MS);
}

export function Toast() {
  const said = useStore(toast);
  return (
    <div class="toast-place" role="status" aria-live="polite">
      {said && (
        <p class={`toast toast-${said.tone}`}>
          <Icon name={said.tone === 'good' ? 'check' : 'alarm'} /> {said.text}
        </p>
      )}
    </div>
  );
}
