// The small things that every page uses.

import type { ComponentChildren } from 'preact';
import { fullMoment, moment, UNKNOWN, words, zoneOf } from '../lib/format.ts';
import { poolPlace, userPlace } from '../lib/links.ts';
import { Link } from '../lib/router.tsx';
import { useStore } from '../lib/store.ts';
import { zone } from '../lib/zone.ts';
import { Icon } from './icons.tsx';

type Tone = 'good' | 'busy' | 'warn' | 'bad' | 'calm';

/** How each state of the product looks, on every page. */
const TONES: Readonly<Record<string, Tone>> = {
  ok: 'good',
  open: 'good',
  committed: 'good',
  success: 'good',
  active: 'good',
  paid: 'good',
  done: 'good',
  valid: 'good',
  succeeded: 'good',
  dispute_won: 'good',
  held: 'busy',
  paying: 'busy',
  due: 'busy',
  sent: 'busy',
  queued: 'busy',
  validated: 'busy',
  pending: 'busy',
  processing: 'busy',
  not_open: 'busy',
  warn: 'warn',
  failed: 'warn',
  sold_out: 'warn',
  expired: 'warn',
  unsigned: 'warn',
  review: 'warn',
  refund_due: 'warn',
  voided: 'warn',
  void: 'warn',
  partially_refunded: 'warn',
  refunded: 'warn',
  disputed: 'warn',
  dispute_lost: 'bad',
  down: 'bad',
  dead_letter: 'bad',
  refused: 'bad',
  no_secret: 'bad',
};

export function Chip({ state, tone = TONES[state] ?? 'calm' }: { state: string; tone?: Tone }) {
  return <span class={`chip chip-${tone}`}>{words(state)}</span>;
}

/** A time with its zone. */
export function Moment({ at }: { at: string | null | undefined }) {
  useStore(zone);
  if (!at) return <span class="muted">{UNKNOWN}</span>;
  return (
    <time dateTime={at} title={fullMoment(at)}>
      {moment(at)} <small class="zone">{zoneOf(new Date(at))}</small>
    </time>
  );
}

interface IdProps {
  value: string | null | undefined;
  /** As wide as its beginning, which a search finds. What is copied is all of it. */
  isShort?: boolean;
  /** Where it leads. */
  to?: string | undefined;
}

export function Id({ value, isShort = false, to }: IdProps) {
  if (!value) return <span class="muted">{UNKNOWN}</span>;
  const id = (
    <code class={isShort ? 'id id-short' : 'id'} title={value}>
      {value}
    </code>
  );
  return to === undefined ? id : <Link to={to}>{id}</Link>;
}

/** What proves something and names nothing: a signature, a hash. */
export function Digest({ value }: { value: string }) {
  return <code class="digest">{value}</code>;
}

/** A user, with the way to all that is known about one. */
export function User({ id }: { id: string | null | undefined }) {
  if (!id) return <span class="muted">{UNKNOWN}</span>;
  return (
    <Link to={userPlace(id)}>
      <Given value={id} />
    </Link>
  );
}

/** A name from outside, of any length: a table shows its beginning, and all of it on demand. */
export function Given({ value }: { value: string | null | undefined }) {
  if (!value) return <span class="muted">{UNKNOWN}</span>;
  return (
    <span class="given" title={value}>
      {value}
    </span>
  );
}

export function PageHead({
  title,
  state,
  about,
  children,
}: {
  title: string;
  state?: string | undefined;
  about?: ComponentChildren;
  children?: ComponentChildren;
}) {
  return (
    <header class="page-head">
      <div>
        <div class="page-title">
          <h1>{title}</h1>
          {state && <Chip state={state} />}
        </div>
        {about && <p class="about">{about}</p>}
      </div>
      {children && <div class="page-actions">{children}</div>}
    </header>
  );
}

export function NewButton({ onClick, children }: { onClick(): void; children: ComponentChildren }) {
  return (
    <button type="button" class="button button-main" onClick={onClick}>
      <Icon name="plus" /> {children}
    </button>
  );
}

export function Card({
  title,
  children,
  class: name = '',
}: {
  title?: string;
  children: ComponentChildren;
  class?: string;
}) {
  return (
    <section class={`card ${name}`}>
      {title && <h2>{title}</h2>}
      {children}
    </section>
  );
}

type Fact = readonly [string, ComponentChildren];

/** The first facts of a claim, a ticket and an order. */
export function holderFacts(held: { user_id: string; verified: boolean; pool_id: string }): Fact[] {
  return [
    ['User', <User key="user" id={held.user_id} />],
    ['Vouched for by a token', held.verified ? 'yes' : 'no'],
    [
      'Pool',
      <Link key="pool" to={poolPlace(held.pool_id)}>
        {held.pool_id}
      </Link>,
    ],
  ];
}

/** Names and values, as pairs; what has no value is left out. */
export function Facts({ facts }: { facts: readonly Fact[] }) {
  return (
    <dl class="facts">
      {facts
        .filter(([, value]) => value !== null && value !== undefined && value !== '' && value !== false)
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}

/** Text as it is, in a box that can be scrolled by keyboard. */
export function Code({ text, label }: { text: string; label: string }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reachable without a mouse.
    <section class="code" tabIndex={0} aria-label={label}>
      <pre>{text}</pre>
    </section>
  );
}

export const asJson = (value: unknown): string => JSON.stringify(value, null, 2) ?? UNKNOWN;
