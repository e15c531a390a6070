// One component for each scene: a heading, a sentence, and what can be done.

import type { ComponentChildren } from 'preact';
import { BigButton, Countdown, Share, Steps, Title, Words } from './parts.tsx';
import { Pay, Paying, Refund } from './paying.tsx';
import { type GiveBack, UNSOLVABLE } from './purchase.ts';
import { Quantity, type QuantityProps } from './quantity.tsx';
import type { Scene } from './scene.ts';
import { GiveBackButton, Seats } from './seats.tsx';
import { lateSeatsOf, openSeatsOf, ticketsOf } from './standing.ts';
import type { Claim } from './store.ts';
import { aheadText, moment, seatsText, shortTime, timeLeft } from './text.ts';
import { CopyButton, Ticket } from './ticket.tsx';

/** From here on a person wonders. */
const LONG_MS = 8_000;

interface SceneProps {
  /** What is on sale here. */
  readonly name: string;
  readonly scene: Scene;
  readonly now: number;
  readonly signIn: (isGuest: boolean) => ComponentChildren;
  /** Undefined until the pool is known. */
  readonly choice: QuantityProps | undefined;
  readonly onBuy: () => void;
  readonly onPay: () => void;
  readonly onGiveBack: () => void;
  readonly onForget: () => void;
}

export function SceneView(props: SceneProps) {
  const { name, scene, now, signIn, choice, onBuy, onPay, onGiveBack, onForget } = props;
  switch (scene.kind) {
    case 'loading':
      return <Words title="One moment" text="Looking up this drop." isBusy />;
    case 'unreachable':
      return (
        <Words
          title="No answer yet"
          text="The box office cannot be reached. This page keeps trying."
          isBusy
        />
      );
    case 'unknown':
      return (
        <Words
          title="This drop does not exist"
          text="Check the address; it may have a typo, or the drop is not announced yet."
        />
      );
    case 'countdown':
      return (
        <Words
          title="Opens soon"
          text={`Seats go on sale on ${moment(scene.opensAt)}. Stay on this page: the button appears by itself.`}
        >
          <Countdown left={timeLeft(scene.opensAt - now)} />
        </Words>
      );
    case 'open':
      return <Open {...scene} choice={choice} onBuy={onBuy} />;
    case 'pay':
      return <Pay {...scene} now={now} onPay={onPay} onGiveBack={onGiveBack} />;
    case 'paying':
      return <Paying claim={scene.claim} />;
    case 'held':
      return <Held {...scene} now={now} onGiveBack={onGiveBack} />;
    case 'ticket':
      return <YourTickets name={name} {...scene} onForget={onForget} />;
    case 'ended':
      return (
        <Words
          title={isMany(scene.claim) ? 'These seats were given back' : 'This seat was given back'}
          text={endingOf(scene.claim)}
        >
          <BigButton onPress={onBuy}>Try for another</BigButton>
        </Words>
      );
    case 'refund':
      return <Refund claim={scene.claim} onBuy={onBuy} />;
    case 'voided':
      return (
        <Words
          title={isMany(scene.claim) ? 'Your tickets were taken back' : 'Your ticket was taken back'}
          text={
            isMany(scene.claim)
              ? 'They were refunded, or the organiser has cancelled them. They are not valid any more.'
              : 'It was refunded, or the organiser has cancelled it. It is not valid any more.'
          }
        >
          <BigButton onPress={onBuy}>Try for another</BigButton>
        </Words>
      );
    case 'sign_in':
      return <>{signIn(scene.isGuest)}</>;
    case 'sold_out':
      return (
        <Words
          title="Sold out"
          text="Every seat is taken. If one comes back, the button does too: leave this page open."
        />
      );
    case 'closed':
      return <Words title="The drop is closed" text="No seats are sold at the moment." />;
    case 'refused':
      return (
        <Words
          title="That did not work"
          text={REFUSALS[scene.code] ?? 'The box office refused this request.'}
        >
          {choice && <Quantity {...choice} />}
          <BigButton onPress={onBuy}>Try again</BigButton>
        </Words>
      );
  }
}

