import { cautious, EVENT_ACTS } from '../lib/acts.ts';
import { get, pathWith } from '../lib/api.ts';
import { plural } from '../lib/format.ts';
import { orderPlace, paymentPlace } from '../lib/links.ts';
import { useIsFailing } from '../lib/live.ts';
import { useLoad } from '../lib/load.ts';
import { Link } from '../lib/router.tsx';
import type { EventDetails, EventLinks } from '../lib/shapes.ts';
import { useTabName } from '../lib/tab.ts';
import { ActButtons } from '../parts/bench.tsx';
import { asJson, Card, Chip, Code, Digest, Facts, Id, Moment, PageHead, User } from '../parts/small.tsx';
import { Await } from '../parts/states.tsx';
import { type Step, Timeline } from '../parts/timeline.tsx';

const ENDS: Readonly<Record<string, Step['tone']>> = { success: 'good', skipped: 'good', dead_letter: 'bad' };

/** As webhook.can_go_round has it; what was quarantined or pruned has nothing to process. */
function canReplay({ status, skipped_by, attempts, error, event_type, payload }: EventDetails): boolean {
  if (payload === null) return false;
  if (status === 'failed' || status === 'dead_letter') return true;
  if (status !== 'skipped') return false;
  return skipped_by !== null || attempts === 0 || error === `no handler for ${event_type}`;
}

const WAITS = 'A service is down, or it needs another event first. These tries do not count as attempts.';

function stepsOf(event: EventDetails): Step[] {
  const { status, attempts, takeovers, error, max_attempts } = event;
  const hasFailed = status === 'failed' || status === 'dead_letter';
  const isLast = attempts + 1 >= max_attempts;
  // What an operator gave as the reason for skipping it, or why it was quarantined, is not what a try ended with.
  const isOfTheEnd = event.skipped_by !== null || event.last_attempt_at === null;
  const steps: (Step | false)[] = [
    event.occurred_at !== null && { at: event.occurred_at, what: 'happened at the provider' },
    {
      at: event.received_at,
      what: event.backfilled
        ? 'backfilled: the provider was asked for it'
        : 'received, verified and recorded',
      detail: { event_id: event.event_id },
    },
    ...event.alarms.map(
      (alarm): Step => ({
        at: alarm.at,
        what: 'came again with another body',
        tone: 'bad',
        note: 'The first one counts.',
      }),
    ),
    event.last_attempt_at !== null && {
      at: event.last_attempt_at,
      what: `tried ${plural(attempts, 'time')}${hasFailed ? ` of ${max_attempts}` : ''}`,
      ...(error !== null && !isOfTheEnd && { tone: 'bad', note: error }),
      ...(takeovers > 0 && { detail: { 'taken over from a worker that was lost': takeovers } }),
    },
    status === 'failed' && {
      at: event.next_attempt_at,
      what: 'next attempt',
      tone: 'wait',
      note: [event.waiting_since !== null && WAITS, isLast && 'The next failure makes it a dead letter.']
        .filter(Boolean)
        .join(' '),
    },
    status === 'pending' && { at: event.next_attempt_at, what: 'waits for a worker', tone: 'wait' },
    status in ENDS && {
      at: event.processed_at ?? event.last_attempt_at,
      what: event.skipped_by ? `skipped by ${event.skipped_by}` : status,
      tone: ENDS[status] ?? 'wait',
      ...(error !== null && isOfTheEnd && { note: error }),
    },
  ];
  return steps.filter((step) => step !== false);
}

/** The bytes as text, or as hex where they are none. */
function textOf(base64: string): string {
  const bytes = Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join(' ');
  }
}

