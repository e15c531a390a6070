// What operators do: void, with and without a refund, decide about refunds that wait, and see to dead letters.

import fc from 'fast-check';
import { pick, step } from '../../step.ts';
import type { ClaimState, RefundState } from '../state.ts';
import type { World } from '../world.ts';
import { anyNumber, type Command } from './buyers.ts';

/** One that was voided before can be voided again: with a refund it may correct a void without. */
const voidable = ({ state }: World): ClaimState[] =>
  state.intake.claims.filter(
    (claim) => claim.state === 'voided' || (!claim.isFreed && claim.state !== 'held'),
  );

export const voidClaims: Command = fc
  .tuple(anyNumber, fc.boolean(), fc.integer({ min: 0, max: 4 }))
  .map(([at, isWhole, luck]) =>
    step(
      `void ${at}`,
      (world) => voidable(world).length > 0,
      async (_, world) => {
        const all = voidable(world);
        const one = pick(all, at);
        const claims = isWhole
          ? all.filter(({ order, id }) => id === one.id || (order !== null && order === one.order))
          : [one];
        const isRefund = luck > 0;
        const names = claims.map(({ id }) => world.name(id, 'claim '));
        world.doing(`an operator voids ${names.join(' and ')}${isRefund ? '' : ' without a refund'}`);
        await world.requestVoid(
          claims.map(({ id }) => id),
          isRefund,
        );
      },
    ),
  );

const waiting = ({ state }: World): RefundState[] =>
  state.ledger.refunds.filter((one) => one.state === 'review' || one.state === 'failed');

export const decideRefund: Command = fc
  .tuple(anyNumber, fc.constantFrom<'send' | 'skip'>('send', 'skip'))
  .map(([at, action]) =>
    step(
      `${action} the refund ${at}`,
      (world) => waiting(world).length > 0,
      async (_, world) => {
        const refund = pick(waiting(world), at);
        world.doing(
          `an operator decides to ${action} the ${refund.state} refund ${refund.id} of ${refund.amount}`,
        );
        world.got(await world.decideRefund(refund.id, action));
      },
    ),
  );

const onLetters = (verb: 'replay' | 'discard'): Command =>
  anyNumber.map((at) =>
    step(
      `${verb} ${at}`,
      ({ state }) => state.intake.letters.length > 0,
      async (_, world) => {
        const { id, claim } = pick(world.state.intake.letters, at);
        world.doing(`an operator ${verb}s the dead letter of ${world.name(claim, 'claim ')}`);
        world.got(await world.operate(verb, id));
      },
    ),
  );

export const replay = onLetters('replay');
export const discard = onLetters('discard');
