// What a buyer's bank does: it takes money by a dispute, decides, and gives all, a part or nothing of it back.

import fc from 'fast-check';
import { pick, step } from '../../step.ts';
import { type Dispute, openDispute, type Payment } from '../books.ts';
import type { World } from '../world.ts';
import { anyNumber, type Command } from './buyers.ts';
import { isSettled } from './provider.ts';

/** So little that something is left of every payment. */
const PART = 4;
const PARTS = ['all', 'all', 'part'] as const;

/** Banks open one dispute at a time: another one, for a corrected amount, follows when the first is closed. */
const disputable = ({ stripe }: World): Payment[] =>
  stripe.payments.filter(
    (one) => isSettled(one) && openDispute(one) === undefined && heldBy(one) < one.amount,
  );

/** What closed disputes keep. */
const heldBy = ({ disputes }: Payment): number => disputes.reduce((total, one) => total + takenBy(one), 0);

const takenBy = ({ moves }: Dispute): number => -moves.reduce((total, { amount }) => total + amount, 0);

/** All that no dispute has taken, even where a part of it was refunded. */
export const dispute: Command = fc.tuple(anyNumber, fc.constantFrom(...PARTS)).map(([at, part]) =>
  step(
    `dispute ${at}`,
    (world) => disputable(world).length > 0,
    async (_, world) => {
      const payment = pick(disputable(world), at);
      const all = payment.amount - heldBy(payment);
      const amount = part === 'all' ? all : Math.min(all, PART);
      world.doing(`${payment.id}: a dispute takes ${amount} of ${payment.amount}`);
      world.stripe.openDispute(payment, amount);
    },
  ),
);

type Case = { payment: Payment; dispute: Dispute };

const open = ({ stripe }: World): Case[] =>
  stripe.payments.flatMap((payment) => {
    const one = openDispute(payment);
    return one === undefined ? [] : [{ payment, dispute: one }];
  });

/** Lost for all or, where the bank gives a part back, for the rest. */
export const closeDispute: Command = fc
  .tuple(anyNumber, fc.constantFrom('won', 'lost', 'lost', 'lost for a part'), fc.boolean())
  .map(([at, how, isToldFirst]) =>
    step(
      `dispute ${at} is ${how}`,
      (world) => open(world).length > 0,
      async (_, world) => {
        const { payment, dispute: one } = pick(open(world), at);
        const taken = takenBy(one);
        const back = how === 'won' ? taken : how === 'lost' ? 0 : Math.min(taken - 1, PART);
        world.doing(`${payment.id}: its dispute is ${how}, and ${back} of ${taken} come back`);
        world.stripe.closeDispute(payment, one, how === 'won', back, isToldFirst);
      },
    ),
  );

const lost = ({ stripe }: World): Case[] =>
  stripe.payments.flatMap((payment) =>
    payment.disputes
      .filter((one) => one.status === 'lost' && takenBy(one) > 0)
      .map((one) => ({ payment, dispute: one })),
  );

export const appeal: Command = fc.tuple(anyNumber, fc.constantFrom(...PARTS)).map(([at, part]) =>
  step(
    `appeal ${at}`,
    (world) => lost(world).length > 0,
    async (_, world) => {
      const { payment, dispute: one } = pick(lost(world), at);
      const back = part === 'all' ? takenBy(one) : Math.min(takenBy(one), PART);
      world.doing(`${payment.id}: an appeal gives ${back} back`);
      world.stripe.appeal(payment, one, back);
    },
  ),
);
