// Tells the owner's address what the databases have to tell. Each alert is under a lease while one server posts it, and is posted again
// after a failure. A server that dies after the post leaves it to another, which posts the same id.

import type { CallFunction } from '#core/call_function.ts';
import type { Log } from '#core/ports.ts';
import { postGuarded } from '../bridge/hook.ts';
import { type Loop, startLoop } from '../loop.ts';
import { type Alert, bodyOf, messageOf } from './message.ts';
import type { AlertSettings } from './settings.ts';
import type { NamedDatabase } from './watch.ts';

export interface AlertPorts {
  readonly databases: readonly NamedDatabase[];
  /** The intake that keeps the list of private hosts. */
  readonly callFirst: CallFunction;
  /** Where the console is; undefined where the server does not know. */
  readonly consoleUrl: () => string | undefined;
  readonly log: Log;
}

const LOOK_EVERY_MS = 2_000;
/** Taken at once. All of them time out within the lease. */
const AT_ONCE = 4;
const LEASE_SEC = 60;
const MS_PER_SEC = 1_000;

export function startAlerts(settings: AlertSettings, ports: AlertPorts): Loop {
  const { databases, log } = ports;
  const teller = new Teller(settings, ports);
  const loops = databases.map((database) =>
    startLoop(`telling the alerts of ${database.name}`, LOOK_EVERY_MS, log, (signal) =>
      teller.turn(database, signal),
    ),
  );
  return {
    async stop() {
      await Promise.all(loops.map((loop) => loop.stop()));
    },
  };
}

class Teller {
  readonly #settings: AlertSettings;
  readonly #ports: AlertPorts;
  /** As it was read last: the intake may be what there is an alert about. */
  #hosts: readonly string[] = [];

  constructor(settings: AlertSettings, ports: AlertPorts) {
    this.#settings = settings;
    this.#ports = ports;
  }

  async turn({ name, call }: NamedDatabase, signal: AbortSignal): Promise<void> {
    const alerts = await call<Alert>('take_alerts', { p_limit: AT_ONCE, p_lease_sec: LEASE_SEC });
    if (alerts.length > 0) await this.#readHosts();
    for (const alert of alerts) {
      if (signal.aborted) return;
      const isTold = await this.#tell(alert, name, signal);
      await call('finish_alert', { p_id: alert.id, p_token: alert.token, p_is_told: isTold });
    }
  }

  async #readHosts(): Promise<void> {
    try {
      const rows = await this.#ports.callFirst<{ hook_allowed_hosts: string }>('hook_allowed_hosts', {});
      this.#hosts = rows.map(({ hook_allowed_hosts }) => hook_allowed_hosts);
    } catch (cause) {
      this.#ports.log.debug('the list of private hosts is as it was read last', { cause });
    }
  }

  async #tell(alert: Alert, database: string, signal: AbortSignal): Promise<boolean> {
    const { url, format, sign } = this.#settings;
    const message = messageOf(alert, database, this.#ports.consoleUrl());
    const id = `alert_${message.id}`;
    const body = JSON.stringify(bodyOf(message, format));
    const sec = Math.floor(Date.now() / MS_PER_SEC);
    const headers = {
      'content-type': 'application/json',
      'webhook-id': id,
      'webhook-timestamp': String(sec),
      ...(sign && { 'webhook-signature': sign(id, sec, body) }),
    };
    try {
      const status = await postGuarded({
        what: 'the address for alerts (SLUICE_ALERT_URL)',
        url,
        body,
        headers,
        allowedHosts: this.#hosts,
        signal,
      });
      if (status >= 200 && status < 300) return true;
      this.#ports.log.warn('an alert was not taken', { alert: message.id, status });
    } catch (cause) {
      this.#ports.log.warn('an alert could not be told', { alert: message.id, cause });
    }
    return false;
  }
}
