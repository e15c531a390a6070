// The pieces that several scenes share.

import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { number, type TimeLeft } from './text.ts';

export function Countdown({ left }: { left: TimeLeft }) {
  const parts: [number, string][] = [
    [left.hours, 'hours'],
    [left.minutes, 'minutes'],
    [left.seconds, 'seconds'],
  ];
  if (left.days > 0) parts.unshift([left.days, left.days === 1 ? 'day' : 'days']);
  return (
    <div class="countdown" role="timer">
      {parts.map(([value, unit]) => (
        <div key={unit}>
          <span class="digits">{String(value).padStart(2, '0')}</span>
          <span class="unit">{unit}</span>
        </div>
      ))}
    </div>
  );
}

/** What is left, in words and as a bar that empties. */
export function Left({ available, capacity }: { available: number; capacity: number }) {
  const share = capacity > 0 ? Math.min(1, available / capacity) : 0;
  return (
    <div class={share < 0.1 ? 'left few' : 'left'}>
      <div class="left-text">
        <span>
          <b>{number(available)}</b> of {number(capacity)} left
        </span>
        <span>{available > 0 ? Math.max(1, Math.floor(share * 100)) : 0} %</span>
      </div>
      <div class="bar" aria-hidden="true">
        <div style={{ transform: `scaleX(${share})` }} />
      </div>
    </div>
  );
}

const STEPS = ['Asked', 'Seat held', 'Confirmed'];
const PAID_STEPS = ['Seat held', 'Paid', 'Confirmed'];

/** How far a claim has come: `done` of the three steps. */
export function Steps({ done, isPaid = false }: { done: number; isPaid?: boolean }) {
  return (
    <ol class="steps">
      {(isPaid ? PAID_STEPS : STEPS).map((step, index) => (
        <li
          key={step}
          class={index < done ? 'done' : undefined}
          aria-current={index === done ? 'step' : undefined}
        >
          {step}
        </li>
      ))}
    </ol>
  );
}

export function BigButton(props: { isBusy?: boolean; onPress: () => void; children: ComponentChildren }) {
  const { isBusy = false, onPress, children } = props;
  // Not disabled while busy: that would take the focus away from who uses the keyboard.
  return (
    <button type="button" class="big" aria-disabled={isBusy} onClick={onPress}>
      {isBusy && <span class="spinner" aria-hidden="true" />}
      {children}
    </button>
  );
}

/** How much is done, from 0 to 1, for eyes and for readers of screens. */
export function Share({ of, children }: { of: number; children: string }) {
  return <progress class="share" aria-label={children} max={100} value={Math.round(of * 100)} />;
}

export function Words(props: {
  title: string;
  text: string;
  isBusy?: boolean;
  children?: ComponentChildren;
}) {
  return (
    <>
      <Title>{props.title}</Title>
      <p class="lead">{props.text}</p>
      {props.isBusy && <span class="spinner" aria-hidden="true" />}
      {props.children}
    </>
  );
}

/** Takes the focus when what had it is gone with the last scene. */
export function Title({ children }: { children: string }) {
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

/** The focus moves only after the person has done something. */
let hasActed = false;
for (const act of ['keydown', 'pointerdown'])
  addEventListener(act, () => {
    hasActed = true;
  });
