import { cautious, issueActs } from '../lib/acts.ts';
import { get, pathWith } from '../lib/api.ts';
import { words } from '../lib/format.ts';
import { auditPlace, failurePlace, historyPlace, poolPlace } from '../lib/links.ts';
import { useIsFailing } from '../lib/live.ts';
import { useLoad } from '../lib/load.ts';
import { Link } from '../lib/router.tsx';
import type { Issue as IssueRow } from '../lib/shapes.ts';
import { useTabName } from '../lib/tab.ts';
import { ActButtons } from '../parts/bench.tsx';
import { Card, Facts, Moment, PageHead } from '../parts/small.tsx';
import { Await } from '../parts/states.tsx';
import { IssueState } from './issues.tsx';

/** What changed shortly before the first failure may be the cause. */
const AROUND_MIN = 15;

/** Why claims were given up. */
const GIVEN_UP: Readonly<Record<string, string>> = {
  dead_letter: 'claims are dead letters',
  malformed: 'messages cannot be read',
  max_retries: 'all attempts of claims failed',
  takeovers: 'workers died with claims',
  ticket_conflict: 'other claims have the tickets',
  unknown_pool: 'this pool is not known',
};

/** What goes wrong, and where. */
function titleOf(issue: IssueRow): string {
  const { kind, lane, type } = issue;
  if (kind === 'claim') return `Pool ${lane ?? 'not named'}: ${GIVEN_UP[type] ?? words(type)}`;
  if (isQuarantined(issue)) return `${type} cannot be processed`;
  if (diedWithIt(issue)) return `Workers died with ${kind === 'event' ? type : `deliveries of ${lane}`}`;
  if (kind === 'event') return lane === null ? `${type} fails` : `${lane} fails on ${type}`;
  if (kind === 'delivery') return `The ledger refuses deliveries of ${lane ?? 'an unknown sender'}`;
  return type === 'void' ? `Voids of ${lane} cannot be carried out` : `Payments of ${lane} cannot be decided`;
}

/** Where all of them are listed. */
function allPlace({ kind, lane, type, error, failures, dead_letters }: IssueRow): string | undefined {
  if (kind === 'claim')
    return pathWith('/dead-letters', {
      pool_id: lane ?? undefined,
      reason: type === 'dead_letter' ? undefined : type,
    });
  const ofEvents = { type, error: error ?? undefined };
  if (kind === 'event')
    return failures === dead_letters
      ? pathWith('/dead-letters', { kind: 'webhooks', ...ofEvents })
      : pathWith('/events', ofEvents);
  return kind === 'delivery' ? '/dead-letters?kind=inbox' : undefined;
}

function Lane({ issue: { kind, lane } }: { issue: IssueRow }) {
  if (lane === null) return <span class="muted">none</span>;
  return kind === 'claim' ? <Link to={poolPlace(lane)}>{lane}</Link> : <span>{lane}</span>;
}

const WHAT: Readonly<Record<IssueRow['kind'], string>> = {
  claim: 'Dead letters of claims',
  delivery: 'Deliveries of the inbox that the ledger refused',
  event: 'Events that failed in their handler',
  question: 'Questions to the intake about payments and voids',
};

/** What `lane` is, of each kind. */
const LANES: Readonly<Record<IssueRow['kind'], string>> = {
  claim: 'Pool',
  delivery: 'Endpoint or call site',
  event: 'Handler',
  question: 'Tenant',
};

/** Its handler never saw it, and there is nothing that a replay could send round. */
const isQuarantined = ({ kind, error }: IssueRow): boolean =>
  kind === 'event' && (error?.startsWith('quarantine: ') ?? false);

/** The work's own error is not known: nothing that tried it lived to say it. */
const diedWithIt = ({ type, error }: IssueRow): boolean =>
  type === 'takeovers' ||
  error === 'lease_lost_repeatedly' ||
  (error?.startsWith('its worker died ') ?? false);