function Bodies({ event }: { event: EventDetails }) {
  return (
    <>
      <h3>Payload</h3>
      {event.payload === null ? (
        <p class="muted">
          {event.raw_body === null
            ? 'Pruned.'
            : 'None: the event was quarantined when it came, and only its bytes are kept.'}
        </p>
      ) : (
        <Code text={asJson(event.payload)} label="Payload" />
      )}
      <h3>Raw body</h3>
      {event.raw_body === null ? (
        <p class="muted">Pruned.</p>
      ) : (
        <Code text={textOf(event.raw_body)} label="Raw body" />
      )}
      {event.alarms.map(
        (alarm) =>
          alarm.body && (
            <div key={alarm.at}>
              <h3>The other body</h3>
              <Code text={textOf(alarm.body)} label="The other body" />
            </div>
          ),
      )}
    </>
  );
}

type EventView = EventDetails & { links: EventLinks };

const timeOf = ({ at }: Step): number => (at === null ? Number.MAX_SAFE_INTEGER : Date.parse(at));

/** What happened by itself and what operators did, in the order it happened. Stable: what has no time comes last. */
function storyOf(event: EventView): Step[] {
  const acts = event.links.audit.map(({ at, action, actor, reason, subject }) => ({
    at,
    what: action,
    detail: { actor, reason, subject },
  }));
  return [...stepsOf(event), ...acts].sort((a, b) => timeOf(a) - timeOf(b));
}

/** What it brought about. */
function Brought({ links }: EventView) {
  if (links.payments.length === 0) return null;
  return (
    <>
      <h3>What it told about</h3>
      {links.payments.map(({ payment_key, order_id, user_id, state }) => (
        <Facts
          key={payment_key}
          facts={[
            ['Payment', <Id key="payment" value={payment_key} to={paymentPlace(payment_key)} />],
            ['State now', <Chip key="state" state={state} />],
            ['Order', order_id && <Id key="order" value={order_id} to={orderPlace(order_id)} />],
            ['User', user_id && <User key="user" id={user_id} />],
          ]}
        />
      ))}
      {links.credits > 0 && (
        <p class="muted">It wrote {plural(links.credits, 'row')} of the credit ledger.</p>
      )}
    </>
  );
}

export function Event({ parameter }: { parameter: string }) {
  const loaded = useLoad(`event ${parameter}`, () => get<EventView>(`/admin/webhooks/events/${parameter}`));
  const { value } = loaded;
  useTabName(value && `${value.event_type} ${value.event_id}`);
  const isFailing = useIsFailing(value?.handler);
  const acts = EVENT_ACTS.filter(
    ({ verb }) =>
      value !== undefined &&
      (verb === 'Replay' ? canReplay(value) : value.status !== 'success' && value.status !== 'skipped'),
  );
  return (
    <>
      <PageHead title={value?.event_type ?? 'Event'} state={value?.status}>
        <button type="button" class="button" onClick={loaded.reload}>
          Refresh
        </button>
        <ActButtons
          acts={isFailing && value?.handler ? cautious(acts, value.handler) : acts}
          id={parameter}
          onDone={loaded.reload}
        />
      </PageHead>
      <Await loaded={loaded}>
        {(event) => (
          <div class="columns">
            <Card title="Timeline">
              <Timeline steps={storyOf(event)} />
              <Bodies event={event} />
            </Card>
            <Card title="The event">
              <Facts
                facts={[
                  ['Event id', <Id key="event" value={event.event_id} />],
                  [
                    'Endpoint',
                    <Link key="endpoint" to={pathWith('/events', { webhook_id: event.webhook_id })}>
                      {event.name ?? event.provider}
                    </Link>,
                  ],
                  ['Tenant', event.provider],
                  ['Handler', event.handler ?? 'no handler has it'],
                  ['Attempts', `${event.attempts} of ${event.max_attempts}`],
                  ['Signature', event.signature && <Digest key="signature" value={event.signature} />],
                  ['Payload hash', event.payload_hash && <Digest key="hash" value={event.payload_hash} />],
                  [
                    'Idempotency key',
                    event.idempotency_key && <Digest key="key" value={event.idempotency_key} />,
                  ],
                  ['Our id', <Id key="id" value={event.id} />],
                  ['Leased until', event.lease_until && <Moment key="lease" at={event.lease_until} />],
                ]}
              />
              <Brought {...event} />
            </Card>
          </div>
        )}
      </Await>
    </>
  );
}
