// The frame around every page: the way around, what is wrong, and the page itself.

import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { operator, signOut } from '../lib/api.ts';
import { useLive, useLiveConnection } from '../lib/live.ts';
import { Link, usePlace } from '../lib/router.tsx';
import { useStore } from '../lib/store.ts';
import { shownOf } from '../lib/troubles.ts';
import { Alarms } from './alarms.tsx';
import { Icon, type IconName, Mark } from './icons.tsx';
import { SearchBox } from './search_box.tsx';
import { say, Toast } from './toast.tsx';
import { ZoneSwitch } from './zone_switch.tsx';

type MenuPlace = readonly [to: string, name: string, icon: IconName];

/** By what an operator is about; the name of a group is for readers of the screen, a line parts it for others. */
const GROUPS: readonly (readonly [group: string, places: readonly MenuPlace[]])[] = [
  [
    'Now and before',
    [
      ['/', 'Overview', 'overview'],
      ['/history', 'History', 'history'],
    ],
  ],
  [
    'What failed',
    [
      ['/issues', 'Issues', 'alarm'],
      ['/dead-letters', 'Dead letters', 'letters'],
    ],
  ],
  [
    'The sale',
    [
      ['/pools', 'Pools', 'pools'],
      ['/claims', 'Claims', 'claims'],
      ['/orders', 'Orders', 'orders'],
      ['/tickets', 'Tickets', 'tickets'],
      ['/payments', 'Payments', 'payments'],
      ['/refunds', 'Refunds', 'refunds'],
      ['/users', 'Users', 'users'],
    ],
  ],
  [
    'What others deliver',
    [
      ['/webhooks', 'Webhooks', 'webhooks'],
      ['/events', 'Events', 'events'],
      ['/calls', 'Calls', 'calls'],
      ['/sites', 'Call sites', 'sites'],
    ],
  ],
  [
    'Running it',
    [
      ['/operators', 'Operators', 'operators'],
      ['/audit', 'Audit log', 'audit'],
      ['/health', 'Health', 'health'],
    ],
  ],
];

/** Below /webhooks/ the providers deliver: the page of an endpoint is elsewhere, and belongs to it. */
const isAt = (path: string, to: string): boolean =>
  path === to ||
  (to !== '/' && path.startsWith(`${to}/`)) ||
  (to === '/webhooks' && path.startsWith('/endpoints/'));

function Lamp({ name, state }: { name: string; state: 'ok' | 'down' | 'unknown' }) {
  return (
    <span class={`lamp lamp-${state}`}>
      {name} <span class="sr-only">{state}</span>
    </span>
  );
}

const lampOf = (seen: { ok: boolean } | undefined): 'ok' | 'down' | 'unknown' =>
  seen === undefined ? 'unknown' : seen.ok ? 'ok' : 'down';

/** What waits for an operator on a page, by its path. */
type Waiting = Readonly<Record<string, number>>;

/** On the overview stands what cannot be used; it looks worse than what waits on other days, too. */
function Badge({ to, amount }: { to: string; amount: number }) {
  if (amount === 0) return null;
  return (
    <span class={to === '/' ? 'badge badge-trouble' : 'badge'}>
      {amount}
      <span class="sr-only">{to === '/' ? ' in trouble' : ' waiting'}</span>
    </span>
  );
}

/**
 * Scrolls the list until all of the item is in view. After scrollIntoView Chromium 150 lets Tab go on behind the item: the first key on a
 * page would pass the link that skips the menu.
 */
function showIn(list: Element, item: Element): void {
  const [frame, box] = [list.getBoundingClientRect(), item.getBoundingClientRect()];
  list.scrollTop += Math.min(0, box.top - frame.top) + Math.max(0, box.bottom - frame.bottom);
}