/** What an operator does about it: by what the error says, then by kind; of claims by why they were given up. */
function toDoOf(issue: IssueRow): string {
  const { kind, type, lane, failures, dead_letters } = issue;
  if (isQuarantined(issue))
    return 'The body was signed, but the database cannot keep it as JSON, so no handler gets it and a replay does nothing. The page of the event has its bytes: handle it by hand, then skip it.';
  if (diedWithIt(issue))
    return 'Ten workers, or their sessions of the database, died while they held it, alone from the second or third time on. Read the logs of workers and databases before you replay.';
  if (kind === 'event')
    return `${
      lane === null
        ? 'No handler has these events.'
        : `The handler ${lane} says this: a fault of its code, or of what it calls.`
    } Mend it and start the workers again, then replay.${
      failures > dead_letters
        ? ' Workers try those that are not among the dead letters again by themselves.'
        : ''
    }`;
  if (kind === 'delivery')
    return 'The sender had its answer and does not deliver again. Mend the cause, then replay.';
  if (kind === 'question') return 'Mend the cause, then replay: the intake is asked again.';
  if (type === 'ticket_conflict')
    return 'Another claim has the ticket of this slot. Run npx sluice reconcile --fix, then replay or discard.';
  if (type === 'malformed' || type === 'unknown_pool')
    return 'The message was put on the queue by hand, or its pool is gone. Look at it, then discard it.';
  return 'The hook or the function that the pool names failed on every attempt: its page has the addresses. Mend the cause, then replay.';
}

/** Of the one that failed last. A dead letter that was replayed is gone; an event stays. */
const examplePlace = ({ kind, failures, example_id }: IssueRow): string | undefined =>
  failures > 0 || kind === 'event' ? failurePlace(kind, example_id) : undefined;

export function Issue({ parameter }: { parameter: string }) {
  const loaded = useLoad(`issue ${parameter}`, () => get<IssueRow>(`/admin/issues/${parameter}`));
  const { value } = loaded;
  const handler = value?.kind === 'event' ? value.lane : null;
  const isFailing = useIsFailing(handler);
  const title = value && titleOf(value);
  useTabName(title);
  const acts = value ? issueActs(value, !isQuarantined(value)) : [];
  return (
    <>
      <PageHead title={title ?? 'Issue'} about={value && WHAT[value.kind]}>
        <ActButtons
          acts={isFailing && handler !== null ? cautious(acts, handler) : acts}
          id={parameter}
          onDone={loaded.reload}
        />
      </PageHead>
      <Await loaded={loaded}>
        {(issue) => (
          <div class="columns">
            <Card title="What goes wrong">
              <p>
                <strong class="note">{issue.type}</strong>
              </p>
              {issue.error && <p class="note">{issue.error}</p>}
              {issue.example_error !== null && (
                <>
                  <h3>Example</h3>
                  <p class="note">{issue.example_error}</p>
                </>
              )}
              {issue.state !== 'resolved' && (
                <>
                  <h3>What to do</h3>
                  <p>{toDoOf(issue)}</p>
                </>
              )}
              {(examplePlace(issue) ?? allPlace(issue)) && (
                <>
                  <h3>Which they are</h3>
                  <p>
                    {examplePlace(issue) && (
                      <Link to={examplePlace(issue) ?? ''}>The one that failed last</Link>
                    )}
                    {examplePlace(issue) && allPlace(issue) && ' · '}
                    {allPlace(issue) && <Link to={allPlace(issue) ?? ''}>All of them</Link>}
                  </p>
                </>
              )}
            </Card>
            <Card title="The issue">
              <Facts
                facts={[
                  ['State', <IssueState key="state" state={issue.state} />],
                  ['Failures now', String(issue.failures)],
                  ['Of them dead letters', String(issue.dead_letters)],
                  [LANES[issue.kind], <Lane key="lane" issue={issue} />],
                  [
                    'First seen',
                    <>
                      <Moment at={issue.first_seen_at} />
                      <br />
                      <Link to={historyPlace(issue.first_seen_at, issue.first_seen_at, AROUND_MIN)}>
                        What happened at that time
                      </Link>
                    </>,
                  ],
                  ['Last seen', <Moment key="last" at={issue.last_seen_at} />],
                  ['Opened', <Moment key="opened" at={issue.opened_at} />],
                  ['Times opened', String(issue.openings)],
                  ['Resolved', issue.resolved_at && <Moment key="resolved" at={issue.resolved_at} />],
                  ['Resolved by', issue.resolved_at && (issue.resolved_by ?? 'nothing is left of it')],
                  [
                    'What was done',
                    <Link
                      key="audit"
                      to={auditPlace(issue.kind === 'claim' || issue.kind === 'delivery' ? 1 : 2, {
                        subject: `issue ${issue.id}`,
                      })}
                    >
                      Audit rows
                    </Link>,
                  ],
                ]}
              />
            </Card>
          </div>
        )}
      </Await>
    </>
  );
}
