// One component for each scene: a heading, a sentence, and what can be done.

import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { BigButton, Countdown, Steps } from './parts.tsx';
import type { Scene } from './scene.ts';
import type { Claim } from './store.ts';
import { aheadText, moment, shortCode, shortTime, timeLeft } from './text.ts';
import { CopyButton, Ticket } from './ticket.tsx';

/** From here on a person wonders. */
const LONG_MS = 8_000;

interface SceneProps {
  readonly pool: string;
  readonly scene: Scene;
  readonly now: number;
  readonly onBuy: () => void;
  readonly onForget: () => void;
}

export function SceneView({ pool, scene, now, onBuy, onForget }: SceneProps) {
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
          title="There is no drop here"
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
      return <Open {...scene} onBuy={onBuy} />;
    case 'held':
      return <Held {...scene} now={now} />;
    case 'ticket':
      return <YourTicket pool={pool} {...scene} onForget={onForget} />;
    case 'ended':
      return (
        <Words title="This seat was given back" text={ENDINGS[scene.claim.status] ?? 'It is on sale again.'}>
          <BigButton onPress={onBuy}>Try for another</BigButton>
        </Words>
      );
    case 'sign_in':
      return (
        <Words
          title="For people who are signed in"
          text="Seats of this drop are sold to signed-in people only, and this page does not sign anybody in. Buy on the organiser’s own site or app."
        />
      );
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
          <BigButton onPress={onBuy}>Try again</BigButton>
        </Words>
      );
  }
}

const ENDINGS: Readonly<Record<string, string>> = {
  expired: 'It was held for you, but not confirmed in time.',
  released: 'You, or somebody for you, released it.',
  refused: 'The organiser did not accept this claim.',
  discarded: 'The organiser cancelled this claim.',
};

const REFUSALS: Readonly<Record<string, string>> = {
  limit: 'You already hold as many seats as one person may have.',
  claim_ended: 'The seat you asked for earlier was given back. You can ask for a new one.',
};

function Words(props: { title: string; text: string; isBusy?: boolean; children?: ComponentChildren }) {
  return (
    <>
      <Title>{props.title}</Title>
      <p class="lead">{props.text}</p>
      {props.isBusy && <span class="spinner" aria-hidden="true" />}
      {props.children}
    </>
  );
}

function Open(props: { isAsking: boolean; hasTrouble: boolean; onBuy: () => void }) {
  const { isAsking, hasTrouble, onBuy } = props;
  const calm = isAsking
    ? 'You are in line. This takes a moment.'
    : 'One press, one seat. Pressing twice never costs you a second one.';
  return (
    <>
      <Title>{isAsking ? 'Asking for your seat' : 'On sale now'}</Title>
      <p class="lead">
        {hasTrouble ? 'No answer yet. We go on asking with the same request, so you cannot buy twice.' : calm}
      </p>
      <BigButton isBusy={isAsking} onPress={onBuy}>
        {isAsking ? 'Getting your ticket…' : 'Get my ticket'}
      </BigButton>
    </>
  );
}

/** What can be promised: a seat is held, and for how long; a ticket it is only when the ledger has it. */
function heldText(status: string, isLate: boolean): string {
  if (status === 'dead_letter')
    return 'Your ticket could not be written yet, and the organiser has to look at it: they confirm the seat or give it back. This page shows which, also if you close it and come back.';
  return isLate
    ? 'Confirming takes longer than usual. You may close this page and come back later: it shows what became of your seat.'
    : 'We are writing your ticket. It appears here by itself.';
}

function Held(props: { claim: Claim; hasTrouble: boolean; since: number; now: number }) {
  const { claim, hasTrouble, since, now } = props;
  const { status, hold_until, ahead, resource_id } = claim;
  // A claim that was validated does not run out any more, and a dead letter is with the organiser.
  const holdsUntil = status === 'queued' && hold_until !== null ? Date.parse(hold_until) : undefined;
  return (
    <>
      <Title>A seat is held for you</Title>
      <p class="lead">{heldText(status, hasTrouble || now - since > LONG_MS)}</p>
      <Steps done={2} />
      {holdsUntil !== undefined && <Hold leftMs={holdsUntil - now} />}
      {typeof ahead === 'number' && <p class="ahead">{aheadText(ahead)}</p>}
      <p class="held-seat">
        <span class="label">Seat</span>
        <span class="code">{shortCode(resource_id)}</span>
      </p>
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

function YourTicket(props: { pool: string; claim: Claim; isMissing: boolean; onForget: () => void }) {
  const { pool, claim, isMissing, onForget } = props;
  const forget = () => {
    // A ticket is dear: the one dialog of this page.
    if (confirm('Forget this ticket? This browser will not show it again.')) onForget();
  };
  return (
    <>
      <Title>You are in</Title>
      <p class="lead">
        {isMissing
          ? 'The box office does not find this ticket at the moment. Keep the claim id: the organiser finds your seat by it.'
          : 'Your ticket is confirmed and kept in this browser.'}
      </p>
      <Ticket pool={pool} claim={claim} />
      <CopyButton text={claim.claim_id}>Copy claim id</CopyButton>
      {isMissing && (
        <button type="button" class="quiet" onClick={forget}>
          Forget this ticket
        </button>
      )}
    </>
  );
}

/** Takes the focus when what had it is gone with the last scene. */
function Title({ children }: { children: string }) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    if (document.activeElement === document.body && hasActed) heading.current?.focus();
  }, [children]);
  return (
    <h2 ref={heading} tabIndex={-1}>
      {children}
    </h2>
  );
}

/** Nobody's focus is moved who has done nothing yet. */
let hasActed = false;
for (const act of ['keydown', 'pointerdown'])
  addEventListener(act, () => {
    hasActed = true;
  });
