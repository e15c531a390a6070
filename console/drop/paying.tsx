// The scenes of an order that is paid for: pay, wait for the payment, and what became of money that bought nothing.

import { BigButton, Steps, Title, Words } from './parts.tsx';
import type { GiveBack, Payment } from './purchase.ts';
import { GiveBackButton, Seats } from './seats.tsx';
import { openSeatsOf } from './standing.ts';
import type { Claim, Order } from './store.ts';
import { money, seatsText, shortTime, timeLeft } from './text.ts';

interface PayProps {
  readonly claim: Claim;
  readonly hasTrouble: boolean;
  readonly giveBack: GiveBack;
  readonly payment: Payment;
  readonly now: number;
  readonly onPay: () => void;
  readonly onGiveBack: () => void;
}

export function Pay({ claim, hasTrouble, giveBack, payment, now, onPay, onGiveBack }: PayProps) {
  const { order } = claim;
  const until = order?.hold_until ?? claim.hold_until;
  const leftMs = until === null ? undefined : Date.parse(until) - now;
  if (claim.ending)
    return (
      <Words
        title="These seats are being given back"
        text="The payment page is closed first, so this takes a moment. If you have paid, your tickets appear here."
        isBusy
      />
    );
  if (leftMs !== undefined && leftMs <= 0)
    return (
      <Words
        title="Closing"
        text="The time to pay is over. If you have paid, your payment is being looked up: this page shows what became of it, also if you close it and come back."
        isBusy
      />
    );
  const seats = openSeatsOf(claim);
  return (
    <>
      <Title>
        {seats.length > 1 ? `${seatsText(seats.length)} are held for you` : 'A seat is held for you'}
      </Title>
      <p class="lead">
        Pay, and {seats.length > 1 ? 'they are' : 'it is'} yours. You pay on the page of the payment provider
        and come back here.
      </p>
      <Steps done={1} isPaid />
      {leftMs !== undefined && (
        <p class="hold" role="timer">
          Held for another <b>{shortTime(timeLeft(leftMs))}</b>
        </p>
      )}
      <Seats seats={seats} />
      {order !== undefined && (
        <BigButton isBusy={payment === 'asked'} onPress={onPay}>
          Pay {totalOf(order)}
        </BigButton>
      )}
      <p class="lead" role="status">
        {payment === 'failed' &&
          'The payment page did not open. Nothing was paid, and your seats stay held: try again.'}
        {payment !== 'failed' && hasTrouble && 'No answer at the moment. Your seats stay held.'}
      </p>
      <GiveBackButton state={giveBack} isMany={seats.length > 1} onGiveBack={onGiveBack} />
    </>
  );
}

export function Paying({ claim }: { claim: Claim }) {
  return (
    <>
      <Title>Your payment is being confirmed</Title>
      <p class="lead">
        Your seats stay yours meanwhile. You may close this page and come back: it shows your tickets when
        they are there.
      </p>
      <Steps done={1} isPaid />
      <Seats seats={openSeatsOf(claim)} />
    </>
  );
}

export function Refund({ claim: { order }, onBuy }: { claim: Claim; onBuy: () => void }) {
  const isBack = order?.status === 'refunded';
  return (
    <Words
      title={isBack ? 'Your money was sent back' : 'Your money goes back'}
      text={
        isBack
          ? 'Your payment came when the seats were gone, so we refunded all of it. How soon you see it depends on your bank.'
          : 'Your payment came when the seats were gone, or was not the right amount. We refund all of it; you need not do anything.'
      }
    >
      {order !== undefined && <p class="price">{totalOf(order)}</p>}
      <BigButton onPress={onBuy}>Try for another</BigButton>
    </Words>
  );
}

/** Empty until the price is known. */
function totalOf({ amount, currency }: Order): string {
  return amount === null || currency === null ? '' : money(amount, currency);
}