const ENDINGS: Readonly<Record<string, string>> = {
  expired: 'It was held for you, but not confirmed in time.',
  released: 'You, or an operator for you, released it.',
  refused: 'The organiser did not accept this claim.',
  discarded: 'The organiser cancelled this claim.',
};

function isMany({ order }: Claim): boolean {
  return (order?.seats ?? 1) > 1;
}

function endingOf({ status, order }: Claim): string {
  if (order?.status === 'expired' && order.seats > 1)
    return 'They were held for you, and were not paid in time. If you have paid all the same, your payment is being looked up: it brings you other seats, or all of it is refunded.';
  if (order?.status === 'expired')
    return 'It was held for you, and was not paid in time. If you have paid anyway, we are looking up your payment: you get other seats, or a full refund.';
  return ENDINGS[status] ?? 'It is on sale again.';
}

const REFUSALS: Readonly<Record<string, string>> = {
  limit: 'You already hold as many seats as one person may have, or these would be too many.',
  not_enough: 'Fewer seats are left than you want. Ask for fewer, or try again: some may come back.',
  quantity_refused: 'One person cannot ask for that many seats at once.',
  claim_ended: 'The seat you asked for earlier was given back. You can ask for a new one.',
  address_limit: 'Buyers on your network already hold as many seats as one network may have.',
  challenge_required: 'The check against robots did not succeed. Try once more.',
  challenge_used: 'The check against robots did not succeed. Try once more.',
  [UNSOLVABLE]:
    'This drop has a check against robots that this page cannot do. Buy on the organiser’s own site or app.',
};

function Open(props: {
  isAsking: boolean;
  hasTrouble: boolean;
  solved?: number | undefined;
  choice: QuantityProps | undefined;
  onBuy: () => void;
}) {
  const { isAsking, hasTrouble, solved, choice, onBuy } = props;
  return (
    <>
      <Title>{openTitle(isAsking, solved !== undefined)}</Title>
      <p class="lead">{openText(isAsking, hasTrouble, solved !== undefined, choice)}</p>
      {solved !== undefined && <Share of={solved}>Puzzle</Share>}
      {choice && !isAsking && <Quantity {...choice} />}
      <BigButton isBusy={isAsking} onPress={onBuy}>
        {buttonText(isAsking, choice)}
      </BigButton>
    </>
  );
}

function buttonText(isAsking: boolean, choice: QuantityProps | undefined): string {
  const { pool, quantity = 1 } = choice ?? {};
  if (pool?.confirm_by === 'payment') {
    if (isAsking) return 'Holding your seat…';
    return quantity > 1 ? `Hold ${seatsText(quantity)}` : 'Hold my seat';
  }
  const what = quantity > 1 ? `my ${quantity} tickets` : 'my ticket';
  return isAsking ? 'Getting your ticket…' : `Get ${what}`;
}

function openTitle(isAsking: boolean, isSolving: boolean): string {
  if (isSolving) return 'One check first';
  return isAsking ? 'Asking for your seat' : 'On sale now';
}

function openText(
  isAsking: boolean,
  hasTrouble: boolean,
  isSolving: boolean,
  choice: QuantityProps | undefined,
): string {
  if (hasTrouble) return 'No answer yet. We keep sending the same request, so you cannot buy twice.';
  if (isSolving)
    return 'Your device solves a small puzzle, so that robots cannot take every seat. It takes a few seconds; keep this page open.';
  if (isAsking) return 'You are in line. This takes a moment.';
  if (choice?.pool.confirm_by === 'payment')
    return 'First your seats are held, then you pay. Pressing twice never costs you more.';
  return choice !== undefined && choice.quantity > 1
    ? 'You get all of them, or none. Pressing twice never costs you more.'
    : 'One press, one seat. Pressing twice never costs you a second one.';
}

