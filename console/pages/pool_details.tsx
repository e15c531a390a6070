// What buyers read about a pool: on its drop page and on its tickets.

import { get, post } from '../lib/api.ts';
import { poolAudit } from '../lib/links.ts';
import { useLoad } from '../lib/load.ts';
import type { PoolDetails } from '../lib/shapes.ts';
import { fromField } from '../lib/zone.ts';
import { Field, TextField, TimeField } from '../parts/fields.tsx';
import { reasonOf } from '../parts/form_dialog.tsx';
import { SaveForm } from '../parts/save_form.tsx';
import { Await } from '../parts/states.tsx';
import { say } from '../parts/toast.tsx';

const CHANGE = 'POST /admin/pools/:pool/details';

export function Details({ pool }: { pool: string }) {
  const path = `/admin/pools/${encodeURIComponent(pool)}/details`;
  const loaded = useLoad(`details of ${pool}`, () => get<PoolDetails>(path));
  const save = async (changes: Record<string, unknown>): Promise<void> => {
    await post<PoolDetails>(path, changes);
    loaded.reload();
    say('The details are saved.', 'good', poolAudit(pool));
  };
  return (
    <Await loaded={loaded}>
      {(details) => <DetailsForm key={JSON.stringify(details)} details={details} save={save} />}
    </Await>
  );
}

function DetailsForm(props: {
  details: PoolDetails;
  save: (changes: Record<string, unknown>) => Promise<void>;
}) {
  const { details, save } = props;
  return (
    <SaveForm
      title="What buyers read"
      do={CHANGE}
      action="Save details"
      reasonLabel="Reason for the new details"
      submit={(form) => save({ ...detailsOf(form), ...reasonOf(form) })}
    >
      <div class="fields">
        <Field name="title" label="Title" value={details.title ?? ''} hint="Empty: the name of the pool." />
        <Field name="place" label="Where" value={details.place ?? ''} />
        <TimeField name="starts_at" label="When" at={details.starts_at} />
        <Field
          name="time_zone"
          label="Time zone"
          value={details.time_zone ?? ''}
          hint="In which buyers read it, such as Europe/Berlin. Empty: UTC."
        />
        <Field
          name="picture_url"
          label="Picture"
          value={details.picture_url ?? ''}
          pattern="https://.+"
          hint="An https address."
        />
      </div>
      <TextField name="text" label="Text" value={details.text ?? ''} hint="Empty lines part paragraphs." />
    </SaveForm>
  );
}

function detailsOf(form: HTMLFormElement): PoolDetails {
  const data = new FormData(form);
  const text = (name: string): string | null => String(data.get(name) ?? '').trim() || null;
  const startsAt = text('starts_at');
  return {
    title: text('title'),
    starts_at: startsAt === null ? null : fromField(startsAt).toISOString(),
    time_zone: text('time_zone'),
    place: text('place'),
    picture_url: text('picture_url'),
    text: text('text'),
  };
}
