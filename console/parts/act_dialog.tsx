// Try it, then do it: one act on one or many, with a reason for the audit log.

import { useState } from 'preact/hooks';
import { isDone } from '../../db1/supabase/functions/_shared/console/outcomes.ts';
import type { Act, Outcome } from '../lib/acts.ts';
import { plural, words } from '../lib/format.ts';
import { auditPlace } from '../lib/links.ts';
import { useSubmit } from '../lib/submit.ts';
import { Dialog } from './dialog.tsx';
import { Check, Field } from './fields.tsx';
import { Id } from './small.tsx';
import { Alarm, Trouble } from './states.tsx';
import { say } from './toast.tsx';

interface ActDialogProps {
  act: Act;
  ids: readonly string[];
  onClose(): void;
  /** The server has answered; `isAll`: for each of them it was done. */
  onDone(isAll: boolean): void;
}

/** What an act on a group says where workers were faster: an event that failed is tried again by itself. */
const NOTHING_LEFT = 'Nothing is left to do.';
/** As many as are named of each outcome. */
const FEW = 5;

function groups(outcomes: readonly Outcome[]): [string, string[]][] {
  const byOutcome = new Map<string, string[]>();
  for (const { id, outcome } of outcomes) byOutcome.set(outcome, [...(byOutcome.get(outcome) ?? []), id]);
  return [...byOutcome];
}

function verdictOf(outcomes: readonly Outcome[], isDryRun: boolean): string {
  if (isDryRun) return outcomes.length === 0 ? `Dry run. ${NOTHING_LEFT}` : 'Dry run: nothing was changed.';
  if (outcomes.length === 0) return NOTHING_LEFT;
  if (outcomes.every(isDone)) return 'Done.';
  return outcomes.some(isDone) ? 'Not all is done.' : 'Not done.';
}

interface Shown {
  readonly outcomes: readonly Outcome[];
  readonly isDryRun: boolean;
}

function Outcomes({ act, outcomes, isDryRun }: Shown & { act: Act }) {
  // What was done to a thing may have ended it.
  const placeOf = ({ id, outcome }: Outcome) =>
    isDryRun || !isDone({ outcome }) ? act.placeOf?.(id) : undefined;
  return (
    <div class="outcomes" role="status">
      <p>
        <strong>{verdictOf(outcomes, isDryRun)}</strong>
      </p>
      <ul>
        {groups(outcomes).map(([outcome, ids]) => (
          <li key={outcome}>
            <strong>{ids.length}</strong> {words(outcome)}
            <span class="muted">
              {ids.slice(0, FEW).map((id, index) => (
                <>
                  {index > 0 ? ', ' : ' '}
                  <Id key={id} value={id} to={placeOf({ id, outcome })} />
                </>
              ))}
              {ids.length > FEW && ` and ${ids.length - FEW} more`}
            </span>
          </li>
        ))}
      </ul>
    </div>
  );
}

/** Its audit row; of many the newest come first on that page. Nothing is written down where nothing was done. */
function writtenAt({ audit: { db, subjectOf } }: Act, outcomes: readonly Outcome[]): string | undefined {
  const subjects = new Set(outcomes.filter(isDone).map(({ id }) => subjectOf(id)));
  const [subject] = subjects;
  if (subject === undefined) return undefined;
  return auditPlace(db, subjects.size === 1 ? { subject } : {});
}

export function ActDialog({ act, ids, onClose, onDone }: ActDialogProps) {
  const [shown, setShown] = useState<Shown>();
  const { isBusy, error, run } = useSubmit();
  const verb = act.verb.toLowerCase();
  const onSubmit = (event: SubmitEvent): void => {
    event.preventDefault();
    const isDryRun = (event.submitter as HTMLButtonElement | null)?.value === 'dry';
    const data = new FormData(event.currentTarget as HTMLFormElement);
    const reason = String(data.get('reason')).trim();
    void run(async () => {
      const outcomes = await act.run(ids, reason, isDryRun, data.has('option'));
      setShown({ outcomes, isDryRun });
      if (isDryRun) return;
      const isAll = outcomes.every(isDone);
      onDone(isAll);
      const summary = groups(outcomes).map(([outcome, of]) => `${of.length} ${words(outcome)}`);
      say(
        summary.length === 0 ? NOTHING_LEFT : `${summary.join(', ')}.`,
        isAll ? 'good' : 'bad',
        writtenAt(act, outcomes),
      );
      // Where all is done there is nothing left to read here.
      if (isAll) onClose();
    });
  };
  const isOver = shown !== undefined && !shown.isDryRun;
  return (
    <Dialog title={`${act.verb} ${plural(ids.length, act.noun, act.nouns)}`} onClose={onClose}>
      <form onSubmit={onSubmit}>
        <p>{act.about}</p>
        {act.caution !== undefined && <Alarm tone="warn">{act.caution}</Alarm>}
        {act.option !== undefined && <Check name="option" label={act.option} isChecked />}
        <Field
          name="reason"
          label="Reason"
          isRequired
          autoFocus
          hint="For the audit log, for example: the validation service is repaired."
        />
        {shown && <Outcomes act={act} {...shown} />}
        {error && <Trouble error={error} />}
        <footer class="dialog-foot">
          <button type="button" class="button" onClick={onClose}>
            {isOver ? 'Close' : 'Cancel'}
          </button>
          {!isOver && (
            <>
              {!act.hasNoDryRun && (
                <button type="submit" class="button" value="dry" disabled={isBusy} formNoValidate>
                  Dry run
                </button>
              )}
              <button
                type="submit"
                class={`button ${act.isDanger ? 'button-danger' : 'button-main'}`}
                disabled={isBusy}
              >
                {isBusy ? 'One moment…' : `Yes, ${verb}`}
              </button>
            </>
          )}
        </footer>
      </form>
    </Dialog>
  );
}