/** What can be promised: a seat is held, and for how long; a ticket it is only when the ledger has it. */
function heldText(status: string, isLate: boolean): string {
  if (status === 'dead_letter')
    return 'Your ticket could not be written yet, and the organiser has to look at it: they confirm the seat or give it back. This page shows which, also if you close it and come back.';
  return isLate
    ? 'Confirming takes longer than usual. You may close this page and come back later: it then shows your ticket, or what happened to your seat.'
    : 'We are writing your ticket. It appears here by itself.';
}

function Held(props: {
  claim: Claim;
  hasTrouble: boolean;
  since: number;
  giveBack: GiveBack;
  now: number;
  onGiveBack: () => void;
}) {
  const { claim, hasTrouble, since, giveBack, now, onGiveBack } = props;
  const { status, hold_until, ahead, order, ending = false } = claim;
  const isPaid = order?.status === 'paid';
  const seats = openSeatsOf(claim);
  // A claim that was validated does not run out any more, and a dead letter is with the organiser.
  const holdsUntil = status === 'queued' && hold_until !== null ? Date.parse(hold_until) : undefined;
  return (
    <>
      <Title>{ending ? 'This seat is being given back' : 'A seat is held for you'}</Title>
      <p class="lead">
        {ending
          ? 'It was on its way to a ticket, so this takes a moment. If the ticket was faster, it appears here.'
          : heldText(status, hasTrouble || now - since > LONG_MS)}
      </p>
      <Steps done={2} isPaid={isPaid} />
      {holdsUntil !== undefined && <Hold leftMs={holdsUntil - now} />}
      {typeof ahead === 'number' && <p class="ahead">{aheadText(ahead)}</p>}
      <Seats seats={seats} />
      {!ending && status !== 'dead_letter' && !isPaid && (
        <GiveBackButton state={giveBack} isMany={seats.length > 1} onGiveBack={onGiveBack} />
      )}
    </>
  );
}

function Hold({ leftMs }: { leftMs: number }) {
  if (leftMs <= 0)
    return (
      <p class="hold">
        The time for confirming it has passed: unless the ticket comes first, it is given back.
      </p>
    );
  return (
    <p class="hold" role="timer">
      Held for another <b>{shortTime(timeLeft(leftMs))}</b>
    </p>
  );
}

function YourTickets(props: { name: string; claim: Claim; isMissing: boolean; onForget: () => void }) {
  const { name, claim, isMissing, onForget } = props;
  const tickets = ticketsOf(claim);
  const forget = () => {
    if (confirm('Forget this ticket? This browser will not show it again.')) onForget();
  };
  return (
    <>
      <Title>You are in</Title>
      <p class="lead">{ticketsText(claim, tickets.length, isMissing)}</p>
      {tickets.map((seat) => (
        <Ticket key={seat.claim_id} name={name} seat={seat} claim={claim} />
      ))}
      <CopyButton text={claim.claim_id}>Copy claim id</CopyButton>
      {isMissing && (
        <button type="button" class="quiet" onClick={forget}>
          Forget this ticket
        </button>
      )}
    </>
  );
}

const LATE_SEAT = {
  same: 'and your seat was still free',
  other: 'so this is another seat than the one that was held',
  perhaps: 'so this may be another seat than the one that was held',
} as const;
const LATE_SEATS = {
  same: 'and your seats were still free',
  other: 'so these are other seats than those that were held',
  perhaps: 'so some of these may be other seats than those that were held',
} as const;

function ticketsText(claim: Claim, count: number, isMissing: boolean): string {
  if (isMissing)
    return 'We cannot find this ticket at the moment. Keep the claim id: with it the organiser finds your seat.';
  const kept = count > 1 ? `Your ${count} tickets are confirmed` : 'Your ticket is confirmed';
  const late = lateSeatsOf(claim);
  if (late === undefined) return `${kept} and kept in this browser.`;
  return `${kept}. Your payment came after the hold was over, ${count > 1 ? LATE_SEATS[late] : LATE_SEAT[late]}.`;
}
