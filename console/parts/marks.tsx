// What happened while the numbers were taken, newest first. Each leads to its own time.

import { type Mark, markText } from '../../db1/supabase/functions/_shared/console/marks.ts';
import { duration, plural } from '../lib/format.ts';
import { historyPlace } from '../lib/links.ts';
import { Link } from '../lib/router.tsx';
import { Moment } from './small.tsx';

const MOST = 100;
/** Shown on either side of what happened. */
const AROUND_MIN = 5;

const TONES: Readonly<Record<string, string>> = {
  outage: 'bad',
  failover: 'bad',
  secret: 'bad',
  alert: 'warn',
  breaker: 'warn',
  restart: 'warn',
  deploy: 'good',
  start: 'good',
};

function Length({ mark: { began_at, ended_at } }: { mark: Mark }) {
  if (ended_at === null) return <strong>goes on</strong>;
  const sec = (Date.parse(ended_at) - Date.parse(began_at)) / 1_000;
  return sec < 1 ? null : <span class="muted">for {duration(sec)}</span>;
}

const aroundOf = ({ began_at, ended_at }: Mark, of: string | undefined): string =>
  historyPlace(began_at, ended_at ?? began_at, AROUND_MIN, of);

/** Below charts that show them as lines without a name. */
export function DashedLines({ marks }: { marks: readonly Mark[] }) {
  if (marks.every(({ kind }) => kind === 'outage')) return null;
  return (
    <p class="hint">
      A dashed line is something that happened, such as a start, a breaker or what an operator did.{' '}
      <Link to="/history?range=15m">History names each</Link>
    </p>
  );
}

export function Marks({ marks, of }: { marks: readonly Mark[]; of: string | undefined }) {
  if (marks.length === 0) return <p class="muted">No outage, breaker, failover, deploy, action or alert.</p>;
  return (
    <>
      <ul class="marks">
        {marks.slice(0, MOST).map((mark) => (
          <li key={`${mark.kind} ${mark.subject} ${mark.source} ${mark.began_at} ${mark.actor ?? ''}`}>
            <Link to={aroundOf(mark, of)}>
              <Moment at={mark.began_at} />
            </Link>
            <span class={`chip chip-${TONES[mark.kind] ?? 'calm'}`}>{mark.kind}</span>
            <span class="marks-text">
              {markText(mark)} <Length mark={mark} />
            </span>
          </li>
        ))}
      </ul>
      {marks.length > MOST && (
        <p class="muted">and {plural(marks.length - MOST, 'mark')} before: choose a shorter time.</p>
      )}
    </>
  );
}
