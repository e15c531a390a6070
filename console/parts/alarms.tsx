// What an operator has to know on whatever page they are: what is down, what waits for them, and whether this is still live.

import { count, duration, plural } from '../lib/format.ts';
import type { Live } from '../lib/live.ts';
import { Link } from '../lib/router.tsx';
import type { LiveSample } from '../lib/shapes.ts';
import { Alarm } from './states.tsx';
import { Troubles, troublesSaid } from './troubles.tsx';

/** How long a database has not answered the server. */
function downFor({ at }: LiveSample, { away_since = at }: LiveSample['db1']): number {
  return Math.max(1, (Date.parse(at) - Date.parse(away_since)) / 1_000);
}

function Letters({ amount, of, to }: { amount: number; of: string; to: string }) {
  if (amount === 0) return null;
  const them = amount === 1 ? 'it' : 'them';
  return (
    <Alarm tone="warn">
      <strong>{plural(amount, 'dead letter')}</strong> of {of}. Workers do not try {them} again: replay {them}{' '}
      when the cause is mended. <Link to={to}>Look at them</Link>
    </Alarm>
  );
}

/** Dead letters, hooks and secrets are shown on the overview; elsewhere the menu has their number. A reader who hears the page is told everywhere. */
export function Alarms({ live, isOverview }: { live: Live; isOverview: boolean }) {
  const { latest, connection } = live;
  const letters = latest?.dlq_depth ?? 0;
  const events = latest?.webhooks.dead_letters ?? 0;
  const waiting = latest?.inbox.waiting ?? 0;
  const refused = latest?.inbox.dead_letters ?? 0;
  const orders = latest?.orders;
  const pastBound = orders?.past_bound ?? 0;
  const away = (latest?.cells ?? []).filter(({ ok }) => !ok).map(({ name }) => name);
  // Said once each, while the text below counts the seconds.
  const said = [
    connection === 'lost' && 'The live connection is lost.',
    latest?.db1.ok === false && 'The intake does not answer.',
    latest?.db2.ok === false && 'The ledger does not answer.',
    away.length > 0 && `Cell ${away.join(', ')} does not answer.`,
    ...troublesSaid(latest),
    letters + events > 0 && 'There are dead letters.',
    waiting > 0 && 'Deliveries wait in the inbox.',
    refused > 0 && 'The ledger refused deliveries of the inbox.',
    orders?.is_braked && 'Refunds are held back.',
    pastBound > 0 && 'Orders hold seats for longer than they may.',
  ];
  return (
    <div class="alarms">
      <p class="sr-only" role="status">
        {said.filter(Boolean).join(' ')}
      </p>
      {connection === 'lost' && (
        <Alarm tone="warn">
          <strong>The live connection is lost.</strong> The numbers are old; this page is trying to reconnect.
        </Alarm>
      )}
      {latest && !latest.db1.ok && (
        <Alarm tone="bad">
          <strong>The intake (DB1) does not answer</strong> for {duration(downFor(latest, latest.db1))}. The
          server answers claims 503 until it is back; buyers keep their request id and may try again.
        </Alarm>
      )}
      {away.length > 0 && (
        <Alarm tone="bad">
          <strong>Cell {away.join(', ')} does not answer.</strong> The server answers its pools 503 until it
          is back, and lists lack its rows. Pools of the other cells go on selling.
        </Alarm>
      )}
      {latest && !latest.db2.ok && (
        <Alarm tone="bad">
          <strong>The ledger (DB2) does not answer</strong> for {duration(downFor(latest, latest.db2))}. The
          server still takes claims, which wait in the queue
          {latest.queue_depth ? `: ${count(latest.queue_depth)} so far` : ''}. Nothing is lost; it drains by
          itself when the ledger is back.
        </Alarm>
      )}
      {waiting > 0 && (
        <Alarm tone="warn">
          <strong>{plural(waiting, 'delivery', 'deliveries')}</strong> of providers wait in the inbox for the
          ledger, the oldest for {duration(latest?.inbox.oldest_sec ?? 0)}. Workers record them when it is
          back.
        </Alarm>
      )}
      {refused > 0 && (
        <Alarm tone="warn">
          The ledger refused <strong>{plural(refused, 'delivery', 'deliveries')}</strong> of the inbox.{' '}
          <Link to="/dead-letters?kind=inbox">Look at them</Link>
        </Alarm>
      )}
      {orders?.is_braked && (
        <Alarm tone="bad">
          <strong>Refunds are held back:</strong> Sluice owes more at once than looks right.{' '}
          <Link to="/refunds?state=review">Look at them</Link>
        </Alarm>
      )}
      {pastBound > 0 && (
        <Alarm tone="bad">
          <strong>{plural(pastBound, 'order')}</strong> hold seats for longer than they may. Is a worker
          running, and do payments take effect? Look at those that are{' '}
          <Link to="/orders?status=held">held</Link> and <Link to="/orders?status=paying">paying</Link>
        </Alarm>
      )}
      {isOverview && <Troubles latest={latest} />}
      {isOverview && <Letters amount={letters} of="claims" to="/dead-letters" />}
      {isOverview && <Letters amount={events} of="webhooks" to="/dead-letters?kind=webhooks" />}
    </div>
  );
}
