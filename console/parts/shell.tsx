// The frame around every page: the way around, what is wrong, and the page itself.

import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { operator, signOut } from '../lib/api.ts';
import { useLive, useLiveConnection } from '../lib/live.ts';
import { Link, usePlace } from '../lib/router.tsx';
import { useStore } from '../lib/store.ts';
import { Alarms } from './alarms.tsx';
import { Icon, type IconName, Mark } from './icons.tsx';
import { SearchBox } from './search_box.tsx';
import { say, Toast } from './toast.tsx';
import { ZoneSwitch } from './zone_switch.tsx';

const PLACES: readonly { to: string; name: string; icon: IconName }[] = [
  { to: '/', name: 'Overview', icon: 'overview' },
  { to: '/history', name: 'History', icon: 'history' },
  { to: '/pools', name: 'Pools', icon: 'pools' },
  { to: '/claims', name: 'Claims', icon: 'claims' },
  { to: '/orders', name: 'Orders', icon: 'orders' },
  { to: '/tickets', name: 'Tickets', icon: 'tickets' },
  { to: '/payments', name: 'Payments', icon: 'payments' },
  { to: '/refunds', name: 'Refunds', icon: 'refunds' },
  { to: '/users', name: 'Users', icon: 'users' },
  { to: '/issues', name: 'Issues', icon: 'alarm' },
  { to: '/dead-letters', name: 'Dead letters', icon: 'letters' },
  { to: '/webhooks', name: 'Webhooks', icon: 'webhooks' },
  { to: '/events', name: 'Events', icon: 'events' },
  { to: '/calls', name: 'Calls', icon: 'calls' },
  { to: '/sites', name: 'Call sites', icon: 'sites' },
  { to: '/operators', name: 'Operators', icon: 'operators' },
  { to: '/audit', name: 'Audit log', icon: 'audit' },
  { to: '/health', name: 'Health', icon: 'health' },
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

function Places({ path, waiting }: { path: string; waiting: Waiting }) {
  return (
    <ul class="places">
      {PLACES.map(({ to, name, icon }) => (
        <li key={to}>
          <Link to={to} isCurrent={isAt(path, to)}>
            <Icon name={icon} />
            {name}
            {(waiting[to] ?? 0) > 0 && (
              <span class="badge">
                {waiting[to]}
                <span class="sr-only"> waiting</span>
              </span>
            )}
          </Link>
        </li>
      ))}
    </ul>
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
  const waiting: Waiting = {
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
            {isWaiting && <span class="badge badge-dot" />}
          </button>
        </div>
        <nav id="menu" class={isMenuOpen ? 'menu menu-open' : 'menu'} aria-label="Console">
          <Places path={path} waiting={waiting} />
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
