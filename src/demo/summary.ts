// What the demo came to: for people, and for scripts.

import type { Load } from './load.ts';
import type { Outage } from './outage.ts';
import { number } from './progress.ts';
import type { Tally } from './tally.ts';

export interface Outcome {
  readonly pool_id: string;
  readonly ok: boolean;
  readonly seats: number;
  readonly buyers: number;
  readonly burst_sec: number;
  readonly claims_per_sec: number;
  /** Answers to buyers a second for each core of this machine; the same of tickets below. */
  readonly claims_per_sec_per_core: number;
  readonly claimed: number;
  readonly sold_out: number;
  readonly pressed_twice: number;
  readonly tried_again: number;
  readonly tickets: number;
  /** Of these, tickets of people who bought on the drop page meanwhile. */
  readonly tickets_of_others: number;
  /** From the last answer to a buyer to the last ticket. */
  readonly drained_sec: number;
  /** From the first claim to the last ticket. */
  readonly total_sec: number;
  readonly tickets_per_sec: number;
  readonly tickets_per_sec_per_core: number;
  /** Of this command, which sends the load and shares the machine's cores with the servers where it runs beside them. */
  readonly load: {
    readonly cores: number;
    readonly cpu_sec: number;
    /** The part of all that these cores could do while it ran: 1 is all of it. */
    readonly share: number;
    readonly memory_mb: number;
  };
  readonly outage: {
    readonly asked_sec: number;
    /** From stopped_at to started_at. */
    readonly sec: number;
    readonly stopped_at: string;
    /** As the ledger says. */
    readonly started_at: string;
    /** Claims that were made before the ledger was back, and became tickets after that. */
    readonly claims_waiting: number;
  } | null;
  /** Why an outage that was asked for was not made. */
  readonly no_outage: string | null;
  readonly payments: {
    readonly events: number;
    readonly deliveries: number;
    readonly effects: number;
  } | null;
  readonly problems: readonly string[];
}

export interface Facts {
  readonly pool: string;
  readonly seats: number;
  readonly buyers: number;
  readonly burstMs: number;
  readonly drainedMs: number;
  readonly outage: (Outage & { readonly askedSec: number; readonly waited: number }) | undefined;
}

export function outcomeOf(
  { pool, seats, buyers, burstMs, drainedMs, outage }: Facts,
  tally: Tally,
  { cores, cpuMs, elapsedMs, memoryMb }: Load,
): Outcome {
  const totalMs = burstMs + drainedMs;
  return {
    pool_id: pool,
    ok: tally.problems.length === 0,
    seats,
    buyers,
    burst_sec: seconds(burstMs),
    claims_per_sec: rate(buyers, burstMs),
    claims_per_sec_per_core: rate(buyers / cores, burstMs),
    claimed: tally.claims.length,
    sold_out: tally.soldOut,
    pressed_twice: tally.pressedTwice,
    tried_again: tally.triedAgain,
    tickets: tally.tickets + tally.others,
    tickets_of_others: tally.others,
    drained_sec: seconds(drainedMs),
    total_sec: seconds(totalMs),
    tickets_per_sec: rate(tally.tickets, totalMs),
    tickets_per_sec_per_core: rate(tally.tickets / cores, totalMs),
    load: { cores, cpu_sec: seconds(cpuMs), share: shareOf(cpuMs, elapsedMs * cores), memory_mb: memoryMb },
    outage:
      outage === undefined
        ? null
        : {
            asked_sec: outage.askedSec,
            sec: seconds(outage.startedAtMs - outage.stoppedAtMs),
            stopped_at: new Date(outage.stoppedAtMs).toISOString(),
            started_at: new Date(outage.startedAtMs).toISOString(),
            claims_waiting: outage.waited,
          },
    no_outage: tally.noOutage ?? null,
    payments:
      tally.effects === undefined
        ? null
        : { events: tally.paid, deliveries: tally.deliveries, effects: tally.effects },
    problems: tally.problems,
  };
}

export function describe(outcome: Outcome, noPayments: string | undefined): string {
  const { outage, payments, load } = outcome;
  const lines: [string, string][] = [
    [
      'Buyers',
      `${number(outcome.buyers)} in ${outcome.burst_sec} s ` +
        `(${number(outcome.claims_per_sec)}/s, ${number(outcome.claims_per_sec_per_core)}/s for each of ${load.cores} cores); ` +
        `${number(outcome.pressed_twice)} pressed twice and got one answer`,
    ],
    ['Claimed', `${number(outcome.claimed)} of ${number(outcome.seats)} seats`],
    ['Sold out', `${number(outcome.sold_out)} answers`],
    [
      'Tickets',
      `${number(outcome.tickets)} in the ledger, drained ${outcome.drained_sec} s after the last buyer`,
    ],
    [
      'Time',
      `${outcome.total_sec} s from the first claim to the last ticket (${number(outcome.tickets_per_sec)} tickets/s, ` +
        `${number(outcome.tickets_per_sec_per_core)}/s for each core)`,
    ],
    [
      'Load',
      `this command, which sent the load, took ${load.cpu_sec} s of CPU, ${percent(load.share)} % of this machine's ${load.cores} cores, ` +
        `and ${number(load.memory_mb)} MB`,
    ],
    [
      'Payments',
      payments === null
        ? `left out: ${noPayments ?? 'there were none'}`
        : `${number(payments.events)} events in ${number(payments.deliveries)} deliveries, ${number(payments.effects)} effects`,
    ],
  ];
  if (outcome.tickets_of_others > 0)
    lines.push([
      'Others',
      `${number(outcome.tickets_of_others)} of these tickets were bought on the drop page`,
    ]);
  if (outcome.tried_again > 0)
    lines.push(['Tried again', `${number(outcome.tried_again)} requests, each with the id it had before`]);
  if (outage !== null)
    lines.push([
      'Outage',
      `${outage.sec} s without the ledger, of which ${outage.asked_sec} were asked for; ` +
        `${number(outage.claims_waiting)} claims waited for it${outcome.ok ? ' and none was lost' : ''}`,
    ]);
  if (outcome.no_outage !== null) lines.push(['Outage', `none: ${outcome.no_outage}`]);
  const verdict = outcome.ok
    ? `Exactly ${number(outcome.tickets)} tickets for ${number(outcome.tickets)} claims, each once and for the buyer who was told so; ` +
      `${number(outcome.sold_out)} buyers were told "sold out".`
    : `This is not what Sluice promises:\n${outcome.problems.map((problem) => `  - ${problem}`).join('\n')}`;
  return `\n${lines.map(([name, text]) => `  ${name.padEnd(13)}${text}`).join('\n')}\n\n${verdict}`;
}

export const seconds = (ms: number): number => Math.round(ms / 100) / 10;
const percent = (share: number): number => Math.round(share * 100);
/** To the thousandth. */
const shareOf = (cpuMs: number, allMs: number): number =>
  Math.round((cpuMs / Math.max(allMs, 1)) * 1_000) / 1_000;
const rate = (count: number, ms: number): number => Math.round(count / Math.max(ms / 1_000, 0.001));
