import { useState } from 'preact/hooks';
import { post } from '../lib/api.ts';
import { auditPlace, paymentPlace } from '../lib/links.ts';
import { listUnnamedPayments, usePages } from '../lib/lists.ts';
import type { UnnamedPayment } from '../lib/shapes.ts';
import { Field } from '../parts/fields.tsx';
import { FormDialog, reasonOf } from '../parts/form_dialog.tsx';
import { List } from '../parts/list.tsx';
import { useMay } from '../parts/may.tsx';
import { Given, Id, Moment } from '../parts/small.tsx';
import type { Column } from '../parts/table.tsx';
import { say } from '../parts/toast.tsx';

interface NameUserProps {
  payment: UnnamedPayment;
  onClose(): void;
  onDone(): void;
}

function NameUser({ payment, onClose, onDone }: NameUserProps) {
  const { provider: tenant, object_id } = payment;
  const submit = async (form: HTMLFormElement): Promise<void> => {
    const user_id = String(new FormData(form).get('user_id')).trim();
    await post('/admin/webhooks/payments/name', { tenant, payment: object_id, user_id, ...reasonOf(form) });
    say(
      `The payment is that of ${user_id}, who has its credits now.`,
      'good',
      auditPlace(2, { subject: `payment ${object_id}` }),
    );
    onDone();
    onClose();
  };
  return (
    <FormDialog
      title={`Name the user of ${object_id}`}
      action="Name the user"
      submit={submit}
      onClose={onClose}
    >
      <p>
        The ledger gets what this payment moved so far, as credits of the user. It cannot be given to another
        one later.
      </p>
      <Field
        name="user_id"
        label="User"
        isRequired
        autoFocus
        hint="As your payments name users in metadata.user_id."
      />
      <Field name="reason" label="Reason" isRequired hint="For the audit log." />
    </FormDialog>
  );
}

/** `onName` is left out for who may not. */
function columnsFor(onName?: (payment: UnnamedPayment) => void): Column<UnnamedPayment>[] {
  const change: Column<UnnamedPayment>[] =
    onName === undefined
      ? []
      : [
          {
            head: 'Change',
            cell: (payment) => (
              <button type="button" class="button button-small" onClick={() => onName(payment)}>
                Name the user…
              </button>
            ),
          },
        ];
  return [
    {
      head: 'Payment',
      place: 'title',
      cell: ({ provider, object_id }) => (
        <Id value={object_id} to={paymentPlace(`${provider}/${object_id}`)} />
      ),
    },
    { head: 'Tenant', place: 'corner', cell: ({ provider }) => <Given value={provider} /> },
    { head: 'Captured', isNumber: true, cell: ({ captured }) => captured },
    { head: 'Refunded', isNumber: true, cell: ({ refunded }) => refunded },
    { head: 'Disputed', isNumber: true, cell: ({ disputed }) => disputed ?? 0 },
    { head: 'Currency', cell: ({ currency }) => currency },
    { head: 'Since', cell: ({ occurred_at }) => <Moment at={occurred_at} /> },
    ...change,
  ];
}

/** Payments that moved money while no event names their user. Nothing where each has one. */
export function UnnamedPayments() {
  const pages = usePages('unnamed payments', listUnnamedPayments);
  const [named, setNamed] = useState<UnnamedPayment>();
  const mayName = useMay('POST /admin/webhooks/payments/name');
  if (pages.value?.length === 0) return null;
  return (
    <section aria-labelledby="unnamed-payments">
      <h2 id="unnamed-payments">Money without a user</h2>
      <p class="about">
        No event names the user of these payments, so their credits wait. Amounts are in minor units.
      </p>
      <List
        caption="Payments without a user"
        pages={pages}
        columns={mayName ? columnsFor(setNamed) : columnsFor()}
        keyOf={({ provider, object_id }) => `${provider} ${object_id}`}
      >
        {null}
      </List>
      {named && <NameUser payment={named} onClose={() => setNamed(undefined)} onDone={pages.reload} />}
    </section>
  );
}
