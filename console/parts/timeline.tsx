// What happened, in order.

import type { ComponentChildren } from 'preact';
import { words } from '../lib/format.ts';
import { linkOf, searchPlace } from '../lib/links.ts';
import { Link } from '../lib/router.tsx';
import { Facts, Id, Moment } from './small.tsx';

export interface Step {
  at: string | null;
  what: string;
  tone?: 'good' | 'bad' | 'wait';
  detail?: Readonly<Record<string, unknown>>;
  note?: ComponentChildren;
}

const ID = /_id$|_key$|^(subject|event|refund|replayed_from)$/;
const TIME = /_at$|_until$/;

export function Timeline({ steps }: { steps: readonly Step[] }) {
  return (
    <ol class="timeline">
      {steps.map((step, index) => (
        <li key={`${step.what}${index}`} class={`step step-${step.tone ?? 'plain'}`}>
          <div class="step-head">
            <strong>{words(step.what)}</strong>
            {step.at ? <Moment at={step.at} /> : <span class="muted">time not recorded</span>}
          </div>
          {step.note && <p class="step-note">{step.note}</p>}
          {step.detail && (
            <Facts
              facts={Object.entries(step.detail).map(([name, value]) => [words(name), show(name, value)])}
            />
          )}
        </li>
      ))}
    </ol>
  );
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** One of several, such as the seats of an order: by its label, or by its claim where it has none. */
function element(text: string): ComponentChildren {
  return UUID.test(text) ? <Id key={text} value={text} to={searchPlace(text)} /> : text;
}

function show(name: string, value: unknown): ComponentChildren {
  if (value === null || value === undefined) return undefined;
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (Array.isArray(value) && value.length === 0) return undefined;
  if (Array.isArray(value)) return value.map((one, index) => [index > 0 && ', ', element(String(one))]);
  if (typeof value === 'object') return <code class="digest">{JSON.stringify(value)}</code>;
  if (TIME.test(name)) return <Moment at={String(value)} />;
  const to = linkOf(name, String(value));
  if (ID.test(name)) return <Id value={String(value)} to={to} />;
  return to === undefined ? String(value) : <Link to={to}>{String(value)}</Link>;
}
