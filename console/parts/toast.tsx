// A word about what was just done, also for those who do not see the page.

import { Link } from '../lib/router.tsx';
import { createStore, useStore } from '../lib/store.ts';
import { Icon } from './icons.tsx';

const SHOWN_MS = 6_000;
/** Long enough to go there. */
const SHOWN_WITH_LINK_MS = 12_000;
type Tone = 'good' | 'bad';

const toast = createStore<{ text: string; tone: Tone; audit: string | undefined } | undefined>(undefined);
let timer: number | undefined;

/** `audit`: where what was done is written down. */
export function say(text: string, tone: Tone = 'good', audit?: string): void {
  toast.set({ text, tone, audit });
  clearTimeout(timer);
  timer = window.setTimeout(() => toast.set(undefined), audit === undefined ? SHOWN_MS : SHOWN_WITH_LINK_MS);
}

export function Toast() {
  const said = useStore(toast);
  return (
    <div class="toast-place" role="status" aria-live="polite">
      {said && (
        <p class={`toast toast-${said.tone}`}>
          <Icon name={said.tone === 'good' ? 'check' : 'alarm'} /> <span>{said.text}</span>
          {said.audit !== undefined && <Link to={said.audit}>Audit row</Link>}
        </p>
      )}
    </div>
  );
}