/** It scrolls by itself where the window is low, and shows the page of now; what stands below it stays in view. */
function Places({ path, waiting, isOpen }: { path: string; waiting: Waiting; isOpen: boolean }) {
  const list = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const current = list.current?.querySelector('[aria-current]');
    if (list.current && current) showIn(list.current, current);
  }, [path, isOpen]);
  return (
    <div class="places" ref={list}>
      {GROUPS.map(([group, places]) => (
        <ul key={group} aria-label={group}>
          {places.map(([to, name, icon]) => (
            <li key={to}>
              <Link to={to} isCurrent={isAt(path, to)}>
                <Icon name={icon} />
                {name}
                <Badge to={to} amount={waiting[to] ?? 0} />
              </Link>
            </li>
          ))}
        </ul>
      ))}
    </div>
  );
}

export function Shell({ children }: { children: ComponentChildren }) {
  useLiveConnection();
  const live = useLive();
  const who = useStore(operator);
  const { path } = usePlace();
  const [isMenuOpen, setMenuOpen] = useState(false);
  useEffect(() => setMenuOpen(false), [path]);
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (event.key === 'Escape') setMenuOpen(false);
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, []);
  const troubles = live.latest === undefined ? 0 : shownOf(live.latest).length;
  const waiting: Waiting = {
    '/': troubles,
    '/issues': live.latest?.issues?.open ?? 0,
    '/dead-letters':
      (live.latest?.dlq_depth ?? 0) +
      (live.latest?.webhooks.dead_letters ?? 0) +
      (live.latest?.inbox.dead_letters ?? 0),
    '/refunds': live.latest?.orders.refunds_waiting ?? 0,
  };
  const isWaiting = Object.values(waiting).some((amount) => amount > 0);
  const leave = (): void => {
    signOut().catch(() => say('Signing out did not work: the server does not answer.', 'bad'));
  };
  return (
    <div class="shell">
      <a class="skip" href="#main">
        Skip to content
      </a>
      <header class="side">
        <div class="brand">
          <Link to="/" label="Sluice, overview" class="brand-link">
            <Mark /> <span>Sluice</span>
          </Link>
          <button
            type="button"
            class="button button-quiet menu-button"
            aria-expanded={isMenuOpen}
            aria-controls="menu"
            onClick={() => setMenuOpen(!isMenuOpen)}
          >
            <Icon name={isMenuOpen ? 'close' : 'menu'} />
            <span class="sr-only">Menu</span>
            <Badge to="/" amount={troubles} />
            {isWaiting && troubles === 0 && <span class="badge badge-dot" />}
          </button>
        </div>
        <nav id="menu" class={isMenuOpen ? 'menu menu-open' : 'menu'} aria-label="Console">
          <Places path={path} waiting={waiting} isOpen={isMenuOpen} />
          <div class="side-foot">
            <p class="lamps">
              <Lamp name="DB1" state={lampOf(live.latest?.db1)} />
              {(live.latest?.cells ?? []).map((cell) => (
                <Lamp key={cell.name} name={cell.name} state={lampOf(cell)} />
              ))}
              <Lamp name="DB2" state={lampOf(live.latest?.db2)} />
              <span class={`lamp lamp-${live.connection === 'live' ? 'ok' : 'unknown'}`}>
                {live.connection === 'live' ? 'live' : live.connection === 'lost' ? 'lost' : 'connecting'}
              </span>
            </p>
            <p class="who">
              <span class="muted">
                {who?.name ?? 'operator'}
                {who && who.role !== who.name && <small>{who.role}</small>}
              </span>
              <button type="button" class="button button-quiet" onClick={leave}>
                Sign out
              </button>
            </p>
          </div>
        </nav>
      </header>
      <div class="stage">
        <section class="topbar" aria-label="Search and times">
          <SearchBox />
          <ZoneSwitch />
        </section>
        <main id="main" tabIndex={-1}>
          <Alarms live={live} isOverview={path === '/'} />
          {children}
        </main>
      </div>
      <Toast />
    </div>
  );
}
