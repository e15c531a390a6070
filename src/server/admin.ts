// The operators' doors, behind an operator's key or the console's session.

import { setTimeout as sleep } from 'node:timers/promises';
import type { CallFunction } from '#core/call_function.ts';
import { createSiteStore, siteAdminRoutes } from '#core/calls/operators.ts';
import { createOperatorKeys, type OperatorAdminPorts, operatorAdminRoutes } from '#core/console/operators.ts';
import { createEndingStore, DeadLetterRoutes } from '#core/dead_letters.ts';
import { createInboxOperatorStore, inboxRoutes } from '#core/inbox/operators.ts';
import { operatorOf } from '#core/operator.ts';
import type { Route } from '#core/router.ts';
import { type UserPorts, userDatabases } from '#core/users/databases.ts';
import { userRoutes } from '#core/users/routes.ts';
import { type WebhookAdminPorts, WebhookAdminRoutes } from '#core/webhook/admin.ts';
import { createOperatorStore } from '#core/webhook/operators.ts';
import { createUnnamedPaymentStore, unnamedPaymentRoutes } from '#core/webhook/unnamed_payments.ts';
import { type ConsolePorts, consoleRoutes } from '../console/routes.ts';
import { CELLS_AWAY_HEADER } from '../fleet/addresses.ts';
import type { Fleet } from '../fleet/fleet.ts';
import { wholeOnly, withLeftOut } from '../fleet/left_out.ts';
import { fleetLetters } from '../fleet/letters.ts';
import type { CallableCell } from '../fleet/one_intake.ts';
import { newKey } from './known_operators.ts';
import type { OperatorAuth } from './operator_auth.ts';
import { copyOperators } from './operator_copy.ts';

export interface AdminPorts
  extends Omit<ConsolePorts, 'intakes' | 'wholeDb1'>,
    Pick<WebhookAdminPorts, 'secrets'> {
  readonly fleet: Fleet<CallableCell>;
  /** Functions of schema public of the cell in which the operators stand. */
  readonly operators: CallFunction;
  /** Functions of its schema audit. */
  readonly audit: CallFunction;
}

/** An answer that was made without some cells says so: their part is missing. */
function tellingAway(route: Route, fleet: Fleet<CallableCell>): Route {
  if (fleet.isOne) return route;
  return {
    ...route,
    async handle(request, parameter) {
      const [response, leftOut] = await withLeftOut(() => route.handle(request, parameter));
      if (leftOut.length === 0) return response;
      return { ...response, headers: { ...response.headers, [CELLS_AWAY_HEADER]: leftOut.join(', ') } };
    },
  };
}

function intakesOf(fleet: Fleet<CallableCell>): ConsolePorts['intakes'] {
  return fleet.isOne ? [{ call: fleet.only.call }] : fleet.cells;
}

/** A cell that is away ends an erasure, which goes on when it is asked for again. */
function userPorts({ fleet, db2, now }: AdminPorts): UserPorts {
  return { ...userDatabases(db2, fleet.cells), now, pause: (ms) => sleep(ms) };
}

/** The copy in DB2 is not waited for: a loop of the server writes it again. */
function operatorPorts({ operators: intake, audit, db2, log }: AdminPorts): OperatorAdminPorts {
  return {
    keys: createOperatorKeys({ intake, audit, newKey }),
    onChanged: () =>
      void copyOperators(intake, db2).catch((cause) => log.debug('DB2 does not know of it yet', { cause })),
  };
}

/** Every route below /admin is made here, and none leaves without its guard. */
export function adminRoutes(auth: OperatorAuth, ports: AdminPorts): Route[] {
  // The guard has asked already.
  const authorize = operatorOf;
  const deadLetters = new DeadLetterRoutes({
    ...fleetLetters(ports.fleet, ({ call }) => createEndingStore(call, ports.db2, ports.log)),
    authorize,
  });
  const webhooks = new WebhookAdminRoutes({
    store: createOperatorStore(ports.webhook),
    secrets: ports.secrets,
    authorize,
  });
  return [
    ...auth.routes(),
    ...auth.guard(
      [
        ...deadLetters.routes('/admin/dlq'),
        ...inboxRoutes('/admin/webhooks/inbox', createInboxOperatorStore(ports.db1), authorize),
        ...webhooks.routes('/admin/webhooks'),
        ...operatorAdminRoutes(operatorPorts(ports)),
        ...siteAdminRoutes({ store: createSiteStore(ports.calls), secrets: ports.secrets }),
        ...unnamedPaymentRoutes('/admin/webhooks', createUnnamedPaymentStore(ports.webhook), authorize),
        ...userRoutes('/admin/users', userPorts(ports), authorize),
        ...consoleRoutes({ ...ports, wholeDb1: wholeOnly(ports.db1), intakes: intakesOf(ports.fleet) }),
      ].map((route) => tellingAway(route, ports.fleet)),
    ),
  ];
}
